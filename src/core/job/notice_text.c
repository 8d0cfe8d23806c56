/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats a notice. Text that comes from jobs is escaped, so that it cannot imitate other parts of
 * the notice.
 */
#include "core/job/notice_text.h"
#include "base/auto.h"
#include "base/duration.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_diff.h"
#include "core/job/job_fields.h"
#include <inttypes.h>
#include <string.h>

static void add_escaped(struct buf *out, const char *text)
{
	if (text)
		text_escape(out, text, strlen(text));
}

static void add_time_line(struct buf *out, const char *label, usec_t t)
{
	char text[RFC3339_MAX];

	if (t)
		buf_printf(out, "%-14s%s\n", label, rfc3339_format(t, text));
}

static void add_text_line(struct buf *out, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	buf_printf(out, "%-14s", label);
	add_escaped(out, text);
	buf_char(out, '\n');
}

static void add_job_ref(const struct notice_facts *f, struct buf *out)
{
	if (f->job_name)
		add_escaped(out, f->job_name);
	else
		buf_printf(out, "%" PRId64, f->job);
}

void notice_text_run_ref(const struct notice_facts *f, struct buf *out)
{
	add_job_ref(f, out);
	if (f->run)
		buf_printf(out, "#%" PRId64, f->run->id);
}

/* The result of the run: "exit code 3", "signal 9", "timed out", a reason or an error. */
static void add_result(const struct notice_facts *f, struct buf *out)
{
	const struct run *r = f->run;

	if (r && r->term_signal)
		buf_printf(out, "signal %" PRId64, r->term_signal);
	else if (r && r->state == RUN_TIMED_OUT)
		buf_str(out, "timed out");
	else if (r && r->exit_code > 0)
		buf_printf(out, "exit code %" PRId64, r->exit_code);
	else if (f->error)
		add_escaped(out, f->error);
	else if (r && r->reason)
		add_escaped(out, r->reason);
	else if (r)
		buf_str(out, run_state_name(r->state));
	else
		buf_str(out, "its run is not kept any more");
}

/* Rounded down to seconds. */
static void add_duration(usec_t d, struct buf *out)
{
	char text[RFC3339_MAX];

	buf_str(out, duration_format(d < USEC_SEC ? USEC_SEC : d - d % USEC_SEC, text));
}

static void add_node(const struct notice_facts *f, struct buf *out)
{
	if (!f->node)
		return;
	buf_str(out, " on node ");
	add_escaped(out, f->node);
}

static void add_missed(const struct notice_facts *f, struct buf *out)
{
	const struct run *r = f->run;

	if (r && r->state == RUN_LOST)
		buf_str(out, " was lost");
	else if (r && r->state == RUN_EXPIRED)
		buf_str(out, " did not run in time");
	else if (r && r->slot_count > 1)
		buf_printf(out, " did not run %" PRId64 " times", r->slot_count);
	else
		buf_str(out, " did not run");
	if (r && r->reason) {
		buf_str(out, " (");
		add_escaped(out, r->reason);
		buf_char(out, ')');
	}
}

void notice_text_subject(const struct notice_facts *f, struct buf *out)
{
	buf_str(out, f->job_name ? "jobsched: " : "jobsched: job ");
	add_job_ref(f, out);
	switch (f->kind) {
	case NOTICE_KIND_FAILED:
		buf_str(out, " failed");
		add_node(f, out);
		buf_str(out, " (");
		add_result(f, out);
		buf_char(out, ')');
		break;
	case NOTICE_KIND_RECOVERED:
		buf_str(out, " succeeded again");
		add_node(f, out);
		break;
	case NOTICE_KIND_MISSED:
		add_missed(f, out);
		break;
	case NOTICE_KIND_LONG:
		buf_str(out, " takes unusually long");
		add_node(f, out);
		if (f->typical) {
			buf_str(out, " (usually ");
			add_duration(f->typical, out);
			buf_char(out, ')');
		}
		break;
	case NOTICE_KIND_OUTPUT:
		buf_str(out, " has written output");
		break;
	default:
		buf_str(out, ": a test notice");
	}
}

/* ---- the body ---- */

static void add_attempts(const struct run *r, struct buf *out)
{
	if (r->attempt > 1)
		buf_printf(out, "%-14s%" PRId64 "%s\n", "attempts", r->attempt,
			r->state == RUN_FAILED || r->state == RUN_TIMED_OUT ? ", this was the last" : "");
}

static void add_run_lines(const struct notice_facts *f, struct buf *out)
{
	const struct run *r = f->run;
	AUTO_DONE(buf) result = {};

	if (!r)
		return;
	add_time_line(out, "slot", r->slot);
	if (r->slot_count > 1) {
		add_time_line(out, "last slot", r->slot_last);
		buf_printf(out, "%-14s%" PRId64 "\n", "slots", r->slot_count);
	}
	add_time_line(out, "started", r->started_at);
	add_time_line(out, "ended", r->ended_at);
	add_attempts(r, out);
	add_text_line(out, "state", run_state_name(r->state));
	if (f->kind == NOTICE_KIND_FAILED) {
		add_result(f, &result);
		add_text_line(out, "result", result.data);
	}
	add_text_line(out, "reason", r->reason);
	add_text_line(out, "error", f->error);
	if (r->dead_at)
		buf_printf(out, "%-14s%s\n", "dead letter", "it is kept for another try");
	if (f->job_paused) {
		buf_str(out, "paused        the job starts no more runs until it is resumed");
		if (f->job_reason) {
			buf_str(out, ": ");
			add_escaped(out, f->job_reason);
		}
		buf_char(out, '\n');
	}
}

static void add_changes(const struct notice_facts *f, struct buf *out)
{
	char when[RFC3339_MAX];
	AUTO_DONE(buf) since = {};

	if (f->kind == NOTICE_KIND_RECOVERED || f->kind == NOTICE_KIND_TEST)
		return;
	if (!f->last_success) {
		buf_str(out, "\nNo earlier run that succeeded is known.\n");
		return;
	}
	add_job_ref(f, &since);
	buf_printf(&since, "#%" PRId64 " succeeded at %s", f->last_success->id,
		rfc3339_format(f->last_success->ended_at, when));
	if (!f->run || f->run->revision == f->last_success->revision) {
		buf_printf(out, "\nNothing changed since run %s.\n", since.data);
	} else if (!f->changed || f->changed->n == 0) {
		buf_printf(out, "\nThe job was changed since run %s: revision %" PRId64 " then, %" PRId64 " now.\n",
			since.data, f->last_success->revision, f->run->revision);
	} else {
		buf_printf(out, "\nChanged since run %s:", since.data);
		for (size_t i = 0; i < f->changed->n; i++) {
			buf_str(out, i ? ", " : " ");
			add_escaped(out, f->changed->v[i]);
		}
		buf_str(out, ".\n");
	}
}

size_t notice_text_last_lines(const char *output, size_t len, size_t lines)
{
	size_t at = len;

	if (at > 0 && output[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (output[at - 1] == '\n' && lines-- <= 1)
			break;
	return at;
}

static void add_output(const struct notice_facts *f, struct buf *out)
{
	const char *p = f->output, *end;
	size_t skipped;

	if (f->output_missing) {
		buf_str(out, "\nIts output cannot be shown: ");
		add_escaped(out, f->output_missing);
		buf_str(out, ".\n");
		return;
	}
	if (!p || f->output_len == 0)
		return;
	skipped = notice_text_last_lines(p, f->output_len, NOTICE_LINES);
	buf_str(out, skipped || f->output_cut ? "\nThe last lines of its output:\n\n" : "\nIts output:\n\n");
	for (end = p + f->output_len, p += skipped; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((newline ? newline : end) - p);

		buf_str(out, "    ");
		text_escape(out, p, n);
		buf_char(out, '\n');
		p += n + 1;
	}
}

static void add_commands(const struct notice_facts *f, struct buf *out)
{
	AUTO_DONE(buf) job = {};
	AUTO_DONE(buf) ref = {};

	add_job_ref(f, &job);
	notice_text_run_ref(f, &ref);
	buf_str(out, "\nWhat to type next:\n");
	if (f->run && f->run->attempt > 0 && f->kind != NOTICE_KIND_LONG)
		buf_printf(out, "    jobctl log %s\n", ref.data);
	if (f->kind == NOTICE_KIND_LONG)
		buf_printf(out, "    jobctl log -f %s\n    jobctl cancel %s\n", ref.data, ref.data);
	if (f->run && f->run->dead_at)
		buf_printf(out, "    jobctl dead retry %s\n", ref.data);
	if (f->job_paused)
		buf_printf(out, "    jobctl resume %s\n", job.data);
	buf_printf(out, "    jobctl why %s\n    jobctl show %s\n", job.data, f->run ? ref.data : job.data);
}

void notice_text_body(const struct notice_facts *f, struct buf *out)
{
	AUTO_DONE(buf) subject = {};
	AUTO_DONE(buf) ref = {};

	notice_text_subject(f, &subject);
	buf_printf(out, "%s\n\n", subject.data + strlen("jobsched: "));
	notice_text_run_ref(f, &ref);
	buf_printf(out, "%-14s%s\n", f->run ? "run" : "job", ref.data);
	add_text_line(out, "owner", f->owner);
	add_text_line(out, "node", f->node);
	add_time_line(out, "happened", f->at);
	add_run_lines(f, out);
	add_changes(f, out);
	add_output(f, out);
	add_commands(f, out);
}

/* ---- changes ---- */

void notice_text_changed_fields(const struct job_spec *before, const struct job_spec *after, struct strv *ret)
{
	for (size_t i = 0; i < job_fields_count; i++)
		if (!job_diff_field_equal(&job_fields[i], before, after))
			strv_add(ret, job_fields[i].name);
}
