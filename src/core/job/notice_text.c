/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a notice. Whatever comes from a job is escaped: it must not speak for us. */
#include "core/job/notice_text.h"
#include "base/auto.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_diff.h"
#include <inttypes.h>
#include <string.h>

static void put(struct buf *out, const char *text)
{
	if (text)
		text_escape(out, text, strlen(text));
}

static void put_time(struct buf *out, const char *label, usec_t t)
{
	char text[RFC3339_MAX];

	if (t)
		buf_printf(out, "%-14s%s\n", label, format_rfc3339(t, text));
}

static void put_line(struct buf *out, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	buf_printf(out, "%-14s", label);
	put(out, text);
	buf_char(out, '\n');
}

static void put_job(const struct notice_facts *f, struct buf *out)
{
	if (f->job_name)
		put(out, f->job_name);
	else
		buf_printf(out, "%" PRId64, f->job);
}

void notice_run_ref(const struct notice_facts *f, struct buf *out)
{
	put_job(f, out);
	if (f->run)
		buf_printf(out, "#%" PRId64, f->run->id);
}

/* How it ended: "exit code 3", "signal 9", "timed out", a reason, an error. */
static void put_result(const struct notice_facts *f, struct buf *out)
{
	const struct run *r = f->run;

	if (r && r->term_signal)
		buf_printf(out, "signal %" PRId64, r->term_signal);
	else if (r && r->state == RUN_TIMED_OUT)
		buf_str(out, "timed out");
	else if (r && r->exit_code > 0)
		buf_printf(out, "exit code %" PRId64, r->exit_code);
	else if (f->error)
		put(out, f->error);
	else if (r && r->reason)
		put(out, r->reason);
	else if (r)
		buf_str(out, run_state_name(r->state));
	else
		buf_str(out, "its run is not kept any more");
}

/* A duration that is read, not computed with. */
static void put_duration(usec_t d, struct buf *out)
{
	char text[RFC3339_MAX];

	buf_str(out, format_duration(d < USEC_SEC ? USEC_SEC : d - d % USEC_SEC, text));
}

static void put_node(const struct notice_facts *f, struct buf *out)
{
	if (!f->node)
		return;
	buf_str(out, " on node ");
	put(out, f->node);
}

static void put_missed(const struct notice_facts *f, struct buf *out)
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
		put(out, r->reason);
		buf_char(out, ')');
	}
}

void notice_subject(const struct notice_facts *f, struct buf *out)
{
	buf_str(out, f->job_name ? "jobsched: " : "jobsched: job ");
	put_job(f, out);
	switch (f->kind) {
	case TELL_FAILED:
		buf_str(out, " failed");
		put_node(f, out);
		buf_str(out, " (");
		put_result(f, out);
		buf_char(out, ')');
		break;
	case TELL_RECOVERED:
		buf_str(out, " succeeded again");
		put_node(f, out);
		break;
	case TELL_MISSED:
		put_missed(f, out);
		break;
	case TELL_LONG:
		buf_str(out, " takes unusually long");
		put_node(f, out);
		if (f->typical) {
			buf_str(out, " (usually ");
			put_duration(f->typical, out);
			buf_char(out, ')');
		}
		break;
	default:
		buf_str(out, ": a test notice");
	}
}

/* ---- the body ---- */

static void put_attempts(const struct run *r, struct buf *out)
{
	if (r->attempt > 1)
		buf_printf(out, "%-14s%" PRId64 "%s\n", "attempts", r->attempt,
			r->state == RUN_FAILED || r->state == RUN_TIMED_OUT ? ", this was the last" : "");
}

static void put_run(const struct notice_facts *f, struct buf *out)
{
	const struct run *r = f->run;
	AUTO_DONE(buf) result = {};

	if (!r)
		return;
	put_time(out, "slot", r->slot);
	if (r->slot_count > 1) {
		put_time(out, "last slot", r->slot_last);
		buf_printf(out, "%-14s%" PRId64 "\n", "slots", r->slot_count);
	}
	put_time(out, "started", r->started_at);
	put_time(out, "ended", r->ended_at);
	put_attempts(r, out);
	put_line(out, "state", run_state_name(r->state));
	if (f->kind == TELL_FAILED) {
		put_result(f, &result);
		put_line(out, "result", result.data);
	}
	put_line(out, "reason", r->reason);
	put_line(out, "error", f->error);
	if (r->dead_at)
		buf_printf(out, "%-14s%s\n", "dead letter", "it is kept for another try");
	if (f->job_paused) {
		buf_str(out, "paused        the job starts no more runs until it is resumed");
		if (f->job_reason) {
			buf_str(out, ": ");
			put(out, f->job_reason);
		}
		buf_char(out, '\n');
	}
}

static void put_change(const struct notice_facts *f, struct buf *out)
{
	char when[RFC3339_MAX];
	AUTO_DONE(buf) since = {};

	if (f->kind == TELL_RECOVERED || f->kind == TELL_TEST)
		return;
	if (!f->last_success) {
		buf_str(out, "\nNo earlier run that succeeded is known.\n");
		return;
	}
	put_job(f, &since);
	buf_printf(&since, "#%" PRId64 " succeeded at %s", f->last_success->id,
		format_rfc3339(f->last_success->ended_at, when));
	if (!f->run || f->run->revision == f->last_success->revision) {
		buf_printf(out, "\nNothing changed since run %s.\n", since.data);
	} else if (!f->changed || f->changed->n == 0) {
		buf_printf(out, "\nThe job was changed since run %s: revision %" PRId64 " then, %" PRId64 " now.\n",
			since.data, f->last_success->revision, f->run->revision);
	} else {
		buf_printf(out, "\nChanged since run %s:", since.data);
		for (size_t i = 0; i < f->changed->n; i++) {
			buf_str(out, i ? ", " : " ");
			put(out, f->changed->v[i]);
		}
		buf_str(out, ".\n");
	}
}

size_t notice_last_lines(const char *output, size_t len, size_t lines)
{
	size_t at = len;

	if (at > 0 && output[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (output[at - 1] == '\n' && lines-- <= 1)
			break;
	return at;
}

static void put_output(const struct notice_facts *f, struct buf *out)
{
	const char *p = f->output, *end;
	size_t skipped;

	if (f->output_missing) {
		buf_str(out, "\nIts output cannot be shown: ");
		put(out, f->output_missing);
		buf_str(out, ".\n");
		return;
	}
	if (!p || f->output_len == 0)
		return;
	skipped = notice_last_lines(p, f->output_len, NOTICE_LINES);
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

static void put_next(const struct notice_facts *f, struct buf *out)
{
	AUTO_DONE(buf) job = {};
	AUTO_DONE(buf) ref = {};

	put_job(f, &job);
	notice_run_ref(f, &ref);
	buf_str(out, "\nWhat to type next:\n");
	if (f->run && f->run->attempt > 0 && f->kind != TELL_LONG)
		buf_printf(out, "    jobctl log %s\n", ref.data);
	if (f->kind == TELL_LONG)
		buf_printf(out, "    jobctl log -f %s\n    jobctl cancel %s\n", ref.data, ref.data);
	if (f->run && f->run->dead_at)
		buf_printf(out, "    jobctl dead retry %s\n", ref.data);
	if (f->job_paused)
		buf_printf(out, "    jobctl resume %s\n", job.data);
	buf_printf(out, "    jobctl why %s\n    jobctl show %s\n", job.data, f->run ? ref.data : job.data);
}

void notice_body(const struct notice_facts *f, struct buf *out)
{
	AUTO_DONE(buf) subject = {};
	AUTO_DONE(buf) ref = {};

	notice_subject(f, &subject);
	buf_printf(out, "%s\n\n", subject.data + strlen("jobsched: "));
	notice_run_ref(f, &ref);
	buf_printf(out, "%-14s%s\n", f->run ? "run" : "job", ref.data);
	put_line(out, "owner", f->owner);
	put_line(out, "node", f->node);
	put_time(out, "happened", f->at);
	put_run(f, out);
	put_change(f, out);
	put_output(f, out);
	put_next(f, out);
}

/* ---- what changed ---- */

void notice_changed_fields(const struct job_spec *before, const struct job_spec *after, struct strv *ret)
{
	for (size_t i = 0; i < job_fields_count; i++)
		if (!job_field_equal(&job_fields[i], before, after))
			strv_add(ret, job_fields[i].name);
}
