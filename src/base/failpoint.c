/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the failpoints of the environment, counts passages and executes actions. */
#include "base/failpoint.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ARMED_MAX 16
#define TEXT_MAX 80
#define PATH_LEN 1024

/*
 * Not instrumented: a child that shares the memory of its creator runs on a stack that the
 * sanitizer does not know.
 */
#define BARE __attribute__((no_sanitize("address", "undefined"), noinline))

static const struct point {
	const char *name;
	bool fails; /* the step can fail, so the action 'error' is allowed */
} points[FAILPOINT_MAX] = {
	[FP_SUBMIT_PRE] = {"submit.pre_commit", true},
	[FP_SUBMIT_POST] = {"submit.post_commit_pre_reply", true},
	[FP_MAT_PRE] = {"mat.pre_commit", true},
	[FP_MAT_POST] = {"mat.post_commit", true},
	[FP_GRANT_PRE] = {"grant.pre_commit", true},
	[FP_GRANT_POST] = {"grant.post_commit_pre_spawn", true},
	[FP_GRANT_SEND] = {"grant.pre_send", true}, /* after the lease was checked */
	[FP_START_PRE] = {"start.pre_commit", true},
	[FP_START_POST] = {"start.post_commit", true},
	[FP_RESULT_PRE] = {"result.pre_commit", true},
	[FP_RESULT_POST] = {"result.post_commit", true},
	[FP_STATE_PART] = {"state.pre_part", false}, /* before a part of the state of a run is stored */
	[FP_RESULT_ACK] = {"result.post_commit_pre_ack", false},
	[FP_RETRY_PRE] = {"retry.pre_commit", true},
	[FP_RETRY_POST] = {"retry.post_commit", true},
	[FP_DEAD_PRE] = {"dead.pre_commit", true},
	[FP_DEAD_POST] = {"dead.post_commit", true},
	[FP_LOST_PRE] = {"lost.pre_commit", true},
	[FP_LOST_POST] = {"lost.post_commit", true},
	[FP_GIVE_BACK_PRE] = {"giveback.pre_commit", true},
	[FP_GIVE_BACK_POST] = {"giveback.post_commit", true},
	[FP_CANCEL_PRE] = {"cancel.pre_commit", true},
	[FP_CANCEL_POST] = {"cancel.post_commit", true},
	[FP_DELETE_PRE] = {"delete.pre_commit", true},
	[FP_DELETE_POST] = {"delete.post_commit", true},
	[FP_RENEW_PRE] = {"renew.pre_commit", true},
	[FP_RENEW_POST] = {"renew.post_commit", true},
	[FP_LEAD_TAKE] = {"lead.pre_take", true},
	[FP_LEAD_TAKEN] = {"lead.post_take", true},
	[FP_LEAD_RENEW] = {"lead.pre_renew", true},
	[FP_REAP_PRE] = {"reap.pre_commit", true},
	[FP_REAP_POST] = {"reap.post_commit", true},
	[FP_SPREAD_PRE] = {"spread.pre_commit", true},
	[FP_SPREAD_POST] = {"spread.post_commit", true},
	[FP_ADOPT_PRE] = {"adopt.pre_commit", true},
	[FP_ADOPT_POST] = {"adopt.post_commit", true},
	[FP_LEAVE_PRE] = {"leave.pre_commit", true},
	[FP_LEAVE_POST] = {"leave.post_commit", true},
	[FP_CHECKPOINT_PRE] = {"checkpoint.pre", true},
	[FP_CHECKPOINT_POST] = {"checkpoint.post", true},
	[FP_MIGRATE] = {"migrate.step", true}, /* @N: migration N of a new store */
	[FP_SPAWN_FORK] = {"spawn.pre_fork", true},
	[FP_SPAWN_FORKED] = {"spawn.post_fork_pre_record", false},
	[FP_SPAWN_DROP] = {"spawn.child_pre_drop", true},
	[FP_SPAWN_EXEC] = {"spawn.child_pre_exec", true},
	[FP_SPAWN_TELL] = {"spawn.post_record", false},
	[FP_CANCEL_SIGNAL] = {"cancel.pre_signal", false},
	[FP_CANCEL_SIGNALLED] = {"cancel.post_signal", false},
	[FP_END_WAITED] = {"end.post_wait_pre_result", false},
	[FP_END_TELL] = {"end.pre_report", false},
	[FP_ENDS_RENAME] = {"end.post_result_pre_rename", true},
	[FP_RELOAD] = {"reload.pre_exec", true},
	[FP_CALL_SEND] = {"call.pre_send", true},
	[FP_CALL_ANSWERED] = {"call.post_answer", false},
	[FP_CALL_TELL] = {"call.pre_report", false},
	[FP_STORAGE_SEND] = {"storage.pre_send", false},
	[FP_STORAGE_ANSWERED] = {"storage.post_answer", false},
	[FP_PRUNE_PRE] = {"prune.pre_commit", true},
	[FP_PRUNE_POST] = {"prune.post_commit", false},
};

enum action { ACT_KILL, ACT_EXIT, ACT_STOP, ACT_DELAY, ACT_ERROR, ACTION_MAX };

static const struct {
	const char *name;
	int64_t max; /* of its argument; 0: it has none */
} actions[ACTION_MAX] = {
	[ACT_KILL] = {"kill", 0},
	[ACT_EXIT] = {"exit", 0},
	[ACT_STOP] = {"stop", 3600},
	[ACT_DELAY] = {"delay", 3600000},
	[ACT_ERROR] = {"error", 4095},
};

struct armed {
	enum failpoint point;
	enum action action;
	int64_t arg, nth;
	char text[TEXT_MAX]; /* the entry as given */
	char mark[PATH_LEN]; /* path of the marker file; empty: none */
};

/*
 * Global, because failpoints are in all parts of the programs. Written before the first thread is
 * started.
 */
static struct {
	struct armed v[ARMED_MAX];
	size_t n;
	_Atomic int64_t passed[FAILPOINT_MAX];
} set;

/* ---- parsing ---- */

static bool read_errno(const char *s, int64_t *ret)
{
	for (int i = 1; i < 134; i++)
		if (text_equal(strerrorname_np(i), s)) {
			*ret = i;
			return true;
		}
	return false;
}

static bool read_action(struct armed *a, char *text, const char *item, struct err *e)
{
	char *arg = strchr(text, ':');

	if (arg)
		*arg++ = '\0';
	for (a->action = 0; a->action < ACTION_MAX; a->action++)
		if (strcmp(actions[a->action].name, text) == 0)
			break;
	if (a->action == ACTION_MAX || (actions[a->action].max != 0) != (arg != NULL))
		return err_set(e, ERR_INVALID, "failpoint '%s': the action is kill, exit, stop:SECONDS, delay:MS or error:ERRNO", item);
	if (arg && !(a->action == ACT_ERROR ? read_errno(arg, &a->arg) : text_parse_int(arg, 1, actions[a->action].max, &a->arg)))
		return err_set(e, ERR_INVALID, "failpoint '%s': '%s' cannot be used with %s", item, arg, text);
	if (a->action == ACT_ERROR && !points[a->point].fails)
		return err_set(e, ERR_INVALID, "failpoint '%s': nothing can fail there", item);
	return true;
}

static bool read_item(const char *item, struct armed *a, struct err *e)
{
	AUTO_TEXT copy = xstrdup(item);
	char *action = strchr(copy, '='), *nth = action ? strchr(action, '@') : NULL;

	if (!action || strlen(item) >= TEXT_MAX)
		return err_set(e, ERR_INVALID, "failpoint '%s': write NAME=ACTION@N", item);
	*action++ = '\0';
	if (nth)
		*nth++ = '\0';
	*a = (struct armed){.nth = 1};
	strcpy(a->text, item);
	for (; a->point < FAILPOINT_MAX; a->point++)
		if (strcmp(points[a->point].name, copy) == 0)
			break;
	if (a->point == FAILPOINT_MAX)
		return err_set(e, ERR_INVALID, "failpoint '%s': there is no point of that name", item);
	if (nth && !text_parse_int(nth, 1, INT64_MAX, &a->nth))
		return err_set(e, ERR_INVALID, "failpoint '%s': '%s' is not a number of passages", item, nth);
	return read_action(a, action, item, e);
}

static bool mark_path_set(struct armed *a, const char *dir, struct err *e)
{
	AUTO_TEXT path = dir ? xprintf("%s/%s", dir, a->text) : xstrdup("");

	if (strlen(path) >= PATH_LEN)
		return err_set(e, ERR_INVALID, "the name of the failpoints' directory is too long");
	strcpy(a->mark, path);
	return true;
}

bool failpoints_open(struct err *e)
{
	AUTO_TEXT text = xstrdup(getenv("JOBSCHED_FAILPOINTS"));
	const char *dir = getenv("JOBSCHED_FAILPOINTS_DIR");
	char *save = NULL;

	memset(&set, 0, sizeof(set));
	for (char *item = text ? strtok_r(text, ",", &save) : NULL; item; item = strtok_r(NULL, ",", &save)) {
		if (set.n == ARMED_MAX)
			return err_set(e, ERR_INVALID, "more than %d failpoints", ARMED_MAX);
		if (!read_item(item, &set.v[set.n], e) || !mark_path_set(&set.v[set.n], dir, e))
			return false;
		set.n++;
	}
	return true;
}

/* ---- passing: system calls only from here on ---- */

BARE static size_t failpoint_number_put(char *to, int64_t v)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	for (size_t i = 0; i < n; i++)
		to[i] = digits[n - 1 - i];
	return n;
}

/* False: the marker file exists, so this or another process has executed the action. */
BARE static bool failpoint_mark_create(const struct armed *a)
{
	char number[20];
	long fd;

	if (!a->mark[0])
		return true;
	fd = syscall(SYS_openat, AT_FDCWD, a->mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return false;
	syscall(SYS_write, fd, number, failpoint_number_put(number, syscall(SYS_getpid)));
	syscall(SYS_close, fd);
	return true;
}

/* A timer sends SIGCONT, so that no other process has to resume this one. */
BARE static void failpoint_stop(int64_t seconds)
{
	struct sigevent resume = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	struct itimerspec at = {.it_value = {.tv_sec = seconds}};
	int timer;

	if (syscall(SYS_timer_create, CLOCK_BOOTTIME, &resume, &timer) < 0)
		syscall(SYS_exit_group, 1);
	syscall(SYS_timer_settime, timer, 0, &at, NULL);
	syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGSTOP);
	syscall(SYS_timer_delete, timer);
}

BARE static void failpoint_delay(int64_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	syscall(SYS_nanosleep, &t, NULL);
}

BARE static int failpoint_act(const struct armed *a)
{
	if (!failpoint_mark_create(a))
		return 0;
	switch (a->action) {
	case ACT_KILL:
		syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
		break;
	case ACT_EXIT:
		syscall(SYS_exit_group, 1);
		break;
	case ACT_STOP:
		failpoint_stop(a->arg);
		break;
	case ACT_DELAY:
		failpoint_delay(a->arg);
		break;
	case ACT_ERROR:
		return (int)a->arg;
	case ACTION_MAX:
		break;
	}
	return 0;
}

BARE int failpoint(enum failpoint p)
{
	int64_t nth;
	int error = 0;

	if (set.n == 0)
		return 0;
	nth = atomic_fetch_add(&set.passed[p], 1) + 1;
	for (size_t i = 0; i < set.n; i++)
		if (set.v[i].point == p && set.v[i].nth == nth)
			error = failpoint_act(&set.v[i]);
	return error;
}

/* After any other error the result of the step is unknown. */
static enum err_kind errno_kind(int error)
{
	switch (error) {
	case EAGAIN:
	case EBUSY:
		return ERR_BUSY;
	case ENOSPC:
		return ERR_FULL;
	case ECONNREFUSED:
	case ECONNRESET:
		return ERR_UNREACHABLE;
	default:
		return ERR_UNCERTAIN;
	}
}

bool failpoint_ok(enum failpoint p, struct err *e)
{
	int error = failpoint(p);

	return !error || err_set(e, errno_kind(error), "failpoint '%s': %s", points[p].name, strerror(error));
}
