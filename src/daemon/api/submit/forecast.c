/* SPDX-License-Identifier: Apache-2.0 */
/* Previews a submitted schedule: warnings, description, first slots. */
#include "daemon/api/submit/forecast.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/decide/machine_conditions.h"
#include "core/job/chain.h"
#include "core/job/job.h"
#include "core/time/schedule_set.h"
#include "wire/json_value.h"
#include <unistd.h>

void forecast_done(struct forecast *f)
{
	json_decref(f->findings);
	free(f->explain);
}

static void add_finding(const char *code, const char *text, void *arg)
{
	json_array_append_new(arg,
		json_pack("{s:s, s:o}", "code", code, "message", json_value_text(text)));
}

void forecast_lint(struct forecast *f, const struct schedule_set *set, const struct job_spec *spec,
	bool undecided)
{
	f->findings = json_array();
	if (undecided) {
		add_finding("hash-by-number",
			"H takes its value from the job's number, so the times are not known "
			"before the job is added; give the job a name to know them now",
			f->findings);
		return;
	}
	schedule_set_lint(set, add_finding, f->findings);
	schedule_set_lint_jitter(set, spec->jitter, add_finding, f->findings);
}

void forecast_machine(struct forecast *f, const struct job_spec *spec,
	const struct machine_figures *machine)
{
	for (size_t i = 0; f->findings && i < spec->when.n; i++) {
		AUTO_TEXT text = NULL;
		struct gate g;

		if (!policy_condition_parse(spec->when.v[i], &g, NULL) ||
			machine->thousandths[g.figure] >= 0)
			continue;
		text = xprintf("this machine does not report '%s', so '%s' is never met and the "
			       "job waits until the condition is changed",
			policy_machine_figure_name(g.figure), spec->when.v[i]);
		add_finding("when-unknown", text, f->findings);
	}
}

void forecast_services(struct forecast *f, const struct job_spec *spec,
	const struct forecast_services *m)
{
	bool mail = false, net = spec->artifact && !text_starts(spec->artifact, "file:");

	for (size_t i = 0; i < spec->notify.n; i++) {
		mail |= text_starts(spec->notify.v[i], "mail:");
		net |= text_starts(spec->notify.v[i], "webhook:");
	}
	if (f->findings && mail && m->sendmail && access(m->sendmail, X_OK) < 0) {
		AUTO_TEXT no_mail = xprintf("notices by mail cannot be sent from this node: there is no program '%s'; install a mail "
			"server such as postfix, or set 'sendmail' in jobschedd.conf(5)", m->sendmail);

		add_finding("no-sendmail", no_mail, f->findings);
	}
	if (f->findings && net && m->net_down)
		add_finding("no-net", m->net_down, f->findings);
}

void forecast_slot_density(struct forecast *f, usec_t slot, int64_t jobs)
{
	if (f->findings)
		schedule_lint_density(slot, jobs, add_finding, f->findings);
}

static void write_explanation(const struct schedule_set *set, const struct job_spec *spec,
	bool undecided, struct buf *out)
{
	if (schedule_set_kind(set) == SCHEDULE_NOW) {
		buf_str(out, "once, now");
		return;
	}
	if (spec->after.n > 0) {
		chain_explain(&spec->after, spec->after_mode, out);
		return;
	}
	for (size_t i = 0; i < schedule_set_count(set); i++) {
		buf_str(out, i ? "; and " : "");
		if (undecided && schedule_hashed(schedule_set_at(set, i)))
			buf_printf(out, "'%s' with H from the job's number, %s",
				spec->schedule.v[i], spec->tz);
		else
			schedule_explain(schedule_set_at(set, i), out);
	}
}

void forecast_preview(struct forecast *f, const struct schedule_set *set,
	const struct job_spec *spec, usec_t now, bool undecided)
{
	AUTO_DONE(buf) words = {};
	usec_t slot;
	bool more;

	write_explanation(set, spec, undecided, &words);
	f->explain = buf_steal(&words);
	if (undecided)
		return;
	for (more = schedule_set_first(set, &slot); more && f->n < FORECAST_SLOTS;
		more = schedule_set_next(set, slot, &slot))
		f->next[f->n++] = slot;
	/* "now" is the current time, not the next whole second */
	if (f->n > 0 && schedule_set_kind(set) == SCHEDULE_NOW)
		f->next[0] = now;
}

void forecast_write_json(const struct forecast *f, json_t *job)
{
	json_t *next;

	json_object_set_new(job, "findings", f->findings ? json_incref(f->findings) : json_array());
	if (!f->explain)
		return;
	next = json_array();
	for (size_t i = 0; i < f->n; i++)
		json_array_append_new(next, json_value_time(f->next[i]));
	json_object_set_new(job, "explain", json_value_text(f->explain));
	json_object_set_new(job, "next", next);
}
