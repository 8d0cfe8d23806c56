/* SPDX-License-Identifier: Apache-2.0 */
/* The jobctl program: finds the verb, reads global options, runs it. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/help.h"
#include "jobctl/render/render.h"
#include "jobctl/suggest.h"
#include "jobctl/verbs/verbs.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void words_free(char ***words)
{
	free(*words);
}

/*
 * --http METHOD URL becomes --http METHOD --http-url URL, because an option has one argument; --http-async becomes
 * --http-async=yes. Returns the words; caller frees.
 */
static char **split_http_option(int *argc, char **argv)
{
	char **out = xcalloc(2 * (size_t)*argc + 1, sizeof(*out));
	int n = 0;

	for (int i = 0; i < *argc; i++) {
		if (i >= 2 && strcmp(argv[i - 2], "--http") == 0 &&
			(text_starts(argv[i], "https://") || text_starts(argv[i], "http://")))
			out[n++] = (char *)"--http-url";
		/* the option alone means yes */
		out[n++] = strcmp(argv[i], "--http-async") == 0 &&
				(i + 1 == *argc || (strcmp(argv[i + 1], "yes") != 0 && strcmp(argv[i + 1], "no") != 0))
			? (char *)"--http-async=yes"
			: argv[i];
	}
	*argc = n;
	return out;
}

static bool parse_verb_options(const struct verb *v, int argc, char **argv, struct args **ret,
	struct err *e)
{
	struct opt opts[OPTS_MAX];
	/*
	 * Without a verb only the options before its name are parsed: the name is the first
	 * operand.
	 */
	struct args_how how = {.opts = opts,
		.count = verb_opts(v, opts),
		.command = !v || v->command};

	return args_parse(&how, argc, argv, ret, e);
}

static bool read_colour(struct ctl *c, const char *when, struct err *e)
{
	if (strcmp(when, "always") == 0)
		c->colour = true;
	else if (strcmp(when, "never") == 0)
		c->colour = false;
	else if (strcmp(when, "auto") != 0)
		return err_set(e, ERR_INVALID, "--color: '%s' is not auto, always or never", when);
	return true;
}

/* A URL or context overrides $JOBSCHED_SOCKET. */
static bool read_remote(struct ctl *c, const struct verb *v, const struct args *a, struct err *e)
{
	bool local = args_last(a, "socket") || c->where != WHERE_ANY || args_last(a, "instance");

	/* 'context add' has options of the same names for the context itself */
	if (!verb_has_opt(v, "url") && args_last(a, "url"))
		c->url = args_last(a, "url");
	if (!verb_has_opt(v, "token-file") && args_last(a, "token-file"))
		c->token_file = args_last(a, "token-file");
	if (!verb_has_opt(v, "ca-file") && args_last(a, "ca-file"))
		c->ca_file = args_last(a, "ca-file");
	if (args_last(a, "context"))
		c->context = args_last(a, "context");
	if (local && (args_last(a, "url") || args_last(a, "context")))
		return err_set(e, ERR_INVALID,
			"give either --url or --context, or --socket, --user, --system or --instance");
	if (!verb_has_opt(v, "url") && args_last(a, "url") && args_last(a, "context"))
		return err_set(e, ERR_INVALID, "give either --url or --context, not both");
	if (args_last(a, "url") || args_last(a, "context"))
		c->socket_given = NULL;
	return true;
}

/* Reads the global options. Those after the verb override those before it. */
static bool read_globals(struct ctl *c, const struct verb *v, const struct args *a, struct err *e)
{
	bool user = !verb_has_opt(v, "user") && args_has(a, "user");
	bool system = !verb_has_opt(v, "system") && args_has(a, "system");
	const char *format = args_last(a, "output"), *colour = args_last(a, "color");

	if (args_has(a, "json"))
		c->format = FORMAT_JSON;
	if (format && !render_format_parse(format, &c->format))
		return err_set(e, ERR_INVALID,
			"--output: '%s' is not table, wide, json, jsonl, csv or name", format);
	if (colour && !read_colour(c, colour, e))
		return false;
	if (user && system)
		return err_set(e, ERR_INVALID, "give either --user or --system, not both");
	if (user || system) {
		c->where = user ? WHERE_USER : WHERE_SYSTEM;
		c->socket_given = NULL; /* overrides $JOBSCHED_SOCKET */
	}
	if (args_last(a, "instance")) {
		if (strchr(args_last(a, "instance"), '/'))
			return err_set(e, ERR_INVALID,
				"--instance: '%s' is not the name of an instance",
				args_last(a, "instance"));
		c->instance = args_last(a, "instance");
		c->socket_given = NULL;
	}
	if (args_last(a, "socket"))
		c->socket_given = args_last(a, "socket");
	return read_remote(c, v, a, e);
}

static void read_terminal(struct ctl *c)
{
	const char *socket = getenv("JOBSCHED_SOCKET"), *plain = getenv("NO_COLOR"),
		   *term = getenv("TERM");
	const char *url = getenv("JOBSCHED_URL"), *token = getenv("JOBSCHED_TOKEN_FILE");
	struct winsize size;

	c->url = url && *url ? url : NULL;
	c->token_file = token && *token ? token : NULL;
	c->now = clock_now(&clock_system);
	c->socket_given = socket && *socket ? socket : NULL;
	c->terminal = isatty(STDOUT_FILENO);
	c->colour = c->terminal && !(plain && *plain) && term && strcmp(term, "dumb") != 0;
	if (c->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		c->width = size.ws_col;
}

static int usage(const struct verb *v, const struct err *e)
{
	if (v)
		ctl_say("jobctl: %s; see 'jobctl help %s'", e->msg, v->name);
	else
		ctl_say("jobctl: %s; see 'jobctl help'", e->msg);
	return EXIT_USAGE;
}

static bool check_format(const struct verb *v, enum format f, struct err *e)
{
	if (v->formats & 1u << f)
		return true;
	return err_set(e, ERR_INVALID, "'%s' cannot be shown as %s", v->name,
		render_format_name(f));
}

static bool check_operands(const struct verb *v, const struct args *a, struct err *e)
{
	char *const *words;
	int n = (int)args_operands(a, &words);

	if (n < v->min)
		return err_set(e, ERR_INVALID, "'%s' needs %s", v->name, v->operands);
	if (v->max == 0 && n > 0)
		return err_set(e, ERR_INVALID, "'%s' takes no '%s'", v->name, words[0]);
	if (v->max > 0 && n > v->max)
		return err_set(e, ERR_INVALID, "'%s' takes only %s%s, not '%s' too", v->name,
			v->max == 1 ? "one " : "", v->operands, words[v->max]);
	return true;
}

static int run_verb(struct ctl *c, const struct verb *v, int argc, char **given)
{
	__attribute__((cleanup(words_free))) char **argv = split_http_option(&argc, given);
	AUTO(args) *a = NULL;
	AUTO_DONE(buf) help = {};
	struct err e = {};

	if (!parse_verb_options(v, argc, argv, &a, &e))
		return usage(v, &e);
	if (args_has(a, "help")) {
		help_verb(v, &help);
		return render_text(&help);
	}
	if (args_has(a, "version"))
		return verb_version(c, a);
	if (!read_globals(c, v, a, &e) || !check_format(v, c->format, &e) || !check_operands(v, a, &e))
		return usage(v, &e);
	return v->run(c, a);
}

/*
 * 'jobctl queue --help' lists all verbs of the group, although 'jobctl queue' is also 'jobctl queue
 * list'.
 */
static bool asks_about_group(char *const *words, size_t n)
{
	return n == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0) &&
	       !verb_find(verbs, words[0]) && verb_in_group(verbs, NULL, words[0]);
}

int main(int argc, char **argv)
{
	AUTO_DONE(ctl) c = {};
	AUTO(args) *a = NULL;
	AUTO_DONE(buf) help = {};
	const struct verb *v;
	struct err e = {};
	char *const *words;
	size_t n, used;

	read_terminal(&c);
	/*
	 * A fixed seed of the JSON hash tables saves a read of /dev/urandom. It is safe because the
	 * input comes from the daemon and the user.
	 */
	json_object_seed(1);
	if (!parse_verb_options(NULL, argc, argv, &a, &e) || !read_globals(&c, NULL, a, &e))
		return usage(NULL, &e);
	if (args_has(a, "help")) {
		help_all(verbs, &help);
		return render_text(&help);
	}
	if (args_has(a, "version"))
		return verb_version(&c, a);
	n = args_operands(a, &words);
	if (n == 0)
		return verb_none(&c);
	if (asks_about_group(words, n)) {
		help_group(verbs, words[0], &help);
		return render_text(&help);
	}
	v = verb_match(verbs, words, n, &used);
	if (!v)
		return suggest_verb(verbs, words, n);
	return run_verb(&c, v, (int)(n - used + 1), (char **)words + used - 1);
}
