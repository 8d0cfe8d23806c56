/* SPDX-License-Identifier: Apache-2.0 */
/* Frame table; validation of every received frame. */
#include "exec/proto/frame.h"
#include "base/err.h"
#include "core/job/result.h"
#include "core/start/start_failure.h"
#include "exec/proto/run_state.h"
#include <inttypes.h>
#include <string.h>

struct range {
	size_t offset; /* of an int64_t in struct frame */
	int64_t min, max;
	const char *name;
};
struct text {
	size_t offset, size;
};
struct layout {
	const char *name;
	size_t body;
	enum frame_from from;
	bool handshake;
	uint32_t since; /* the first version with this frame */
	struct text text;
	struct range ranges[16];
};

#define NUMBER(body, member, lo, hi) {offsetof(struct frame, body.member), lo, hi, #member}
#define TEXT(body, member) {offsetof(struct frame, body.member), sizeof(((struct frame *)0)->body.member)}
#define INSTANT_MAX (USEC_LAST * 2)
#define DURATION_MAX (INT64_C(36525) * USEC_DAY)
#define PID_MAX (INT64_C(1) << 22)
#define RUN_MIN (-INT64_MAX) /* negative: the command of a notice; 0 is not a valid run */
#define IDENTITY(body) NUMBER(body, run, RUN_MIN, INT64_MAX), NUMBER(body, fence, 0, INT64_MAX)
#define START_NUMBERS \
	IDENTITY(start), NUMBER(start, attempt, 0, INT64_MAX), NUMBER(start, timeout, 0, DURATION_MAX), \
		NUMBER(start, grace, 0, DURATION_MAX), NUMBER(start, output_limit, 0, INT64_C(1) << 40), \
		NUMBER(start, part, 0, 8), NUMBER(start, has_warrant, 0, 1), NUMBER(start, ends_with_lease, 0, 1)
#define BODY(member) sizeof(((struct frame *)0)->member)

static const struct layout layouts[FRAME_TYPE_MAX] = {
	[FRAME_HELLO] = {"hello", BODY(hello), FRAME_FROM_DAEMON, true, 0, TEXT(hello, node), {}},
	[FRAME_START] = {"start", BODY(start), FRAME_FROM_DAEMON, false, 1, {},
		{START_NUMBERS, NUMBER(start, has_stdin, 0, 1), NUMBER(start, has_artifact, 0, 1)}},
	[FRAME_START_SMALL] = {"start_small", BODY(start_small), FRAME_FROM_DAEMON, false, 4, {},
		{START_NUMBERS, NUMBER(start, has_stdin, 0, 0), NUMBER(start, has_artifact, 0, 0),
			NUMBER(start_small, payload_len, 1, FRAME_PAYLOAD_MAX)}},
	[FRAME_CANCEL] = {"cancel", BODY(run), FRAME_FROM_DAEMON, false, 1, {}, {IDENTITY(run)}},
	[FRAME_ACK] = {"ack", BODY(run), FRAME_FROM_DAEMON, false, 1, {}, {IDENTITY(run)}},
	[FRAME_LIST] = {"list", 0, FRAME_FROM_DAEMON, false, 1, {}, {}},
	[FRAME_LEASE] = {"lease", BODY(lease), FRAME_FROM_DAEMON, false, 1, {},
		{NUMBER(lease, end_at, 0, INSTANT_MAX), NUMBER(lease, kill_at, 0, INSTANT_MAX)}},
	[FRAME_FORGET_OUTPUT] = {"forget_output", BODY(attempt), FRAME_FROM_DAEMON, false, 1, {},
		{NUMBER(attempt, run, RUN_MIN, INT64_MAX), NUMBER(attempt, attempt, 0, INT64_MAX)}},
	[FRAME_OPEN_FILE] = {"open_file", BODY(open_file), FRAME_FROM_DAEMON, false, 2, {},
		{IDENTITY(open_file), NUMBER(open_file, uid, 0, UINT32_MAX)}},
	[FRAME_WATCH_TABLES] = {"watch_tables", BODY(watch_tables), FRAME_FROM_DAEMON, false, 3, {},
		{NUMBER(watch_tables, on, 0, 1)}},
	[FRAME_TABLES] = {"tables", 0, FRAME_FROM_SPAWNER, false, 3, {}, {}},
	[FRAME_ASK_WARRANT] = {"ask_warrant", BODY(ask_warrant), FRAME_FROM_DAEMON, true, 0, {},
		{NUMBER(ask_warrant, kind, 0, 1), NUMBER(ask_warrant, check, 0, 1)}},
	[FRAME_WARRANT] = {"warrant", BODY(warrant), FRAME_FROM_SPAWNER, true, 0, TEXT(warrant, error),
		{NUMBER(warrant, given, 0, 1)}},
	[FRAME_WELCOME] = {"welcome", BODY(welcome), FRAME_FROM_SPAWNER, true, 0,
		TEXT(welcome, spawner), {}},
	[FRAME_REFUSED] = {"refused", BODY(refused), FRAME_FROM_SPAWNER, true, 0,
		TEXT(refused, error), {}},
	[FRAME_STARTED] = {"started", BODY(started), FRAME_FROM_SPAWNER, false, 1, {},
		{IDENTITY(started), NUMBER(started, attempt, 0, INT64_MAX),
			NUMBER(started, pid, 1, PID_MAX), NUMBER(started, started_at, 0, INSTANT_MAX)}},
	[FRAME_NOT_STARTED] = {"not_started", BODY(not_started), FRAME_FROM_SPAWNER, false, 1,
		TEXT(not_started, error),
		{IDENTITY(not_started), NUMBER(not_started, attempt, 0, INT64_MAX),
			NUMBER(not_started, reason, 0, START_FAILURE_MAX - 1)}},
	[FRAME_HAS] = {"has", BODY(started), FRAME_FROM_SPAWNER, false, 1, {},
		{IDENTITY(started), NUMBER(started, attempt, 0, INT64_MAX),
			NUMBER(started, pid, 1, PID_MAX), NUMBER(started, started_at, 0, INSTANT_MAX)}},
	[FRAME_ENDED] = {"ended", BODY(ended), FRAME_FROM_SPAWNER, false, 1, TEXT(ended, error),
		{IDENTITY(ended), NUMBER(ended, attempt, 0, INT64_MAX), NUMBER(ended, pid, 1, PID_MAX),
			NUMBER(ended, started_at, 0, INSTANT_MAX), NUMBER(ended, ended_at, 0, INSTANT_MAX),
			NUMBER(ended, outcome, ATTEMPT_SUCCEEDED, ATTEMPT_GATED),
			NUMBER(ended, exit_code, -1, 255), NUMBER(ended, term_signal, 0, 64),
			NUMBER(ended, cpu_user, 0, INT64_MAX), NUMBER(ended, cpu_system, 0, INT64_MAX),
			NUMBER(ended, max_rss, 0, INT64_MAX), NUMBER(ended, io_read, -1, INT64_MAX),
			NUMBER(ended, io_written, -1, INT64_MAX), NUMBER(ended, output_bytes, 0, INT64_MAX),
			NUMBER(ended, output_dropped, 0, INT64_MAX)}},
	[FRAME_PROGRESS] = {"progress", BODY(progress), FRAME_FROM_SPAWNER, false, 4, TEXT(progress, text),
		{IDENTITY(progress), NUMBER(progress, attempt, 0, INT64_MAX), NUMBER(progress, percent, -1, 100),
			NUMBER(progress, at, 0, INSTANT_MAX)}},
	[FRAME_RESULT] = {"result", BODY(result), FRAME_FROM_SPAWNER, false, 5, TEXT(result, text),
		{IDENTITY(result), NUMBER(result, attempt, 0, INT64_MAX), NUMBER(result, at, 0, RESULTS_BYTES_MAX)}},
	[FRAME_STATE] = {"state", BODY(state), FRAME_FROM_DAEMON, false, 6, TEXT(state, owner),
		{NUMBER(state, run, 1, INT64_MAX), NUMBER(state, fence, 0, INT64_MAX), NUMBER(state, uid, 0, UINT32_MAX),
			NUMBER(state, verb, 0, RUN_STATE_VERB_MAX - 1)}},
	[FRAME_LIST_DONE] = {"list_done", 0, FRAME_FROM_SPAWNER, false, 1, {}, {}},
	[FRAME_SUPERSEDED] = {"superseded", 0, FRAME_FROM_SPAWNER, false, 1, {}, {}},
	[FRAME_SANDBOXES] = {"sandboxes", 0, FRAME_FROM_SPAWNER, false, 1, {}, {}},
};
_Static_assert(FRAME_HEAD == 8 && sizeof(struct frame_ended) == 16 * 8 + FRAME_TEXT_MAX,
	"frames have no padding");
_Static_assert(offsetof(struct frame_start_small, payload) == sizeof(struct frame_start) + 8,
	"start_small has no padding");

static const struct layout *layout_of(unsigned type)
{
	return type < FRAME_TYPE_MAX && layouts[type].name ? &layouts[type] : NULL;
}

const char *frame_type_name(unsigned type)
{
	const struct layout *l = layout_of(type);

	return l ? l->name : "?";
}

void frame_init(struct frame *f, enum frame_type type, uint32_t version)
{
	const struct layout *l = &layouts[type];

	memset(f, 0, FRAME_HEAD + l->body);
	f->type = (uint16_t)type;
	f->version = l->handshake ? 0 : (uint16_t)version;
	f->size = (uint32_t)(FRAME_HEAD + l->body);
}

void frame_start_enclose(struct frame *f, const char *payload, size_t len)
{
	struct frame_start s = f->start;

	frame_init(f, FRAME_START_SMALL, f->version);
	f->start = s;
	f->start_small.payload_len = (int64_t)len;
	memcpy(f->start_small.payload, payload, len);
}

void frame_text(char *to, size_t size, const char *text)
{
	memset(to, 0, size);
	if (text)
		memcpy(to, text, strnlen(text, size - 1));
}

static bool frame_text_valid(const char *s, size_t size)
{
	const char *end = memchr(s, '\0', size);

	if (!end)
		return false;
	for (; end < s + size; end++)
		if (*end)
			return false;
	return true;
}

static size_t frame_fds_expected(const struct frame *f)
{
	if (f->type == FRAME_SANDBOXES || f->type == FRAME_TABLES || f->type == FRAME_ASK_WARRANT)
		return 1;
	if (f->type == FRAME_OPEN_FILE || f->type == FRAME_STATE)
		return 2;
	return f->type == FRAME_START ? 1 + (size_t)(f->start.has_stdin != 0) + (size_t)(f->start.has_artifact != 0) : 0;
}

/* Frames in files have the version of their layout, and every outcome. */
static bool frame_outcome_valid(int64_t outcome, uint32_t version)
{
	return outcome <= ATTEMPT_LOST || version == FRAME_VERSION_STORED || (outcome == ATTEMPT_STALLED && version >= 4) ||
	       (outcome == ATTEMPT_GATED && version >= 5);
}

static bool frame_body_check(const struct frame *f, const struct layout *l, struct err *e)
{
	const char *base = (const char *)f;

	for (const struct range *r = l->ranges; r < l->ranges + 16 && r->name; r++) {
		int64_t n;

		memcpy(&n, base + r->offset, sizeof(n));
		if (n < r->min || n > r->max || (n == 0 && r->min == RUN_MIN))
			return err_set(e, ERR_INVALID, "frame '%s': %s %" PRId64 " is out of range", l->name,
				r->name, n);
	}
	if (l->text.size && !frame_text_valid(base + l->text.offset, l->text.size))
		return err_set(e, ERR_INVALID, "frame '%s': its text is not terminated", l->name);
	if (f->type == FRAME_ENDED && !frame_outcome_valid(f->ended.outcome, f->version))
		return err_set(e, ERR_INVALID, "frame 'ended': the spawner does not set outcome %" PRId64, f->ended.outcome);
	if (f->type == FRAME_HELLO && (f->hello.oldest < 1 || f->hello.newest < f->hello.oldest))
		return err_set(e, ERR_INVALID, "frame 'hello': versions %u to %u", f->hello.oldest,
			f->hello.newest);
	if (f->type == FRAME_WELCOME && (f->welcome.version < FRAME_VERSION_OLDEST ||
		f->welcome.version > FRAME_VERSION || f->welcome.warrants >= WARRANT_POLICY_MAX))
		return err_set(e, ERR_INVALID, "frame 'welcome': version %u was not offered",
			f->welcome.version);
	return true;
}

bool frame_check(const struct frame *f, size_t len, size_t fds, enum frame_from from,
	uint32_t version, struct err *e)
{
	const struct layout *l;

	if (len < FRAME_HEAD)
		return err_set(e, ERR_INVALID, "a frame of %zu bytes", len);
	l = layout_of(f->type);
	if (!l || l->from != from)
		return err_set(e, ERR_INVALID, "frame type %u is not valid from this side",
			f->type);
	if (len != f->size || len != FRAME_HEAD + l->body)
		return err_set(e, ERR_INVALID, "frame '%s' of %zu bytes instead of %zu", l->name, len,
			FRAME_HEAD + l->body);
	if (l->handshake != (version == 0) || f->version != version || version < l->since)
		return err_set(e, ERR_INVALID, "frame '%s' of version %u where %u was agreed", l->name,
			f->version, version);
	if (!frame_body_check(f, l, e))
		return false;
	if (fds != frame_fds_expected(f))
		return err_set(e, ERR_INVALID, "frame '%s' with %zu descriptors", l->name, fds);
	return true;
}

uint32_t frame_version_pick(uint32_t oldest, uint32_t newest, uint32_t their_oldest,
	uint32_t their_newest)
{
	uint32_t high = newest < their_newest ? newest : their_newest;
	uint32_t low = oldest > their_oldest ? oldest : their_oldest;

	return high >= low ? high : 0;
}
