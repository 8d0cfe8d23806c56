/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a worker's environment together; a later variable of the same name replaces an earlier one. */
#include "exec/environ.h"
#include "exec/procfs.h"
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

void environ_base_init(struct environ_base *b, const char *spawner)
{
	const struct passwd *pw = getpwuid(geteuid());
	const char *lang = getenv("LANG");
	AUTO_TEXT number = xprintf("%u", (unsigned)geteuid());
	const char *name = pw && pw->pw_name[0] ? pw->pw_name : number;

	*b = (struct environ_base){
		.home = xstrdup(pw && pw->pw_dir[0] == '/' ? pw->pw_dir : "/"),
		.spawner = xprintf(PROCFS_SPAWNER "=%s", spawner),
	};
	strv_take(&b->vars, xprintf("HOME=%s", b->home));
	strv_take(&b->vars, xprintf("LOGNAME=%s", name));
	strv_take(&b->vars, xprintf("USER=%s", name));
	strv_take(&b->vars, xprintf("SHELL=%s", pw && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh"));
	strv_add(&b->vars, "PATH=/usr/local/bin:/usr/bin:/bin");
	strv_take(&b->vars, xprintf("LANG=%s", lang && lang[0] ? lang : "C.UTF-8"));
}

void environ_base_done(struct environ_base *b)
{
	strv_done(&b->vars);
	free(b->home);
	free(b->spawner);
	*b = (struct environ_base){};
}

static void set(struct environ_vars *v, char *var)
{
	size_t name = strcspn(var, "=") + 1;

	for (size_t i = 0; i < v->n; i++)
		if (strncmp(v->envp[i], var, name) == 0) {
			v->envp[i] = var;
			return;
		}
	v->envp[v->n++] = var;
}

void environ_build(struct environ_vars *v, const struct environ_base *b, const struct payload *p,
	int64_t run, int64_t fence)
{
	*v = (struct environ_vars){.envp = xcalloc(b->vars.n + p->envc + 4, sizeof(*v->envp))};
	snprintf(v->run, sizeof(v->run), PROCFS_RUN "=%" PRId64, run);
	snprintf(v->fence, sizeof(v->fence), PROCFS_FENCE "=%" PRId64, fence);
	for (size_t i = 0; i < b->vars.n; i++)
		set(v, b->vars.v[i]);
	for (size_t i = 0; i < p->envc; i++)
		set(v, p->env[i]);
	set(v, v->run);
	set(v, v->fence);
	set(v, b->spawner);
}

void environ_vars_done(struct environ_vars *v)
{
	free(v->envp);
	v->envp = NULL;
}

const char *environ_get(const struct environ_vars *v, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < v->n; i++)
		if (strncmp(v->envp[i], name, len) == 0 && v->envp[i][len] == '=')
			return v->envp[i] + len + 1;
	return NULL;
}
