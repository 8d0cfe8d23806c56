/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops real spawners for tests. */
#include "spawner/spawner_rig.h"
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "exec/proto/output_file.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

static void rig_up_here(struct rig *g);

static void on_report(const struct spawn_report *r, void *arg)
{
	struct rig *g = arg;
	struct rig_report *to;

	g->reports = xrealloc(g->reports, (g->n + 1) * sizeof(*g->reports));
	to = &g->reports[g->n++];
	*to = (struct rig_report){.r = *r};
	frame_text(to->error, sizeof(to->error), r->error);
	to->r.error = NULL;
}

void rig_spawner_start(struct rig *g)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT program = g->program ? xstrdup(g->program) : xprintf("%s/jobsched-spawner", build ? build : ".");
	AUTO_TEXT log = xprintf("%s/log", g->dir);
	char *own[] = {program, (char *)"--runtime-dir", g->dir, (char *)"--output-dir", g->output,
		(char *)"--linger", (char *)"20", NULL};
	char *argv[32];
	size_t n = 0;
	posix_spawn_file_actions_t files;
	int r, fd;

	for (; g->wrapper && g->wrapper[n]; n++)
		argv[n] = (char *)g->wrapper[n];
	memcpy(argv + n, own, sizeof(own));
	n += ELEMENTS(own) - 1;
	for (size_t i = 0; g->options && g->options[i]; i++)
		argv[n++] = (char *)g->options[i];
	argv[n] = NULL;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	r = posix_spawnp(&g->spawner, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	assert_int_equal(r, 0);
	for (int i = 0; i < 2000 && (fd = rig_raw(g)) < 0; i++)
		poll(NULL, 0, 10);
	assert_true(fd >= 0);
	close(fd);
}

int rig_raw(struct rig *g)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, g->sock, strlen(g->sock));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

void rig_connect(struct rig *g)
{
	struct err e = {};

	if (!spawn_client_open(g->ev, g->sock, "rig", on_report, g, &g->client, &e))
		fail_msg("%s", e.msg);
}

void rig_disconnect(struct rig *g)
{
	spawn_client_free(g->client);
	g->client = NULL;
}

/* The build directory may be below a home with mode 0700, so uid 65534 gets a copy of the program. */
static void copy_program(struct rig *g)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT copy = xprintf("install -m 755 '%s/jobsched-spawner' '%s/jobsched-spawner'", build ? build : ".", g->dir);

	assert_int_equal(system(copy), 0);
	snprintf(g->copy, sizeof(g->copy), "%s/jobsched-spawner", g->dir);
	g->program = g->copy;
}

bool rig_up_as_nobody(struct rig *g, const char *nproc)
{
	AUTO_TEXT limit = xprintf("--nproc=%s", nproc ? nproc : "");
	/* LeakSanitizer needs another process at exit, which RLIMIT_NPROC forbids. */
	const char *const wrapper[] = {"env", "ASAN_OPTIONS=detect_leaks=0", "prlimit", limit, "setpriv", "--reuid", "65534", "--regid", "65534",
		"--clear-groups", NULL};

	if (geteuid() != 0)
		return false;
	*g = (struct rig){.next_run = 1, .wrapper = nproc ? wrapper : wrapper + 4, .as_nobody = true};
	rig_up_here(g);
	g->wrapper = NULL;
	return true;
}

void rig_up(struct rig *g)
{
	*g = (struct rig){.next_run = 1};
	rig_up_here(g);
}

void rig_up_with(struct rig *g, const char *const *options)
{
	*g = (struct rig){.next_run = 1, .options = options};
	rig_up_here(g);
}

void rig_up_wrapped(struct rig *g, const char *const *wrapper, const char *const *options)
{
	*g = (struct rig){.next_run = 1, .wrapper = wrapper, .options = options};
	rig_up_here(g);
}

void rig_up_program(struct rig *g, const char *program)
{
	*g = (struct rig){.next_run = 1, .program = program};
	rig_up_here(g);
}

static void rig_up_here(struct rig *g)
{
	strcpy(g->dir, "/tmp/rig.XXXXXX");
	assert_non_null(mkdtemp(g->dir));
	snprintf(g->sock, sizeof(g->sock), "%s/spawner.sock", g->dir);
	snprintf(g->output, sizeof(g->output), "%s/output", g->dir);
	assert_true(sd_event_new(&g->ev) >= 0);
	if (g->as_nobody)
		copy_program(g);
	if (g->wrapper && !g->options)
		assert_int_equal(chown(g->dir, 65534, 65534), 0);
	rig_spawner_start(g);
	g->output_dir = open(g->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(g->output_dir >= 0);
	rig_connect(g);
}

void rig_spawner_kill(struct rig *g)
{
	kill(g->spawner, SIGKILL);
	assert_int_equal(waitpid(g->spawner, NULL, 0), g->spawner);
	g->spawner = 0;
}

size_t rig_logged(struct rig *g, const char *words)
{
	AUTO_TEXT path = xprintf("%s/log", g->dir);
	AUTO_DONE(buf) log = {};
	size_t times = 0;

	if (io_read_file(path, &log, 16 << 20) < 0 || !log.data)
		return 0;
	for (const char *at = log.data; (at = strstr(at, words)); at++)
		times++;
	return times;
}

void rig_wait_logged(struct rig *g, const char *words, size_t times)
{
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;

	while (rig_logged(g, words) < times) {
		if (clock_boot(&clock_system) >= until)
			fail_msg("the log of the spawner does not contain '%s'", words);
		sd_event_run(g->ev, 2000);
	}
}

void rig_reload(struct rig *g)
{
	size_t times = rig_logged(g, "resumed with");

	kill(g->spawner, SIGHUP);
	rig_wait_logged(g, "resumed with", times + 1);
}

void rig_down(struct rig *g)
{
	AUTO_TEXT clean = xprintf("rm -rf '%s'", g->dir);
	int status = 0;

	if (g->spawner) {
		kill(g->spawner, SIGTERM);
		assert_int_equal(waitpid(g->spawner, &status, 0), g->spawner);
	}
	rig_disconnect(g);
	sd_event_unref(g->ev);
	close(g->output_dir);
	free(g->reports);
	assert_int_equal(system(clean), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct start_plan rig_plan(struct rig *g, const char *script)
{
	struct start_plan p = {.run = g->next_run++, .fence = 1, .attempt = 1, .grace = 10 * USEC_SEC,
		.output_limit = 1 << 20};
	struct exec_spec *o = &p.spec;

	exec_spec_init(o);
	o->uid = g->as_nobody ? 65534 : geteuid();
	o->owner = xstrdup("rig");
	o->umask = 022;
	strv_add(&o->argv, "/bin/sh");
	strv_add(&o->argv, "-c");
	strv_add(&o->argv, script);
	strv_take(&o->env, xprintf("RIG=%s", g->dir));
	o->cwd = xstrdup(g->dir);
	return p;
}

void rig_start(struct rig *g, const struct start_plan *p)
{
	struct err e = {};

	if (!spawn_client_start(g->client, p, &e))
		fail_msg("%s", e.msg);
}

static bool matches(const struct rig_report *r, enum spawn_report_kind kind, int64_t run)
{
	return r->r.kind == kind && (run == 0 || r->r.run == run);
}

size_t rig_count(const struct rig *g, enum spawn_report_kind kind, int64_t run)
{
	size_t count = 0;

	for (size_t i = 0; i < g->n; i++)
		count += matches(&g->reports[i], kind, run);
	return count;
}

void rig_spin(struct rig *g, usec_t time)
{
	usec_t until = clock_boot(&clock_system) + time, now;

	while ((now = clock_boot(&clock_system)) < until)
		sd_event_run(g->ev, (uint64_t)(until - now));
}

/* Each report is returned once; a second wait needs a second report. */
const struct rig_report *rig_wait(struct rig *g, enum spawn_report_kind kind, int64_t run)
{
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;

	for (;;) {
		for (size_t i = 0; i < g->n; i++)
			if (matches(&g->reports[i], kind, run)) {
				static struct rig_report found;

				found = g->reports[i];
				found.r.error = found.error;
				g->reports[i].r.kind = SPAWN_REPORT_MAX;
				return &found;
			}
		if (clock_boot(&clock_system) >= until)
			fail_msg("no report of kind %d for run %lld", (int)kind, (long long)run);
		sd_event_run(g->ev, 100000);
	}
}

const struct rig_report *rig_run(struct rig *g, const struct start_plan *p)
{
	const struct rig_report *end;

	rig_start(g, p);
	rig_wait(g, SPAWN_STARTED, p->run);
	end = rig_wait(g, SPAWN_ENDED, p->run);
	spawn_client_ack(g->client, p->run, p->fence);
	return end;
}

const struct rig_report *rig_script(struct rig *g, const char *script)
{
	AUTO_DONE(start_plan) p = rig_plan(g, script);

	return rig_run(g, &p);
}

char *rig_output(struct rig *g, const struct rig_report *end, size_t *ret_len)
{
	AUTO_FD fd = output_file_open(g->output_dir, end->r.run, end->r.attempt);
	AUTO_DONE(buf) b = {};
	int64_t at = 0;
	size_t n = 1;

	while (fd >= 0 && n) {
		struct err e = {};

		if (!output_file_read(fd, at, buf_room(&b, 65536), 65536, &at, &n, &e))
			fail_msg("%s", e.msg);
		b.len += n;
		at += (int64_t)n;
	}
	if (ret_len)
		*ret_len = b.len;
	if (b.data)
		b.data[b.len] = '\0';
	return buf_steal(&b);
}

void rig_expect(struct rig *g, const char *script, const char *output)
{
	const struct rig_report *end = rig_script(g, script);
	AUTO_TEXT out = rig_output(g, end, NULL);

	assert_string_equal(out, output);
	assert_int_equal(end->r.exit_code, 0);
	assert_int_equal(end->r.outcome, ATTEMPT_SUCCEEDED);
}

bool rig_wait_gone(pid_t pid)
{
	AUTO_TEXT path = xprintf("/proc/%d/stat", (int)pid);
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;

	do {
		AUTO_DONE(buf) stat = {};
		const char *state;

		if (io_read_file(path, &stat, 4096) < 0)
			return true;
		state = strrchr(stat.data, ')');
		if (state && state[2] == 'Z')
			return true;
		poll(NULL, 0, 5);
	} while (clock_boot(&clock_system) < until);
	return false;
}

pid_t rig_file_pid(struct rig *g, const char *name)
{
	AUTO_TEXT path = xprintf("%s/%s", g->dir, name);
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;

	do {
		AUTO_DONE(buf) text = {};

		if (io_read_file(path, &text, 4096) == 0 && strchr(text.data ? text.data : "", '\n'))
			return (pid_t)strtol(text.data, NULL, 10);
		sd_event_run(g->ev, 5000);
	} while (clock_boot(&clock_system) < until);
	fail_msg("the job did not write '%s'", name);
	return -1;
}

size_t rig_file_size(struct rig *g, const char *name)
{
	AUTO_TEXT path = xprintf("%s/%s", g->dir, name);
	struct stat st;

	return stat(path, &st) < 0 ? 0 : (size_t)st.st_size;
}

void rig_touch(struct rig *g, const char *name)
{
	AUTO_TEXT path = xprintf("%s/%s", g->dir, name);

	assert_int_equal(io_write_file(path, "", 0, 0600), 0);
}

void rig_expect_serving(struct rig *g)
{
	rig_disconnect(g);
	rig_connect(g);
	assert_int_equal(rig_script(g, "exit 0")->r.outcome, ATTEMPT_SUCCEEDED);
}
