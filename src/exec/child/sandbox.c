/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the sandbox profiles, as far as this kernel supports them. */
#include "exec/child/sandbox.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/start/sandbox_offer.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox_landlock.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DRY_RUN_FILES 256

static int namespaces_of(const struct sandbox_set *all, const struct sandbox *p)
{
	int flags = 0;

	if (p->part[SANDBOX_SYSTEM] || p->part[SANDBOX_TMP] || p->part[SANDBOX_DEV] ||
		p->part[SANDBOX_RUN] || p->part[SANDBOX_PIDS])
		flags |= CLONE_NEWNS;
	if (p->part[SANDBOX_PIDS])
		flags |= CLONE_NEWPID;
	if (p->part[SANDBOX_IPC])
		flags |= CLONE_NEWIPC;
	if (p->part[SANDBOX_NETWORK] == NETWORK_LOOPBACK ||
		(p->part[SANDBOX_NETWORK] == NETWORK_NONE && all->network < 0))
		flags |= CLONE_NEWNET;
	return flags && all->user_ns ? flags | CLONE_NEWUSER : flags;
}

/* 'profile' is moved. */
static void sandbox_prepared_init(
	struct sandbox_prepared *f, const struct sandbox_set *all, struct sandbox profile)
{
	*f = (struct sandbox_prepared){.profile = profile, .all = all, .usable = true};
	f->namespaces = namespaces_of(all, &f->profile);
	f->filter = f->profile.part[SANDBOX_CALLS] ? &all->filters[f->profile.part[SANDBOX_CALLS]]
						   : NULL;
}

static void sandbox_prepared_done(struct sandbox_prepared *f)
{
	sandbox_done(&f->profile);
	free(f->missing);
}

/* Runs the setup steps of a worker, without a command. */
static int profile_try(
	const struct sandbox_prepared *f, struct launch_stacks *l, const char **ret_stage)
{
	const struct child_limits limits = {
		.v = {{RLIMIT_NOFILE, {DRY_RUN_FILES, DRY_RUN_FILES}}}, .n = 1};
	const struct child_plan plan = {
		.sandbox = f, .cwd = "/", .parent = getpid(), .limits = &limits};
	struct child_report report;
	struct child child;
	int r = launch_child(l, &plan, &child, &report);

	if (r == 0 && launch_child_reap(&child) != 0) {
		*ret_stage = "killed";
		return -EINTR;
	}
	*ret_stage = r < 0 ? child_stage_name(&report) : NULL;
	return r;
}

static void missing_add(struct sandbox_prepared *f, const char *part, const char *stage, int error)
{
	AUTO_TEXT before = STEAL(f->missing);

	f->missing = xprintf("%s%s%s (%s: %s)", before ? before : "", before ? ", " : "", part,
		stage, strerror(error));
}

/* Tests one part alone, with the parts that it needs. */
static int profile_try_part(const struct sandbox_prepared *f, enum sandbox_part p,
	struct launch_stacks *l, const char **ret_stage)
{
	struct sandbox_prepared alone;
	struct sandbox only = {.capabilities = SANDBOX_CAPS_ALL};

	only.part[p] = f->profile.part[p];
	if (p == SANDBOX_CALLS || p == SANDBOX_LANDLOCK)
		only.part[SANDBOX_PRIVILEGES] = 1;
	sandbox_prepared_init(&alone, f->all, only);
	return profile_try(&alone, l, ret_stage);
}

/*
 * Removes the parts that this kernel does not support from the profile and lists them in 'missing'.
 */
static void sandbox_prepared_probe(struct sandbox_prepared *f, struct launch_stacks *l)
{
	const char *stage;
	int r = profile_try(f, l, &stage);

	if (f->profile.part[SANDBOX_LANDLOCK] == LANDLOCK_PROCESSES && f->all->ruleset < 0)
		f->missing = xstrdup(
			"landlock (this kernel has none; system calls that trace other processes are denied instead, "
			"but the memory of the owner's other processes can be read through /proc)");
	if (r == 0)
		return;
	for (int p = 0; p < SANDBOX_PART_MAX; p++) {
		int one = f->profile.part[p] ? profile_try_part(f, (enum sandbox_part)p, l, &stage)
					     : 0;

		if (one < 0) {
			missing_add(f, sandbox_profile_part_key((enum sandbox_part)p), stage, -one);
			f->profile.part[p] = 0;
			f->reduced = true;
			f->usable = false;
		}
	}
	f->namespaces = namespaces_of(f->all, &f->profile);
	if (!f->profile.part[SANDBOX_CALLS])
		f->filter = NULL;
	r = profile_try(f, l, &stage);
	if (r < 0) {
		missing_add(f, "its parts together", stage, -r);
		f->usable = false;
	}
}

/*
 * A network namespace in which no interface is up, shared by all runs without network. The spawner
 * has one thread.
 */
static int empty_network_open(void)
{
	AUTO_FD own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd = -1;

	if (own < 0 || unshare(CLONE_NEWNET) < 0)
		return -1;
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (setns(own, CLONE_NEWNET) < 0)
		abort(); /* the spawner and all its jobs would have no network */
	return fd;
}

static bool profiles_want(const struct sandbox_profiles *profiles, enum sandbox_part p, int value)
{
	for (size_t i = 0; i < profiles->n; i++)
		if (profiles->v[i].part[p] == value)
			return true;
	return false;
}

static void sandbox_set_prepare(
	struct sandbox_set *s, const struct sandbox_profiles *profiles, const char *init)
{
	struct err e = {};

	s->user_ns = geteuid() != 0;
	snprintf(s->uid_map, sizeof(s->uid_map), "%u %u 1", (unsigned)geteuid(),
		(unsigned)geteuid());
	snprintf(s->gid_map, sizeof(s->gid_map), "%u %u 1", (unsigned)getegid(),
		(unsigned)getegid());
	s->landlock = sandbox_landlock_version();
	s->ruleset = sandbox_landlock_processes(s->landlock);
	s->init = open(init, O_PATH | O_CLOEXEC);
	/* if this fails, the test of a PID namespace fails */
	s->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (!s->user_ns && profiles_want(profiles, SANDBOX_NETWORK, NETWORK_NONE))
		s->network = empty_network_open();
	/* a filter that this kernel rejects is found by the test of a profile that uses it */
	(void)sandbox_seccomp_filter(
		CALLS_STANDARD, s->ruleset < 0, &s->filters[CALLS_STANDARD], &e);
	(void)sandbox_seccomp_filter(CALLS_STRICT, false, &s->filters[CALLS_STRICT], &e);
}

static int offers_memfd(const struct sandbox_set *s)
{
	AUTO_DONE(buf) text = {};

	for (size_t i = 0; i < s->n; i++)
		sandbox_offer_print(&s->v[i].profile,
			s->v[i].usable && !s->v[i].profile.unavailable, s->v[i].missing, &text);
	return io_memfd_sealed("jobsched-sandboxes", text.data, text.len);
}

bool sandbox_set_open(struct sandbox_set **ret, const struct sandbox_profiles *profiles,
	bool report, const char *init, struct launch_stacks *l, struct err *e)
{
	struct sandbox_set *s = xcalloc(1, sizeof(*s));

	*s = (struct sandbox_set){
		.landlock = 0, .ruleset = -1, .network = -1, .init = -1, .self = -1, .offers = -1};
	sandbox_set_prepare(s, profiles, init);
	s->v = xcalloc(profiles->n, sizeof(*s->v));
	for (size_t i = 0; i < profiles->n; i++, s->n++) {
		struct sandbox copy;

		sandbox_profile_copy(&copy, &profiles->v[i]);
		sandbox_prepared_init(&s->v[i], s, copy);
		sandbox_prepared_probe(&s->v[i], l);
		s->v[i].usable |= report;
	}
	s->offers = offers_memfd(s);
	if (s->offers < 0) {
		err_errno(e, -s->offers, "could not store the list of sandbox profiles");
		sandbox_set_free(s);
		return false;
	}
	*ret = s;
	return true;
}

void sandbox_set_free(struct sandbox_set *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		sandbox_prepared_done(&s->v[i]);
	free(s->v);
	for (int i = 0; i < CALLS_MAX; i++)
		free(s->filters[i].filter);
	for (const int *fd = (const int[]){s->ruleset, s->network, s->init, s->self, s->offers, -2};
		*fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	free(s);
}

const struct sandbox_prepared *sandbox_set_find(
	const struct sandbox_set *s, const char *name, struct err *e)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct sandbox_prepared *f = &s->v[i];

		if (strcmp(f->profile.name, name) != 0)
			continue;
		if (f->profile.unavailable)
			err_set(e, ERR_DENIED, "sandbox profile '%s' is disabled on this machine",
				name);
		else if (!f->usable)
			err_set(e, ERR_DENIED,
				"sandbox profile '%s' is not supported by this machine: %s", name,
				f->missing);
		return !f->profile.unavailable && f->usable ? f : NULL;
	}
	err_set(e, ERR_NOT_FOUND, "this machine has no sandbox profile '%.64s'", name);
	return NULL;
}
