/* SPDX-License-Identifier: Apache-2.0 */
/* The commands at, atq, atrm and batch: options, messages and exit status of Debian's at. */
#include "at/at_command.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/at_time.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "jobctl/local_zone.h"
#include "spool/client.h"
#include "spool/request.h"
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GO_ON (-1)

int at_fail(const struct at_command *c, const char *fmt, ...)
{
	AUTO_TEXT text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvprintf(fmt, ap);
	va_end(ap);
	ctl_say("%s: %s", c->program, text);
	return EXIT_FAILURE;
}

static int usage(void)
{
	fputs("Usage: at [-V] [-q x] [-f file] [-u username] [-mMlbv] timespec ...\n"
	      "       at [-V] [-q x] [-f file] [-u username] [-mMlbv] -t time\n"
	      "       at -c job ...\n"
	      "       at [-V] -l [-o timeformat] [job ...]\n"
	      "       atq [-V] [-q x] [-o timeformat] [job ...]\n"
	      "       at [ -rd ] job ...\n"
	      "       atrm [-V] job ...\n"
	      "       batch\n",
		stderr);
	return EXIT_FAILURE;
}

/* ---- programs ---- */

enum action { ACTION_ADD, ACTION_LIST, ACTION_REMOVE, ACTION_PRINT };

static const struct program {
	const char *name;
	enum action action;
	const char *options;
} programs[] = {
	{"at", ACTION_ADD, "q:f:Mmu:bvlrdhVct:"},
	{"atq", ACTION_LIST, "hq:Vo:"},
	{"atrm", ACTION_REMOVE, "hV"},
};

static const struct program *find_program(const char *name)
{
	for (size_t i = 1; i < ELEMENTS(programs); i++)
		if (strcmp(programs[i].name, name) == 0)
			return &programs[i];
	return &programs[0];
}

/* ---- options ---- */

struct reading {
	struct at_command *command;
	const char *options; /* that may follow */
	enum action action;
	bool version;
};

/* GO_ON, or the exit status. */
typedef int option_fn(struct reading *r, const char *arg);

static int on_help(struct reading *r, const char *arg)
{
	(void)r;
	(void)arg;
	return usage();
}

static int on_verify(struct reading *r, const char *arg)
{
	(void)arg;
	r->command->verify = true;
	return GO_ON;
}

static int on_mail(struct reading *r, const char *arg)
{
	(void)arg;
	r->command->mail = AT_MAIL_ALWAYS;
	return GO_ON;
}

static int on_no_mail(struct reading *r, const char *arg)
{
	(void)arg;
	r->command->mail = AT_MAIL_NEVER;
	return GO_ON;
}

static int on_mail_to(struct reading *r, const char *arg)
{
	r->command->mail_to = arg;
	return GO_ON;
}

static int on_file(struct reading *r, const char *arg)
{
	r->command->input = arg;
	return GO_ON;
}

/* '=' is the queue of the running jobs. */
static int on_queue(struct reading *r, const char *arg)
{
	if (strlen(arg) != 1 || !(isalpha((unsigned char)*arg) || *arg == '='))
		return usage();
	r->command->queue = *arg;
	return GO_ON;
}

static int on_remove(struct reading *r, const char *arg)
{
	(void)arg;
	if (r->action != ACTION_ADD)
		return usage();
	r->action = ACTION_REMOVE;
	r->options = "V";
	return GO_ON;
}

static int on_list(struct reading *r, const char *arg)
{
	(void)arg;
	if (r->action != ACTION_ADD)
		return usage();
	r->action = ACTION_LIST;
	r->options = "q:V";
	return GO_ON;
}

static int on_batch(struct reading *r, const char *arg)
{
	(void)arg;
	if (r->action != ACTION_ADD)
		return usage();
	r->command->batch = true;
	return GO_ON;
}

static int on_version(struct reading *r, const char *arg)
{
	(void)arg;
	r->version = true;
	return GO_ON;
}

static int on_print(struct reading *r, const char *arg)
{
	(void)arg;
	r->action = ACTION_PRINT;
	r->options = "";
	return GO_ON;
}

static int on_format(struct reading *r, const char *arg)
{
	r->command->format = arg;
	return GO_ON;
}

static int on_time(struct reading *r, const char *arg)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_TEXT name = local_zone();
	struct at_time_context at = {.now = r->command->ctl.now / USEC_SEC};
	struct err e = {};

	if (!zone_cache_get(zones, name, &at.zone, &e))
		return at_fail(r->command, "%s", e.msg);
	if (at_time_posix(&at, arg, &r->command->time) == AT_TIME_OK)
		return GO_ON;
	ctl_say("invalid date format: %s", arg);
	return EXIT_FAILURE;
}

static const struct {
	int letter;
	option_fn *read;
} options[] = {
	{'h', on_help},
	{'v', on_verify},
	{'m', on_mail},
	{'M', on_no_mail},
	{'u', on_mail_to},
	{'f', on_file},
	{'q', on_queue},
	{'r', on_remove},
	{'d', on_remove},
	{'l', on_list},
	{'b', on_batch},
	{'V', on_version},
	{'c', on_print},
	{'t', on_time},
	{'o', on_format},
};

static int read_option(struct reading *r, int letter, const char *arg)
{
	for (size_t i = 0; i < ELEMENTS(options); i++)
		if (options[i].letter == letter)
			return options[i].read(r, arg);
	return usage();
}

static int read_options(struct reading *r, int argc, char **argv)
{
	int letter, code;

	while ((letter = getopt(argc, argv, r->options)) != -1)
		if ((code = read_option(r, letter, optarg)) != GO_ON)
			return code;
	r->command->words = argv + optind;
	r->command->n = (size_t)(argc - optind);
	if (!r->version)
		return GO_ON;
	fputs("at version " PACKAGE_VERSION " (jobsched)\n", stderr);
	return EXIT_SUCCESS;
}

/* ---- permission ---- */

/* /etc/at.deny may be unreadable for users, so jobsched-crontab reads it. */
static bool check_permission(const struct at_command *c)
{
	struct spool_request request = {.operation = SPOOL_AT_ACCESS, .body = ""};
	AUTO_DONE(spool_reply) reply = {};
	struct err e = {};

	if (getuid() == 0)
		return true;
	if (!spool_client_call(&request, &reply, &e)) {
		at_fail(c, "%s", e.msg);
		return false;
	}
	if (reply.status == SPOOL_OK)
		return true;
	if (reply.status == SPOOL_BUSY)
		at_fail(c, "too many requests at a time; try again in a few seconds");
	else if (reply.status == SPOOL_FAILED)
		at_fail(c, "%s", reply.body.data ? reply.body.data : "jobsched-crontab failed");
	else
		fprintf(stderr, "You do not have permission to use %.100s.\n", c->program);
	return false;
}

static int run_action(struct reading *r)
{
	struct at_command *c = r->command;

	if (!check_permission(c))
		return EXIT_FAILURE;
	switch (r->action) {
	case ACTION_LIST:
		return list_jobs(c);
	case ACTION_REMOVE:
		return c->n ? remove_jobs(c) : usage();
	case ACTION_PRINT:
		return c->n ? print_jobs(c) : usage();
	case ACTION_ADD:
		break;
	}
	return c->queue == '=' ? usage() : submit_job(c);
}

/* 'batch' is 'at -q b now'. */
static int read_batch(struct at_command *c, int argc)
{
	static char *const now[] = {(char *)"now", NULL};

	if (argc > 1) {
		puts("batch accepts no parameters");
		return EXIT_FAILURE;
	}
	c->queue = 'b';
	c->words = now;
	c->n = 1;
	return GO_ON;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
	const char *socket = getenv("JOBSCHED_SOCKET");
	struct at_command c = {.program = base_name(argc > 0 ? argv[0] : "at"),
		.format = AT_TIME_FORMAT,
		.ctl = {.where = WHERE_SYSTEM}};
	const struct program *program = find_program(c.program);
	struct reading r = {
		.command = &c, .action = program->action, .options = program->options};
	int code;

	json_object_seed(1);
	c.ctl.now = clock_now(&clock_system);
	c.ctl.socket_given = socket && *socket ? socket : NULL;
	if (strcmp(c.program, "batch") == 0) {
		code = read_batch(&c, argc);
		c.program = "at";
	} else {
		code = read_options(&r, argc, argv);
	}
	if (code == GO_ON)
		code = run_action(&r);
	ctl_done(&c.ctl);
	return code;
}
