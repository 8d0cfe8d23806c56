/* SPDX-License-Identifier: Apache-2.0 */
/* The jobschedd program: options, configuration, start of the engine. */
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "daemon/container/container.h"
#include "daemon/loop/config.h"
#include "daemon/loop/exit_status.h"
#include "daemon/engine.h"
#include "daemon/loop/journal.h"
#include "daemon/loop/program_paths.h"
#include "daemon/restore.h"
#include "store/backend/lock_guard.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

struct options {
	bool user_mode, print_config, takeover, from_now, foreground;
	const char *restore;
	const char *crontab, *crontab_mode, *log_format, *metrics;
	const char *config, *store, *state_dir, *runtime_dir, *output_dir, *instance, *node_name,
		*log_level;
};

static const struct options_row rows[] = {
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
	{"foreground", NULL, offsetof(struct options, foreground),
		"write the log to standard error, not to the journal"},
	{"crontab", "FILE", offsetof(struct options, crontab),
		"run this crontab in a container: no store, log on standard output"},
	{"crontab-mode", "MODE", offsetof(struct options, crontab_mode),
		"with --crontab: debian, cronie or strict (debian)"},
	{"log-format", "FORMAT", offsetof(struct options, log_format),
		"with --crontab: text or json (text)"},
	{"metrics", "HOST:PORT", offsetof(struct options, metrics),
		"with --crontab: serve metrics for Prometheus at this address"},
	{"takeover", NULL, offsetof(struct options, takeover),
		"accept a store that was moved from another machine"},
	{"restore", "FILE", offsetof(struct options, restore),
		"replace the store by this backup, and exit"},
	{"from-now", NULL, offsetof(struct options, from_now),
		"with --restore: skip slots missed so far"},
	{"print-config", NULL, offsetof(struct options, print_config),
		"show the configuration in effect, and exit"},
};
static const struct options_program program = {
	.name = "jobschedd",
	.usage = "usage: jobschedd [OPTIONS]\n\nRuns jobs when they are due. See jobschedd(8).\n",
	.rows = rows,
	.n = ELEMENTS(rows),
};

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

/* --crontab: runs until a signal. */
static int run_container(const struct options *o, struct config *config)
{
	struct container_options container = {.clock = &clock_system, .file = o->crontab, .metrics = o->metrics};
	struct err e = {};

	if (o->crontab_mode && !crontab_mode_parse(o->crontab_mode, &container.mode))
		err_set(&e, ERR_INVALID, "--crontab-mode: '%s' is not debian, cronie or strict", o->crontab_mode);
	container.json = o->log_format && strcmp(o->log_format, "json") == 0;
	if (o->log_format && !container.json && strcmp(o->log_format, "text") != 0)
		err_set(&e, ERR_INVALID, "--log-format: '%s' is not text or json", o->log_format);
	if (o->user_mode || o->store || o->restore || o->instance)
		err_set(&e, ERR_INVALID, "--crontab needs no store and no instance; give it alone");
	if (o->log_level)
		config_set(config, "log-level", o->log_level, &e);
	if (e.kind) {
		fprintf(stderr, "jobschedd: %s\n", e.msg);
		return 2;
	}
	container.level = (enum log_level)config->log_level;
	return container_run(&container);
}

int main(int argc, char **argv)
{
	struct options o = {};
	int status = argc == 2 && strcmp(argv[1], GUARD_OPTION) == 0
			     ? lock_guard_main()
			     : options_parse(&program, argc, argv, &o);
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
	if (o.crontab)
		return run_container(&o, &config);
	if (o.crontab_mode || o.log_format || o.metrics) {
		fprintf(stderr, "jobschedd: --crontab-mode, --log-format and --metrics need --crontab\n");
		return 2;
	}
	if (o.foreground)
		log_open("jobschedd", LOG_LEVEL_INFO, NULL);
	else
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
	log_set_format((enum log_format)config.log_format);
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
