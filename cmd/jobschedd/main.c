/* SPDX-License-Identifier: Apache-2.0 */
/* The jobschedd program: options, configuration, start of the engine. */
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/config.h"
#include "daemon/loop/exit_status.h"
#include "daemon/engine.h"
#include "daemon/loop/journal.h"
#include "daemon/loop/program_paths.h"
#include "daemon/restore.h"
#include "store/backend/lock_guard.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

struct options {
	bool user_mode, print_config, takeover, from_now;
	const char *restore;
	const char *config, *store, *state_dir, *runtime_dir, *output_dir, *instance, *node_name,
		*log_level;
};

/* A text is stored at the offset; a flag is set to true. */
static const struct {
	const char *name, *arg;
	size_t offset;
	const char *help;
} table[] = {
	{"user", NULL, offsetof(struct options, user_mode),
		"run for the calling user, with files in the home directory"},
	{"config", "FILE", offsetof(struct options, config), "read this configuration"},
	{"store", "WHERE", offsetof(struct options, store), "SQLite file or postgresql://…"},
	{"state-dir", "DIR", offsetof(struct options, state_dir),
		"directory of the store and the output"},
	{"runtime-dir", "DIR", offsetof(struct options, runtime_dir),
		"directory of sockets and locks"},
	{"output-dir", "DIR", offsetof(struct options, output_dir),
		"directory where the spawner writes the output of jobs"},
	{"instance", "NAME", offsetof(struct options, instance),
		"name of one of several daemons on this host that share the store"},
	{"node-name", "NAME", offsetof(struct options, node_name), "name of this node"},
	{"log-level", "LEVEL", offsetof(struct options, log_level),
		"error, warning, info or debug"},
	{"takeover", NULL, offsetof(struct options, takeover),
		"accept a store that was moved from another machine"},
	{"restore", "FILE", offsetof(struct options, restore),
		"replace the store by this backup, and exit"},
	{"from-now", NULL, offsetof(struct options, from_now),
		"with --restore: skip slots missed so far"},
	{"print-config", NULL, offsetof(struct options, print_config),
		"show the configuration in effect, and exit"},
	{"help", NULL, 0, "show this help"},
	{"version", NULL, 0, "show the version"},
};
#define OPTION_HELP (ELEMENTS(table) - 2)
#define OPTION_VERSION (ELEMENTS(table) - 1)

static void jobschedd_help_print(FILE *out)
{
	fputs("usage: jobschedd [OPTIONS]\n\nRuns jobs when they are due. See jobschedd(8).\n\n",
		out);
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		char name[48];

		snprintf(name, sizeof(name), "--%s%s%s", table[i].name, table[i].arg ? " " : "",
			table[i].arg ? table[i].arg : "");
		fprintf(out, "  %-22s %s\n", name, table[i].help);
	}
}

static void jobschedd_option_set(struct options *o, size_t i)
{
	char *at = (char *)o + table[i].offset;

	if (table[i].arg)
		*(const char **)at = optarg;
	else
		*(bool *)at = true;
}

/* -1: continue; otherwise the exit status. */
static int jobschedd_options_parse(int argc, char **argv, struct options *o)
{
	struct option longs[ELEMENTS(table) + 1] = {};
	int c, i = 0;

	for (size_t k = 0; k < ELEMENTS(table); k++)
		longs[k] = (struct option){
			table[k].name, table[k].arg ? required_argument : no_argument, NULL, 0};
	while ((c = getopt_long(argc, argv, "", longs, &i)) == 0) {
		if (i == OPTION_HELP) {
			jobschedd_help_print(stdout);
			return 0;
		}
		if (i == OPTION_VERSION) {
			puts("jobschedd " PACKAGE_VERSION);
			return 0;
		}
		jobschedd_option_set(o, (size_t)i);
	}
	if (c == -1 && optind == argc)
		return -1;
	if (c == -1)
		fprintf(stderr, "jobschedd: unexpected argument '%s'\n", argv[optind]);
	fputs("try 'jobschedd --help'\n", stderr);
	return 2;
}

struct config_source {
	const struct options *options;
	const char *path;
};

/* Options of the command line override the file. */
static bool read_config(struct config *c, void *arg, struct err *e)
{
	const struct config_source *from = arg;
	const struct options *o = from->options;

	return config_read(c, from->path, o->config != NULL, e) &&
	       (!o->store || config_set(c, "store", o->store, e)) &&
	       (!o->node_name || config_set(c, "node-name", o->node_name, e)) &&
	       (!o->log_level || config_set(c, "log-level", o->log_level, e));
}

static bool find_paths(const struct options *o, struct paths *ret, struct err *e)
{
	return paths_find(&(struct paths_options){.user_mode = o->user_mode,
				  .instance = o->instance,
				  .state_dir = o->state_dir,
				  .runtime_dir = o->runtime_dir,
				  .output_dir = o->output_dir},
		       ret, e) &&
	       (!o->user_mode || program_paths_prepare(ret, e));
}

int main(int argc, char **argv)
{
	struct options o = {};
	int status = argc == 2 && strcmp(argv[1], GUARD_OPTION) == 0
			     ? lock_guard_main()
			     : jobschedd_options_parse(argc, argv, &o);
	AUTO_DONE(paths) paths = {};
	AUTO_DONE(config) config = {};
	struct config_source source = {&o, NULL};
	AUTO_TEXT own_name = NULL;
	struct utsname host = {};
	struct err e = {};

	if (status >= 0)
		return status;
	umask(077);
	uname(&host);
	config_init(&config);
	journal_open("jobschedd", host.nodename);
	if (!failpoints_open(&e) || !find_paths(&o, &paths, &e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	source.path = o.config ? o.config : paths.config;
	if (!read_config(&config, &source, &e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	if (o.print_config) {
		config_print(&config, stdout);
		return 0;
	}
	log_set_level((enum log_level)config.log_level);
	if (o.restore)
		return restore_run(&(struct restore_command){.clock = &clock_system,
					   .backup = o.restore,
					   .from_now = o.from_now,
					   .instance = o.instance},
			&paths, &config);
	own_name =
		o.instance ? xprintf("%s-%s", host.nodename, o.instance) : xstrdup(host.nodename);
	if (config.node_name)
		log_set_node(config.node_name);
	return engine_run(&(struct engine_options){
		.clock = &clock_system,
		.user_mode = o.user_mode,
		.takeover = o.takeover,
		.instance = o.instance,
		.paths = &paths,
		.config = &config,
		.node_name = config.node_name ? config.node_name : own_name,
		.read_config = read_config,
		.arg = &source,
	});
}
