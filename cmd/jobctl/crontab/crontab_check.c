/* SPDX-License-Identifier: Apache-2.0 */
/* Compares crontab entries with the machine. */
#include "jobctl/crontab/crontab_check.h"

#include "base/auto.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/crontab/crontab_job.h"
#include "core/job/job_fields.h"
#include <string.h>
#include <unistd.h>

struct check {
	schedule_finding_fn *fn;
	void *arg;
};

/* Words that a shell executes itself. */
static bool is_shell_word(const char *word)
{
	static const char *const words[] = { "!", ".", ":", "[", "[[", "alias", "bg", "break", "case", "cd", "command",
		"continue", "declare", "dirs", "do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit",
		"export", "false", "fi", "for", "function", "getopts", "hash", "if", "jobs", "kill", "let", "local",
		"printf", "pushd", "popd", "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt",
		"source", "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask",
		"unset", "until", "wait", "while", "{", "}" };

	for (size_t i = 0; i < ELEMENTS(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static bool in_path(const char *name, const char *path)
{
	for (;;) {
		size_t len = strcspn(path, ":");
		AUTO_TEXT file = xprintf("%.*s/%s", (int)len, path, name);

		if (len && access(file, X_OK) == 0)
			return true;
		if (!path[len])
			return false;
		path += len + 1;
	}
}

static void check_word(const struct check *c, const char *word, const char *path, bool moved)
{
	if (word[0] == '/') {
		if (access(word, F_OK) != 0)
			schedule_lint_report(c->fn, c->arg, "not-found", "'%.200s' does not exist on this machine", word);
	} else if (strchr(word, '/')) {
		if (!moved)
			schedule_lint_report(c->fn, c->arg, "relative-path",
				"'%.200s' is relative to the home directory; write an absolute path", word);
	} else if (!is_shell_word(word) && !in_path(word, path)) {
		schedule_lint_report(c->fn, c->arg, "not-found", "'%.100s' is not in PATH=%.150s", word, path);
	}
}

/*
 * The program of each simple command, up to the first character whose meaning only a shell can tell.
 */
void crontab_check_program(const struct crontab *t, const struct crontab_entry *e, schedule_finding_fn *fn, void *arg)
{
	static const char unclear[] = "$`'\"(){}*?~#\\<>";
	const char *path = crontab_get(t, e, "PATH"), *s = e->command;
	const struct check c = { fn, arg };
	bool moved = false; /* 'cd' came before */

	for (;;) {
		AUTO_TEXT word = NULL;
		size_t len;

		s += strspn(s, " \t");
		len = strcspn(s, " \t;&|");
		word = xstrndup(s, len);
		s += len;
		if (strpbrk(word, unclear) || !*word)
			return;
		if (strchr(word, '=') && text_is_name(word, strcspn(word, "=")))
			continue;
		check_word(&c, word, path ? path : CRONTAB_PATH, moved);
		moved |= strcmp(word, "cd") == 0;
		len = strcspn(s, ";&|");
		if (strcspn(s, "'\"`(#\\") < len || !s[len])
			return;
		s += len + strspn(s + len, ";&|");
	}
}

void crontab_check_environment(const struct crontab *t, const struct crontab_entry *e, schedule_finding_fn *fn, void *arg)
{
	const struct job_field *f = job_field_find("env");
	const char *home = crontab_get(t, e, "HOME");
	AUTO_DONE(strv) env = {};
	AUTO_DONE(strv) mail = {};

	crontab_env(t, e, &env);
	for (size_t i = 0; i < env.n; i++)
		if (!f->check(env.v[i], NULL))
			schedule_lint_report(fn, arg, "variable-left-out", "the job cannot have the variable '%.*s'",
				(int)(strcspn(env.v[i], "=") < 80 ? strcspn(env.v[i], "=") : 80), env.v[i]);
	if ((int64_t)env.n > f->max)
		schedule_lint_report(fn, arg, "variable-left-out",
			"a job has at most %d variables; the table sets %zu", (int)f->max, env.n);
	if (crontab_job_mail(t, e, NULL, &mail) == CRONTAB_MAIL_BAD)
		schedule_lint_report(fn, arg, "bad-mailto", "MAILTO has characters that cron refuses, so no mail is sent");
	if (home && home[0] != '/')
		schedule_lint_report(fn, arg, "relative-home",
			"HOME=%.100s is not an absolute path; the job starts in the home directory", home);
	else if (home && access(home, F_OK) != 0)
		schedule_lint_report(fn, arg, "not-found", "HOME=%.100s does not exist on this machine", home);
}
