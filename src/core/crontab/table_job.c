/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the lines of a crontab into job definitions. */
#include "core/crontab/table_job.h"
#include "base/sha256.h"
#include "core/crontab/anacrontab.h"
#include "core/crontab/crontab.h"
#include "core/crontab/crontab_job.h"
#include "core/crontab/line_identity.h"
#include <stdlib.h>
#include <string.h>

#define STAMPS "/var/spool/anacron"

void table_jobs_done(struct table_jobs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].user);
		job_spec_done(&l->v[i].spec);
	}
	free(l->v);
	*l = (struct table_jobs){};
}

static struct table_job *job_add(struct table_jobs *l)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n] = (struct table_job){};
	job_spec_init(&l->v[l->n].spec);
	return &l->v[l->n++];
}

static void job_mark(struct table_job *j, const char *path, size_t line, const char *command, const unsigned char sum[SHA256_LEN])
{
	memcpy(j->identity, sum, WARRANT_JOB_LEN);
	j->line = (int64_t)line;
	j->spec.name = line_name(command, sum);
	j->spec.origin = xprintf("%s:%zu", path, line);
	strv_take(&j->spec.tags, xprintf(TABLE_TAG "=%.250s", path));
}

void table_jobs_build(const struct crontab *t, const char *path, const char *user, struct table_jobs *ret)
{
	AUTO_DONE(line_identities) seen = {};

	*ret = (struct table_jobs){};
	for (size_t i = 0; t->accepted && i < t->n_entries; i++) {
		const struct crontab_entry *e = &t->entries[i];
		struct table_job *j = job_add(ret);
		unsigned char sum[SHA256_LEN];

		j->user = xstrdup(e->user ? e->user : user);
		j->zone = e->zone;
		crontab_job_identity(&seen, e, path, j->user, sum);
		job_mark(j, path, e->line, e->command, sum);
		crontab_job(t, e, &j->spec);
		crontab_job_mail(t, e, j->user, &j->spec.notify);
	}
}

/* ---- anacrontab ---- */

/* Writes the time stamp of anacron after the command, so that anacron does not repeat the job after a give-back. */
static const char stamped[] = "\"$1\" -c \"$2\"; r=$?; [ ! -d " STAMPS " ] || date +%Y%m%d >" STAMPS "/\"$3\"; exit $r";

static void anacron_build(const struct anacrontab *t, const struct anacrontab_entry *e, struct job_spec *s)
{
	const char *shell = anacrontab_get(t, e, "SHELL");

	strv_add(&s->command, "/bin/sh");
	strv_add(&s->command, "-c");
	strv_add(&s->command, stamped);
	strv_add(&s->command, "anacron");
	strv_add(&s->command, shell && *shell ? shell : "/bin/sh");
	strv_add(&s->command, e->command);
	strv_add(&s->command, e->id);
	crontab_job_policies(s);
	s->catchup = xstrdup("latest");
	s->jitter = t->random_delay * USEC_MIN;
	s->cwd = xstrdup("/");
	crontab_job_variables(&(struct strv){.v = t->settings.v, .n = e->settings}, s);
	strv_take(&s->tags, xprintf(TABLE_TAG_ANACRON "=%s", e->id));
	crontab_job_mail_to(anacrontab_get(t, e, "MAILTO"), "root", false, &s->notify);
}

void table_jobs_build_anacron(const struct anacrontab *t, const char *path, struct table_jobs *ret)
{
	AUTO_DONE(line_identities) seen = {};

	*ret = (struct table_jobs){};
	for (size_t i = 0; i < t->n_entries; i++) {
		const struct anacrontab_entry *e = &t->entries[i];
		struct table_job *j = job_add(ret);
		const char *const parts[] = {path, e->id, e->command};
		unsigned char sum[SHA256_LEN];

		j->user = xstrdup("root");
		line_identity(&seen, parts, ELEMENTS(parts), sum);
		job_mark(j, path, e->line, e->id, sum);
		anacron_build(t, e, &j->spec);
	}
}
