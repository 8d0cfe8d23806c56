/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl doctor'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/doctor/doctor.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include <string.h>

/* Why the check does not apply here; NULL: it does. */
static const char *not_applicable(const struct doctor *d, const struct doctor_check *k)
{
	if (k->needs & DOCTOR_DAEMON && !d->status)
		return "the daemon does not answer";
	if (k->needs & DOCTOR_SYSTEM && !d->system)
		return "this is a user's installation";
	if (k->needs & DOCTOR_USER && d->system)
		return "this is the system's installation";
	if (k->needs & DOCTOR_SYSTEMD && !doctor_has_systemd())
		return "systemd does not run";
	return NULL;
}

/* The worst severity of the findings. */
static const char *result_of(const struct doctor *d)
{
	const char *worst = d->skipped ? "skipped" : "ok";

	for (int s = 0; s < DOCTOR_SEVERITY_MAX; s++) {
		const json_t *f;
		size_t i;

		json_array_foreach(d->findings, i, f)
			if (text_equal(member_text(f, "severity"), doctor_severity_name((enum doctor_severity)s)))
				worst = doctor_severity_name((enum doctor_severity)s);
	}
	return worst;
}

static json_t *run_check(struct doctor *d, const struct doctor_check *k)
{
	const char *why = not_applicable(d, k);
	json_t *row;

	json_decref(d->findings);
	d->findings = json_array();
	free(STEAL(d->skipped));
	if (why)
		doctor_skip(d, why);
	else
		k->run(d);
	row = json_pack("{s:s, s:s, s:s, s:s*, s:O}", "check", k->name, "help", k->help, "result",
		result_of(d), "skipped", d->skipped, "findings", d->findings);
	return row;
}

static bool check_wanted(const struct doctor_check *k, char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i], k->name) == 0)
			return true;
	return n == 0;
}

static bool names_valid(char *const *words, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct doctor_check *k = doctor_checks;

		while (k->name && strcmp(k->name, words[i]) != 0)
			k++;
		if (!k->name)
			return err_set(e, ERR_INVALID, "there is no check '%s'; 'jobctl doctor -o wide' lists them",
				words[i]);
	}
	return true;
}

static void put_findings(const json_t *row, struct buf *out, size_t *count)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(row, "findings"), i, f) {
		const char *message = member_text(f, "message"), *command = member_text(f, "command");

		buf_printf(out, "%-8s  %s: ", member_text(f, "severity"), member_text(row, "check"));
		text_escape(out, message, strlen(message));
		buf_printf(out, "\n%10s%s\n", "", command);
		*count += !text_equal(member_text(f, "severity"), "note");
	}
}

static void put_row(const struct ctl *c, const json_t *row, struct buf *out, size_t *count)
{
	const char *skipped = member_text(row, "skipped");
	size_t findings = json_array_size(json_object_get(row, "findings"));

	put_findings(row, out, count);
	if (c->format != FORMAT_WIDE || findings)
		return;
	buf_printf(out, "%-8s  %s: %s", member_text(row, "result"), member_text(row, "check"),
		member_text(row, "help"));
	if (skipped)
		buf_printf(out, " (%s)", skipped);
	buf_char(out, '\n');
}

int verb_doctor(struct ctl *c, const struct args *a)
{
	AUTO_DONE(doctor) d = {};
	AUTO_DONE(buf) out = {};
	json_auto_t *rows = json_array(), *all = NULL;
	size_t count = 0, n, i;
	char *const *words;
	struct err e = {};
	const json_t *row;

	n = args_operands(a, &words);
	if (!names_valid(words, n, &e) || !doctor_open(&d, c, &e))
		return ctl_fail(&e);
	for (const struct doctor_check *k = doctor_checks; k->name; k++)
		if (check_wanted(k, words, n))
			json_array_append_new(rows, run_check(&d, k));
	json_array_foreach(rows, i, row)
		put_row(c, row, &out, &count);
	all = json_pack("{s:s, s:I, s:O}", "mode", d.system ? "system" : "user", "findings",
		(json_int_t)count, "checks", rows);
	if (render_wants_json(c)) {
		render_object(c, all);
	} else {
		render_flush(&out);
		ctl_say("%zu checks of the %s installation: %zu finding%s", json_array_size(rows),
			d.system ? "system's" : "user's", count, count == 1 ? "" : "s");
	}
	return count ? EXIT_FAILURE : EXIT_SUCCESS;
}
