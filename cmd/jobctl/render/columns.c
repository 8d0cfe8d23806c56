/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the cells of job or run tables. */
#include "jobctl/render/columns.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"
#include <inttypes.h>
#include <string.h>

#define CELL_OF(fn, key)                                                                           \
	static void fn(const json_t *row, const struct cell_style *style, struct buf *out)         \
	{                                                                                          \
		(void)style;                                                                       \
		cell_put(row, key, out);                                                           \
	}
#define CELL_TIME(fn, key)                                                                         \
	static void fn(const json_t *row, const struct cell_style *style, struct buf *out)         \
	{                                                                                          \
		cell_put_time(row, key, style, out);                                               \
	}

CELL_OF(cell_id, "id")
CELL_OF(cell_name, "name")
CELL_OF(cell_state, "state")
CELL_OF(cell_owner, "owner")
CELL_OF(cell_queue, "queue")
CELL_OF(cell_tz, "tz")
CELL_OF(cell_reason, "reason")
CELL_OF(cell_kind, "kind")
CELL_OF(cell_node, "node_name")
CELL_OF(cell_job_name, "job_name")
CELL_OF(cell_job, "job")
CELL_OF(cell_priority, "priority")
CELL_OF(cell_attempt, "attempt")
CELL_OF(cell_exit_code, "exit_code")
CELL_OF(cell_signal, "signal")
CELL_TIME(cell_created, "created_at")
CELL_TIME(cell_slot, "slot")
CELL_TIME(cell_due, "due_at")
CELL_TIME(cell_started, "started_at")
CELL_TIME(cell_ended, "ended_at")
CELL_TIME(cell_died, "dead_at")

static void cell_next(const json_t *row, const struct cell_style *style, struct buf *out)
{
	if (!words_is_held(row))
		cell_put_time(row, "next_at", style, out);
}

static void cell_schedule(const json_t *row, const struct cell_style *style, struct buf *out)
{
	AUTO_DONE(buf) words = {};

	words_schedule(row, &words);
	if (style->utc)
		buf_str(out, words.data ? words.data : "");
	else
		words_localize(words.data ? words.data : "", out);
}

static void cell_command(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	words_command(row, out);
}

/* State and time of the last run. In CSV they are two cells, last_state and last_ended_at. */
static void cell_last(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const json_t *run = json_object_get(row, "last_run");
	const char *state = member_text(run, "state");
	usec_t t = member_time(run, "ended_at");
	char text[WORDS_MAX];

	if (!state)
		return;
	buf_str(out, state);
	if (json_is_object(json_object_get(run, "progress"))) {
		buf_char(out, ' ');
		words_progress(run, out);
		return;
	}
	if (!t)
		t = member_time(run, "slot");
	if (style->relative && t)
		buf_printf(out, " %s", words_relative(t, style->now, text));
}

static void cell_last_ended(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(json_object_get(row, "last_run"), "ended_at", style, out);
}

/* The code of the obstacle; 'jobctl why' shows the sentence. */
static void cell_waits(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	cell_put(json_object_get(row, "waiting_for"), "code", out);
}

static void cell_tags(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const char *key, *gap = "";
	const json_t *value;

	(void)style;
	json_object_foreach((json_t *)json_object_get(row, "tags"), key, value) {
		buf_printf(out, "%s%s=%s", gap, key, json_string_value(value));
		gap = ",";
	}
}

static void cell_run(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	ref_of_run(row, out);
}

static void cell_duration(const json_t *row, const struct cell_style *style, struct buf *out)
{
	usec_t from = member_time(row, "started_at"), to = member_time(row, "ended_at");
	char text[WORDS_MAX];

	if (!from)
		return;
	if (!to && !style->relative)
		return;
	if (!to)
		to = style->now;
	if (style->relative)
		buf_str(out, words_duration(to - from, text));
	else
		buf_printf(out, "%.3f", (double)(to - from) / USEC_SEC);
}

/* The progress of a running run, and when it will probably end. */
static bool cell_put_progress(const json_t *row, const struct cell_style *style, struct buf *out)
{
	if (!text_equal(member_text(row, "state"), "running"))
		return false;
	words_progress(row, out);
	if (member_time(row, "estimated_end")) {
		buf_printf(out, "%sends ", out->len ? ", " : "");
		cell_put_time(row, "estimated_end", style, out);
	}
	return out->len > 0;
}

/* The result, and the time of the next attempt if the run waits for a retry. */
static void cell_result(const json_t *row, const struct cell_style *style, struct buf *out)
{
	if (cell_put_progress(row, style, out))
		return;
	words_result(row, out);
	if (!words_waits_for_retry(row) || !member_time(row, "due_at"))
		return;
	buf_str(out, style->relative ? ", " : ", at ");
	cell_put_time(row, "due_at", style, out);
}

static const struct column job_columns[] = {
	{{"ID", true, false}, "id", false, cell_id},
	{{"NAME", false, TABLE_SHRINK}, "name", false, cell_name},
	{{"STATE", false, TABLE_STATE}, "state", false, cell_state},
	{{"OWNER", false, false}, "owner", true, cell_owner},
	{{"NEXT", false, false}, "next_at", false, cell_next},
	{{"WAITS", false, false}, "waits_for", false, cell_waits},
	{{"LAST", false, TABLE_SHRINK}, "last_state", false, cell_last},
	{{"ENDED", false, false}, "last_ended_at", true, cell_last_ended},
	{{"CREATED", false, false}, "created_at", true, cell_created},
	{{"PRIO", true, false}, "priority", true, cell_priority},
	{{"QUEUE", false, false}, "queue", true, cell_queue},
	{{"TAGS", false, TABLE_SHRINK}, "tags", true, cell_tags},
	{{"REASON", false, TABLE_SHRINK}, "reason", true, cell_reason},
	{{"ZONE", false, false}, "tz", true, cell_tz},
	{{"SCHEDULE", false, TABLE_SHRINK}, "schedule", false, cell_schedule},
	{{"COMMAND", false, TABLE_SHRINK}, "command", false, cell_command},
};

static const struct column run_columns[] = {
	{{"RUN", false, TABLE_SHRINK}, "run", false, cell_run},
	{{"ID", true, false}, "id", true, cell_id},
	{{"JOB", true, false}, "job", true, cell_job},
	{{"NAME", false, TABLE_SHRINK}, "job_name", true, cell_job_name},
	{{"STATE", false, TABLE_STATE}, "state", false, cell_state},
	{{"WAITS", false, false}, "waits_for", true, cell_waits},
	{{"KIND", false, false}, "kind", true, cell_kind},
	{{"OWNER", false, false}, "owner", true, cell_owner},
	{{"SLOT", false, false}, "slot", false, cell_slot},
	{{"DUE", false, false}, "due_at", true, cell_due},
	{{"STARTED", false, false}, "started_at", true, cell_started},
	{{"ENDED", false, false}, "ended_at", false, cell_ended},
	{{"TOOK", true, false}, "duration", false, cell_duration},
	{{"TRIES", true, false}, "attempt", true, cell_attempt},
	{{"NODE", false, false}, "node", true, cell_node},
	{{"EXIT", true, false}, "exit_code", true, cell_exit_code},
	{{"SIGNAL", true, false}, "signal", true, cell_signal},
	{{"RESULT", false, TABLE_SHRINK}, "result", false, cell_result},
};

static const struct column dead_columns[] = {
	{{"RUN", false, TABLE_SHRINK}, "run", false, cell_run},
	{{"ID", true, false}, "id", true, cell_id},
	{{"JOB", true, false}, "job", true, cell_job},
	{{"NAME", false, TABLE_SHRINK}, "job_name", true, cell_job_name},
	{{"STATE", false, TABLE_STATE}, "state", false, cell_state},
	{{"OWNER", false, false}, "owner", true, cell_owner},
	{{"SLOT", false, false}, "slot", false, cell_slot},
	{{"DIED", false, false}, "dead_at", false, cell_died},
	{{"TRIES", true, false}, "attempt", false, cell_attempt},
	{{"EXIT", true, false}, "exit_code", true, cell_exit_code},
	{{"SIGNAL", true, false}, "signal", true, cell_signal},
	{{"RESULT", false, TABLE_SHRINK}, "result", false, cell_result},
};

const struct row_kind dead_rows = {dead_columns, ELEMENTS(dead_columns), ref_of_run};
const struct row_kind job_rows = {job_columns, ELEMENTS(job_columns), ref_of_job};
const struct row_kind run_rows = {run_columns, ELEMENTS(run_columns), ref_of_run};
