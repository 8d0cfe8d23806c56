/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the entries of one crontab when they are due. */
#include "daemon/container/container.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/local_zone.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/crontab/crontab_job.h"
#include "core/crontab/line_identity.h"
#include "core/time/schedule.h"
#include "core/time/zone_cache.h"
#include "daemon/container/container_log.h"
#include "daemon/container/container_metrics.h"
#include "daemon/container/container_process.h"
#include "daemon/loop/alarm.h"
#include "daemon/loop/exit_status.h"
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define LATE_MAX USEC_MIN         /* a slot that is later than this is missed */
#define BACK_MAX (3 * USEC_HOUR)  /* a clock that is set back by less repeats no slot, as in cron */
#define RUNNING_MAX 100           /* processes of one entry; cron has no limit */
#define WALK_MAX 10000            /* missed slots that are counted */

/* An entry that has slots. */
struct due_entry {
	char *job;
	const struct crontab_entry *entry; /* of the table */
	struct schedule *schedule;
	struct strv env;
	usec_t slot, due;                  /* the next one, and when it starts; USEC_NEVER: none */
	usec_t last;                       /* slot of the last start; 0: none */
};

/* A table that was read. */
struct loaded {
	struct crontab *table;
	struct due_entry *v;
	size_t n;
};

struct container {
	const struct container_options *o;
	struct container_log log;
	sd_event *ev;
	struct alarm *alarm;
	struct zone_cache *zones;
	char *zone, *home, *user;
	struct loaded now;
	struct container_processes *processes;
	struct container_metrics *metrics;
	bool stopping;
};

static void loaded_done(struct loaded *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].job);
		schedule_free(l->v[i].schedule);
		strv_done(&l->v[i].env);
	}
	free(l->v);
	crontab_free(l->table);
	*l = (struct loaded){};
}

/* ---- the table ---- */

static struct container_about about(const struct due_entry *d)
{
	return (struct container_about){ .job = d->job, .line = d->entry->line };
}

static void set_variable(struct strv *env, const char *name, const char *value)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=') {
			free(env->v[i]);
			env->v[i] = xprintf("%s=%s", name, value);
			return;
		}
	strv_take(env, xprintf("%s=%s", name, value));
}

/* The environment of the container, then the settings of the table. */
static void build_env(const struct container *c, const struct crontab *t, struct due_entry *d)
{
	const char *path = getenv("PATH");

	for (char *const *v = environ; *v; v++)
		if (strchr(*v, '='))
			strv_add(&d->env, *v);
	set_variable(&d->env, "HOME", c->home);
	set_variable(&d->env, "SHELL", CRONTAB_SHELL);
	if (!path)
		set_variable(&d->env, "PATH", CRONTAB_PATH);
	for (size_t i = 0; i < d->entry->settings; i++)
		set_variable(&d->env, t->settings[i].name, t->settings[i].value);
	set_variable(&d->env, "LOGNAME", c->user);
	set_variable(&d->env, "USER", c->user);
}

static bool open_entry(const struct container *c, const struct crontab *t, const struct crontab_entry *e,
	struct line_identities *seen, struct due_entry *ret, struct err *err)
{
	struct schedule_context context = { .anchor = clock_now(c->o->clock), .accepted = true };
	unsigned char identity[SHA256_LEN];
	AUTO_DONE(buf) text = {};

	crontab_job_identity(seen, e, NULL, NULL, identity);
	*ret = (struct due_entry){ .entry = e, .slot = USEC_NEVER, .due = USEC_NEVER };
	crontab_schedule(e, &text);
	if (!zone_cache_get(c->zones, e->zone ? e->zone : c->zone, &context.zone, err) ||
		!schedule_parse(text.data, &context, &ret->schedule, err))
		return false;
	ret->job = line_name(e->command, identity);
	build_env(c, t, ret);
	return true;
}

static void log_findings(const struct container *c, const struct crontab *t)
{
	static const enum log_level levels[] = { LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

	for (size_t i = 0; i < t->n_findings; i++) {
		const struct crontab_finding *f = &t->findings[i];
		const struct container_about a = { .line = f->line, .column = f->column };

		container_log_message(&c->log, levels[f->level], &a, "%s: %s (%s)", c->o->file, f->text, f->code);
	}
}

/* The entries of an accepted table. A zone that does not exist disables its entries. */
static void open_entries(const struct container *c, struct loaded *l)
{
	AUTO_DONE(line_identities) seen = {};

	l->v = xcalloc(l->table->n_entries + 1, sizeof *l->v);
	for (size_t i = 0; i < l->table->n_entries; i++) {
		const struct crontab_entry *e = &l->table->entries[i];
		struct err err = {};

		if (open_entry(c, l->table, e, &seen, &l->v[l->n], &err))
			l->n++;
		else
			container_log_message(&c->log, LOG_LEVEL_ERROR, &(struct container_about){ .line = e->line },
				"%s: the entry is not used: %s", c->o->file, err.msg);
	}
}

/* False: cron would run nothing of this table although it has entries, or it cannot be read. */
static bool load_table(const struct container *c, struct loaded *ret)
{
	const struct crontab_options o = { .mode = c->o->mode, .seed = c->o->file, .no_logging = geteuid() == 0 };
	AUTO_DONE(buf) data = {};
	int r = io_read_file(c->o->file, &data, CRONTAB_BYTES_MAX);
	size_t refused;

	if (r < 0) {
		container_log_message(&c->log, LOG_LEVEL_ERROR, NULL, "cannot read the crontab '%s': %s", c->o->file,
			strerror(-r));
		return false;
	}
	crontab_parse(data.data ? data.data : "", data.len, &o, &ret->table);
	log_findings(c, ret->table);
	refused = ret->table->count[CRONTAB_LINE_REFUSED];
	if (ret->table->accepted)
		open_entries(c, ret);
	if (!ret->table->accepted || (ret->n == 0 && (refused || ret->table->n_entries))) {
		container_log_message(&c->log, LOG_LEVEL_ERROR, NULL, "nothing of '%s' is run: correct the errors above; "
			"'jobctl import crontab --dry-run' explains each line", c->o->file);
		return false;
	}
	return true;
}

/* ---- slots ---- */

static void set_next(struct container *c, struct due_entry *d, usec_t after)
{
	int64_t delay = d->entry->delay_minutes;

	(void)c;
	d->slot = d->due = USEC_NEVER;
	if (d->entry->reboot || d->entry->never || !schedule_next(d->schedule, after, &d->slot))
		return;
	d->due = d->slot + (delay ? io_random_upto(delay * USEC_MIN) : 0);
}

static void start_entry(struct container *c, struct due_entry *d)
{
	const char *shell = crontab_get(c->now.table, d->entry, "SHELL"), *home = crontab_get(c->now.table, d->entry, "HOME");
	const struct container_about a = about(d);
	struct err e = {};

	if (container_processes_running(c->processes, d->job) >= RUNNING_MAX) {
		container_log_message(&c->log, LOG_LEVEL_ERROR, &a, "not started: %d of its runs have not ended", RUNNING_MAX);
		return;
	}
	if (!container_process_start(c->processes, &(struct container_start){ .job = d->job,
			.line = d->entry->line,
			.shell = shell ? shell : CRONTAB_SHELL,
			.command = d->entry->command,
			.input = d->entry->input,
			.directory = home ? home : c->home,
			.env = d->env.v }, &e))
		container_log_message(&c->log, LOG_LEVEL_ERROR, &a, "not started: %s", e.msg);
}

/* Slots that passed while the machine was suspended or the clock was set ahead. */
static void skip_missed(struct container *c, struct due_entry *d, usec_t now)
{
	const struct container_about a = about(d);
	int missed = 0;

	while (d->due != USEC_NEVER && now - d->due >= LATE_MAX && missed < WALK_MAX) {
		missed++;
		set_next(c, d, d->slot);
	}
	if (missed == WALK_MAX)
		set_next(c, d, now);
	if (missed)
		container_log_message(&c->log, LOG_LEVEL_WARNING, &a, "%d slots passed while the clock was ahead of this program",
			missed);
}

static void pump(struct container *c)
{
	usec_t now = clock_now(c->o->clock), earliest = USEC_NEVER;

	for (size_t i = 0; i < c->now.n && !c->stopping; i++) {
		struct due_entry *d = &c->now.v[i];

		skip_missed(c, d, now);
		if (d->due <= now) {
			d->last = d->slot;
			start_entry(c, d);
			set_next(c, d, d->slot);
		}
		if (d->due < earliest)
			earliest = d->due;
	}
	alarm_set(c->alarm, c->stopping ? USEC_NEVER : earliest);
}

/* After a change of the clock all slots are computed again. */
static void on_alarm(bool clock_set, void *arg)
{
	struct container *c = arg;
	usec_t now = clock_now(c->o->clock);

	for (size_t i = 0; clock_set && i < c->now.n; i++) {
		struct due_entry *d = &c->now.v[i];

		if (d->slot != USEC_NEVER && d->slot <= now)
			continue; /* pump() starts or skips it */
		set_next(c, d, d->last > now && d->last - now <= BACK_MAX ? d->last : now);
	}
	pump(c);
}

static void begin_table(struct container *c, bool boot)
{
	usec_t now = clock_now(c->o->clock);
	size_t waiting = 0;

	for (size_t i = 0; i < c->now.n; i++) {
		struct due_entry *d = &c->now.v[i];

		set_next(c, d, now);
		waiting += d->due != USEC_NEVER;
		if (d->entry->reboot && boot)
			start_entry(c, d);
	}
	container_metrics_set_entries(c->metrics, c->now.n);
	container_log_message(&c->log, LOG_LEVEL_INFO, NULL, "%s: %zu entries, %zu of them with a next time, zone %s, mode %s",
		c->o->file, c->now.n, waiting, c->zone, crontab_mode_names[c->o->mode]);
	pump(c);
}

/* ---- signals ---- */

static void on_idle(void *arg)
{
	struct container *c = arg;

	if (c->stopping)
		sd_event_exit(c->ev, 0);
}

static int on_child(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct container *c = arg;

	(void)source;
	(void)si;
	container_processes_reap(c->processes);
	return 0;
}

/* The first signal is passed on, and the program waits for its commands. The second one kills them. */
static int on_stop(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct container *c = arg;
	size_t running = container_processes_running(c->processes, NULL);

	(void)source;
	container_log_message(&c->log, LOG_LEVEL_INFO, NULL, "stopping on signal %u; %zu commands are running", si->ssi_signo,
		running);
	container_processes_signal(c->processes, c->stopping ? SIGKILL : (int)si->ssi_signo);
	c->stopping = true;
	pump(c);
	if (running == 0)
		sd_event_exit(c->ev, 0);
	return 0;
}

static int on_pass(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct container *c = arg;

	(void)source;
	container_processes_signal(c->processes, (int)si->ssi_signo);
	return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct container *c = arg;
	AUTO_DONE(loaded) fresh = {};
	struct loaded old = c->now;

	(void)source;
	(void)si;
	if (c->stopping || !load_table(c, &fresh)) {
		container_log_message(&c->log, LOG_LEVEL_ERROR, NULL, "the table was not read again; the old one stays in use");
		return 0;
	}
	c->now = fresh;
	fresh = old; /* freed at the end */
	begin_table(c, false);
	return 0;
}

static bool watch_signals(struct container *c, struct err *e)
{
	static const struct {
		int number;
		sd_event_signal_handler_t fn;
	} signals[] = { { SIGCHLD, on_child }, { SIGTERM, on_stop }, { SIGINT, on_stop }, { SIGHUP, on_reload },
		{ SIGUSR1, on_pass }, { SIGUSR2, on_pass }, { SIGQUIT, on_pass } };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTS(signals); i++)
		sigaddset(&set, signals[i].number);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ELEMENTS(signals); i++) {
		int r = sd_event_add_signal(c->ev, NULL, signals[i].number, signals[i].fn, c);

		if (r < 0)
			return err_errno(e, -r, "cannot watch signal %d", signals[i].number);
	}
	return true;
}

/* ---- start ---- */

/* A uid without an account has its number as its name. */
static void find_user(struct container *c)
{
	const struct passwd *pw = getpwuid(geteuid());
	const char *home = getenv("HOME");

	c->user = pw ? xstrdup(pw->pw_name) : xprintf("%ju", (uintmax_t)geteuid());
	c->home = xstrdup(home && home[0] == '/' ? home : pw && pw->pw_dir[0] == '/' ? pw->pw_dir : "/");
	c->zone = local_zone();
}

static bool serve_metrics(struct container *c, struct err *e)
{
	AUTO_TEXT address = NULL;

	if (!c->o->metrics)
		return true;
	if (!container_metrics_listen(c->metrics, c->ev, c->o->metrics, &address, e))
		return false;
	container_log_message(&c->log, LOG_LEVEL_INFO, NULL, "metrics at http://%s/metrics", address);
	return true;
}

static int run_loop(struct container *c)
{
	struct err e = {};
	int r = sd_event_default(&c->ev);

	if (r < 0) {
		container_log_message(&c->log, LOG_LEVEL_ERROR, NULL, "cannot create an event loop: %s", strerror(-r));
		return EXIT_FAILURE;
	}
	c->metrics = container_metrics_new();
	c->processes = container_processes_new(c->ev, &c->log, c->metrics, on_idle, c);
	if (!watch_signals(c, &e) || !alarm_new(c->ev, on_alarm, c, &c->alarm, &e) || !serve_metrics(c, &e)) {
		container_log_message(&c->log, LOG_LEVEL_ERROR, NULL, "%s", e.msg);
		return e.kind == ERR_INVALID ? EXIT_CONFIG : EXIT_FAILURE;
	}
	begin_table(c, true);
	r = sd_event_loop(c->ev);
	return r < 0 ? EXIT_FAILURE : r;
}

int container_run(const struct container_options *o)
{
	struct container c = { .o = o, .log = { .clock = o->clock, .json = o->json, .level = o->level },
		.zones = zone_cache_new(tzfile_read) };
	int status = EXIT_CONFIG;

	find_user(&c);
	/* orphans of commands become children of this program, also if it is not process 1 */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (load_table(&c, &c.now))
		status = run_loop(&c);
	loaded_done(&c.now);
	container_processes_free(c.processes);
	container_metrics_free(c.metrics);
	alarm_free(c.alarm);
	sd_event_unref(c.ev);
	zone_cache_free(c.zones);
	free(c.zone);
	free(c.home);
	free(c.user);
	return status;
}
