/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, reads and parses crontabs. */
#include "jobctl/crontab/crontab_source.h"

#include "base/err.h"
#include "base/io.h"
#include "jobctl/args.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSTEM_TABLE "/etc/crontab"
#define SYSTEM_DIRECTORY "/etc/cron.d"
#define ACCOUNTS_MAX (4 << 20) /* bytes of the file of --users */

static void crontab_source_done(struct crontab_source *s)
{
	free(s->label);
	free(s->user);
	buf_done(&s->data);
	crontab_free(s->table);
}

void crontab_sources_done(struct crontab_sources *s)
{
	for (size_t i = 0; i < s->n; i++)
		crontab_source_done(&s->v[i]);
	free(s->v);
	strv_done(&s->accounts);
	*s = (struct crontab_sources){};
}

static struct crontab_source *add_source(struct crontab_sources *s, const char *label, bool system)
{
	s->v = xgrow(s->v, s->n, sizeof *s->v);
	s->v[s->n] = (struct crontab_source){ .label = xstrdup(label), .system = system };
	return &s->v[s->n++];
}

static bool read_failed(int r, const char *label, struct err *e)
{
	if (r == -EFBIG)
		return err_set(e, ERR_TOO_LARGE, "%s has more than %d bytes and is not read", label, CRONTAB_BYTES_MAX);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no file '%s'", label);
	return err_errno(e, -r, "cannot read '%s'", label);
}

static bool read_file(struct crontab_sources *s, const char *path, bool system, struct err *e)
{
	bool input = strcmp(path, "-") == 0;
	struct crontab_source *t = add_source(s, input ? "standard input" : path, system);
	int r = input ? io_read_all(STDIN_FILENO, &t->data, CRONTAB_BYTES_MAX) :
			io_read_file(path, &t->data, CRONTAB_BYTES_MAX);

	return r >= 0 || read_failed(r, t->label, e);
}

/* Names that cron reads in /etc/cron.d: letters, digits, '_' and '-'. */
static int is_cron_name(const struct dirent *d)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

	return d->d_name[0] && d->d_name[strspn(d->d_name, allowed)] == '\0';
}

static void free_names(struct dirent **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static bool read_system(struct crontab_sources *s, struct err *e)
{
	struct dirent **names = NULL;
	bool ok = access(SYSTEM_TABLE, F_OK) != 0 || read_file(s, SYSTEM_TABLE, true, e);
	int n = scandir(SYSTEM_DIRECTORY, &names, is_cron_name, alphasort);

	for (int i = 0; ok && i < n; i++) {
		AUTO_TEXT path = xprintf("%s/%s", SYSTEM_DIRECTORY, names[i]->d_name);

		ok = read_file(s, path, true, e);
	}
	free_names(names, n < 0 ? 0 : n);
	if (ok && s->n == 0)
		return err_set(e, ERR_NOT_FOUND, "there is no %s and no table in %s", SYSTEM_TABLE, SYSTEM_DIRECTORY);
	return ok;
}

/* Runs 'crontab -l', which may read the table of the caller. */
static int run_crontab(const char *user, struct buf *out)
{
	int pipe_fds[2], status = 0, r;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		dup2(pipe_fds[1], STDOUT_FILENO);
		if (user)
			execlp("crontab", "crontab", "-u", user, "-l", NULL);
		else
			execlp("crontab", "crontab", "-l", NULL);
		_exit(127);
	}
	close(pipe_fds[1]);
	r = pid < 0 ? -EAGAIN : io_read_all(pipe_fds[0], out, CRONTAB_BYTES_MAX);
	close(pipe_fds[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	return r < 0 ? r : status == 0 ? 0 : -ENOENT;
}

static bool read_user(struct crontab_sources *s, const char *user, struct err *e)
{
	static const char *const directories[] = { "/var/spool/cron/crontabs", "/var/spool/cron" };
	AUTO_TEXT label = xprintf("crontab of %s", user ? user : "this user");
	struct crontab_source *t = add_source(s, label, false);
	const struct passwd *self = getpwuid(geteuid());
	const char *name = user ? user : self ? self->pw_name : NULL;

	if (!name || strchr(name, '/') || (user && !getpwnam(user)))
		return err_set(e, ERR_NOT_FOUND, "there is no user '%s'", name ? name : "?");
	t->user = xstrdup(user);
	for (size_t i = 0; i < ELEMENTS(directories); i++) {
		AUTO_TEXT path = xprintf("%s/%s", directories[i], name);

		if (io_read_file(path, &t->data, CRONTAB_BYTES_MAX) >= 0)
			return true;
	}
	if (run_crontab(user && geteuid() == 0 ? user : NULL, &t->data) < 0)
		return err_set(e, ERR_NOT_FOUND, "user '%s' has no crontab, or it cannot be read: 'crontab -l' failed", name);
	return true;
}

/* ---- accounts ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool read_accounts(struct crontab_sources *s, const char *path, struct err *e)
{
	AUTO_DONE(buf) text = {};
	int r = io_read_file(path, &text, ACCOUNTS_MAX);

	if (r < 0)
		return err_errno(e, -r, "--users: cannot read '%s'", path);
	buf_str(&text, "");
	for (const char *at = text.data; *at;) {
		size_t len = strcspn(at, "\r\n");

		if (len)
			strv_take(&s->accounts, xstrndup(at, strcspn(at, ":\r\n")));
		at += len + (at[len] != '\0');
	}
	if (s->accounts.n)
		qsort(s->accounts.v, s->accounts.n, sizeof *s->accounts.v, compare_names);
	s->accounts_given = true;
	return true;
}

bool crontab_sources_account(const struct crontab_sources *s, const char *name)
{
	if (!s->accounts_given)
		return getpwnam(name) != NULL;
	return s->accounts.n && bsearch(&name, s->accounts.v, s->accounts.n, sizeof *s->accounts.v, compare_names);
}

static bool account_exists(const char *name, void *arg)
{
	return crontab_sources_account(arg, name);
}

/* ---- options ---- */

static bool read_table_kind(const struct args *a, const char *path, bool *ret_system, struct err *e)
{
	const char *kind = args_last(a, "table");

	if (kind && strcmp(kind, "user") != 0 && strcmp(kind, "system") != 0)
		return err_set(e, ERR_INVALID, "--table: '%s' is not user or system", kind);
	*ret_system = kind ? strcmp(kind, "system") == 0 :
			     strcmp(path, SYSTEM_TABLE) == 0 || text_starts(path, SYSTEM_DIRECTORY "/");
	return true;
}

static bool read_tables(struct crontab_sources *s, const struct args *a, struct err *e)
{
	char *const *words;
	size_t n = args_operands(a, &words);
	bool system = false;

	if (n + args_has(a, "user") + args_has(a, "system") > 1)
		return err_set(e, ERR_INVALID, "give only one of FILE, --user and --system");
	if (n == 0 && args_has(a, "table"))
		return err_set(e, ERR_INVALID, "--table describes a FILE; there is none");
	if (args_has(a, "system"))
		return read_system(s, e);
	if (n == 0)
		return read_user(s, args_last(a, "user"), e);
	return read_table_kind(a, words[0], &system, e) && read_file(s, words[0], system, e);
}

bool crontab_sources_read(struct crontab_sources *s, const struct args *a, struct err *e)
{
	const char *mode = args_last(a, "mode");

	if (mode && !crontab_mode_parse(mode, &s->mode))
		return err_set(e, ERR_INVALID, "--mode: '%s' is not debian, cronie or strict", mode);
	if (args_has(a, "users") && !read_accounts(s, args_last(a, "users"), e))
		return false;
	if (!read_tables(s, a, e))
		return false;
	for (size_t i = 0; i < s->n; i++) {
		struct crontab_source *t = &s->v[i];
		const struct crontab_options o = {
			.mode = s->mode,
			.system = t->system,
			.user_exists = account_exists,
			.arg = s,
			.seed = t->label,
			.no_logging = t->user ? strcmp(t->user, "root") == 0 : geteuid() == 0,
		};

		crontab_parse(t->data.data ? t->data.data : "", t->data.len, &o, &t->table);
	}
	return true;
}

const char *crontab_source_user(const struct crontab_source *s, const struct crontab_entry *e)
{
	const struct passwd *self;

	if (e->user || s->user)
		return e->user ? e->user : s->user;
	self = getpwuid(getuid());
	return self ? self->pw_name : NULL;
}
