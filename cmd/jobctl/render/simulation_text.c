/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the figures of a simulation for people and programs. */
#include "jobctl/render/simulation_text.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/time/civil.h"
#include "core/time/zone.h"
#include "jobctl/ctl.h"
#include "jobctl/render/table.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/preview.h"
#include "jobctl/spec/simulation.h"
#include "wire/json_value.h"
#include <inttypes.h>
#include <string.h>

#define LISTED 20 /* overlaps and limits in a list for people */

static const char *const weekdays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

/* ---- pieces ---- */

/* 2026-11-16 or 2026-11-16 09:00 in the zone of the days. */
static void put_local(const struct simulation *m, usec_t t, bool clock, struct buf *out)
{
	AUTO_DONE(buf) text = {};

	preview_local(t / USEC_SEC * USEC_SEC, m->zone, &text);
	buf_add(out, text.data, strlen("2026-11-16"));
	if (clock)
		buf_printf(out, " %.5s", text.data + strlen("2026-11-16T"));
}

static int64_t local_day(const struct simulation *m, usec_t t)
{
	int of_day;

	return civil_split(t / USEC_SEC + zone_offset(m->zone, t / USEC_SEC), &of_day);
}

static void put_job(const struct simulation *m, size_t i, struct buf *out)
{
	const struct simulation_job_name *j = &m->jobs[i];

	if (j->name)
		text_escape(out, j->name, strlen(j->name));
	else
		buf_printf(out, "%" PRId64, j->id);
}

static void put_duration(usec_t d, struct buf *out)
{
	char words[WORDS_MAX];

	buf_str(out, words_duration(d, words));
}

/* ---- head ---- */

static void put_left_out(const struct simulation *m, struct buf *out)
{
	const struct {
		size_t n;
		const char *text;
	} parts[] = {
		{m->unscheduled, "without slots in this time"},
		{m->paused, "paused without an end"},
		{m->unreadable, "with a schedule that cannot be read"},
	};
	const char *comma = "not simulated: ";
	size_t before = out->len;

	for (size_t i = 0; i < ELEMENTS(parts); i++)
		if (parts[i].n) {
			buf_printf(out, "%s%zu %s %s", comma, parts[i].n,
				parts[i].n == 1 ? "job" : "jobs", parts[i].text);
			comma = ", ";
		}
	if (out->len > before)
		buf_char(out, '\n');
}

static void put_truncated(const struct simulation *m, struct buf *out)
{
	if (m->next_cursor)
		buf_printf(out,
			"incomplete: there are more than %zu jobs; give a PATTERN, --owner or a "
			"larger --limit\n",
			m->s.n_jobs + m->paused + m->unscheduled + m->unreadable);
	if (m->s.stop == SIMULATE_COMPLETE)
		return;
	buf_str(out, "incomplete: the figures end at ");
	put_local(m, m->s.stopped_at, true, out);
	if (m->s.stop == SIMULATE_SLOTS)
		buf_printf(out, ", after %" PRId64 " slots; give fewer --days or a PATTERN\n",
			m->s.slots);
	else
		buf_printf(out,
			", when more than %d runs waited; the limits below are too low for the "
			"schedules\n",
			SIMULATE_WAITING_MAX);
}

static void put_head(const struct simulation *m, struct buf *out)
{
	buf_printf(out, "%zu %s, ", m->s.n_jobs, m->s.n_jobs == 1 ? "job" : "jobs");
	put_local(m, m->s.from, true, out);
	buf_str(out, " to ");
	put_local(m, m->s.until - 1, false, out);
	buf_printf(out, ", %s: %" PRId64 " runs", m->zone->name, m->s.runs);
	if (m->s.peak) {
		buf_printf(out, ", at most %" PRId64 " at a time (", m->s.peak);
		put_local(m, m->s.peak_at, true, out);
		buf_char(out, ')');
	}
	buf_char(out, '\n');
	if (m->unlearned) {
		buf_printf(out, "%zu %s no successful run yet; a run of %s is assumed to take ",
			m->unlearned, m->unlearned == 1 ? "job has" : "jobs have",
			m->unlearned == 1 ? "it" : "these");
		put_duration(m->assumed, out);
		buf_str(out, " (--assume)\n");
	}
	put_left_out(m, out);
	put_truncated(m, out);
	buf_char(out, '\n');
}

/* ---- lists ---- */

static void put_minutes(const struct simulation *m, struct buf *out)
{
	/* a minute with a single start is not busy */
	if (m->s.n_busiest == 0 || m->s.busiest[0].starts < 2)
		return;
	buf_str(out, "\nbusiest minutes:\n");
	for (size_t i = 0; i < m->s.n_busiest && m->s.busiest[i].starts > 1; i++) {
		buf_str(out, "  ");
		put_local(m, m->s.busiest[i].at, true, out);
		buf_printf(out, "  %" PRId64 " starts\n", m->s.busiest[i].starts);
	}
}

static bool overlaps(const struct simulate_job *j)
{
	return j->skipped || j->replaced || j->expired || j->possible;
}

static void put_overlap(const struct simulation *m, size_t i, struct buf *out)
{
	const struct simulate_job *j = &m->s.jobs[i];

	buf_str(out, "  ");
	put_job(m, i, out);
	buf_printf(out, ": of %" PRId64 " slots ", j->slots);
	if (j->skipped) {
		buf_printf(out, "%" PRId64 " will be skipped, the first at ", j->skipped);
		put_local(m, j->first_skipped, true, out);
	} else if (j->replaced) {
		buf_printf(out, "%" PRId64 " will end the run before", j->replaced);
	} else if (j->expired) {
		buf_printf(out, "%" PRId64 " will not start before the deadline", j->expired);
	} else {
		buf_printf(out, "%" PRId64 " may overlap", j->possible);
	}
	buf_str(out, "; a run takes ");
	put_duration(j->usual, out);
	if (j->slow > j->usual) {
		buf_str(out, ", a slow one ");
		put_duration(j->slow, out);
	}
	buf_char(out, '\n');
}

static void put_overlaps(const struct simulation *m, struct buf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < m->s.n_jobs; i++)
		if (overlaps(&m->s.jobs[i]) && n++ < LISTED) {
			if (n == 1)
				buf_str(out, "\noverlaps:\n");
			put_overlap(m, i, out);
		}
	if (n > LISTED)
		buf_printf(out, "  and %zu more jobs (--as json lists all)\n", n - LISTED);
}

static void put_limits(const struct simulation *m, struct buf *out)
{
	const char *head = "\nlimits that delay runs:\n";
	size_t n = 0;

	for (size_t i = 0; i < m->s.n_limits; i++) {
		const struct simulate_limit *l = &m->s.limits[i];

		if (!l->delayed || n++ >= LISTED)
			continue;
		buf_printf(out, "%s  ", head);
		head = "";
		if (m->limits[i].name) {
			buf_printf(out, "%s ", m->limits[i].kind);
			text_escape(out, m->limits[i].name, strlen(m->limits[i].name));
		} else {
			buf_str(out, "all nodes");
		}
		buf_printf(out,
			" (%" PRId64 " at a time): %" PRId64 " %s, the first at ", l->running,
			l->delayed, l->delayed == 1 ? "run waits" : "runs wait");
		put_local(m, l->first_at, true, out);
		buf_str(out, ", up to ");
		put_duration(l->longest, out);
		buf_char(out, '\n');
	}
	if (n > LISTED)
		buf_printf(out, "  and %zu more limits (--as json lists all)\n", n - LISTED);
}

static void put_change(const struct simulation *m, const struct simulate_change *c, struct buf *out)
{
	AUTO_DONE(buf) at = {};

	preview_local(c->at, c->zone, &at);
	buf_printf(out, "  %.10s %s: the clock %s %" PRId64 " minutes", at.data, c->zone->name,
		c->shift > 0 ? "skips" : "repeats", (c->shift > 0 ? c->shift : -c->shift) / 60);
	if (c->jobs == 0) {
		buf_str(out, "; no job has a slot in this time\n");
		return;
	}
	buf_printf(out, "; %" PRId64 " %s slots in this time: ", c->jobs,
		c->jobs == 1 ? "job has" : "jobs have");
	for (int64_t i = 0; i < c->jobs && i < SIMULATE_CHANGE_JOBS; i++) {
		buf_str(out, i ? ", " : "");
		put_job(m, c->some[i], out);
	}
	buf_printf(out, "%s (--dst-%s)\n", c->jobs > SIMULATE_CHANGE_JOBS ? " …" : "",
		c->shift > 0 ? "gap" : "fold");
}

static void put_lists(const struct simulation *m, struct buf *out)
{
	struct simulate_change changes[SIMULATION_CHANGES_MAX];
	size_t n = simulate_changes(&m->s, changes, ELEMENTS(changes));

	put_minutes(m, out);
	put_overlaps(m, out);
	put_limits(m, out);
	if (n)
		buf_str(out, "\nclock changes:\n");
	for (size_t i = 0; i < n; i++)
		put_change(m, &changes[i], out);
}

/* ---- table ---- */

static const struct table_column day_columns[] = {
	{"DAY", false, 0},
	{"RUNS", true, 0},
	{"SKIPPED", true, 0},
	{"DELAYED", true, 0},
	{"PEAK", true, 0},
	{"AT", false, 0},
	{"BUSY", true, 0},
	{"CLOCK", false, 0},
};

static void number_cell(struct table *t, int64_t n)
{
	AUTO_TEXT text = n ? xprintf("%" PRId64, n) : xstrdup("-");

	table_cell(t, text);
}

static void day_row(struct table *t, const struct simulation *m, const struct simulate_day *d)
{
	AUTO_DONE(buf) text = {};
	int64_t shift = preview_clock_change(d->from, m->zone);
	char words[WORDS_MAX];

	buf_printf(&text, "%s ", weekdays[civil_weekday(local_day(m, d->from))]);
	put_local(m, d->from, false, &text);
	table_cell(t, text.data);
	number_cell(t, d->runs);
	number_cell(t, d->skipped);
	number_cell(t, d->delayed);
	number_cell(t, d->peak);
	buf_clear(&text);
	if (d->peak)
		put_local(m, d->peak_at, true, &text);
	table_cell(t, text.len ? text.data + strlen("2026-11-16 ") : "-");
	table_cell(t, d->busy ? words_duration(d->busy, words) : "-");
	buf_clear(&text);
	if (shift)
		buf_printf(&text, "%+" PRId64 "min", shift / 60);
	table_cell(t, text.len ? text.data : "-");
}

void simulation_text_table(const struct ctl *c, const struct simulation *m, struct buf *out)
{
	struct table t;

	put_head(m, out);
	table_init(&t, day_columns, ELEMENTS(day_columns));
	t.width = c->width;
	t.colour = c->colour;
	for (size_t i = 0; i < m->s.n_days; i++)
		day_row(&t, m, &m->s.days[i]);
	table_flush(&t, out);
	table_done(&t);
	put_lists(m, out);
}

/* ---- calendar ---- */

/* The days of a week, Monday first; '!' marks skipped or delayed runs, '*' a change of the clock. */
static void put_week(const struct simulation *m, int64_t monday, struct buf *out)
{
	int64_t first = local_day(m, m->s.days[0].from);
	struct civil date = civil_from_days(monday);

	buf_printf(out, "%04d-%02d-%02d", date.year, date.month, date.day);
	for (int64_t i = 0; i < 7; i++) {
		int64_t n = monday + i - first;
		const struct simulate_day *d;

		if (n < 0 || (size_t)n >= m->s.n_days) {
			buf_printf(out, "%9s", "");
			continue;
		}
		d = &m->s.days[n];
		buf_printf(out, "%7" PRId64 "%c%c", d->runs, d->skipped || d->delayed ? '!' : ' ',
			preview_clock_change(d->from, m->zone) ? '*' : ' ');
	}
	while (out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	buf_char(out, '\n');
}

void simulation_text_calendar(const struct ctl *c, const struct simulation *m, struct buf *out)
{
	int64_t first = local_day(m, m->s.days[0].from), last = first + (int64_t)m->s.n_days - 1;
	int64_t monday = first - (civil_weekday(first) + 6) % 7;

	(void)c;
	put_head(m, out);
	buf_str(out, "WEEK OF   ");
	for (size_t i = 1; i <= 7; i++)
		buf_printf(out, "%7s%s", weekdays[i % 7], i < 7 ? "  " : "");
	buf_char(out, '\n');
	for (; monday <= last; monday += 7)
		put_week(m, monday, out);
	buf_str(out, "runs per day; ! some are skipped or delayed, * the clock changes\n");
	put_lists(m, out);
}

/* ---- JSON ---- */

static json_t *days_json(const struct simulation *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->s.n_days; i++) {
		const struct simulate_day *d = &m->s.days[i];
		AUTO_DONE(buf) date = {};

		put_local(m, d->from, false, &date);
		json_array_append_new(list,
			json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:I}", "date",
				date.data, "from", json_value_time(d->from), "runs",
				(json_int_t)d->runs, "skipped", (json_int_t)d->skipped, "delayed",
				(json_int_t)d->delayed, "peak", (json_int_t)d->peak, "peak_at",
				json_value_time(d->peak ? d->peak_at : 0), "busy",
				json_value_seconds(d->busy), "clock_change",
				(json_int_t)preview_clock_change(d->from, m->zone)));
	}
	return list;
}

static json_t *overlaps_json(const struct simulation *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->s.n_jobs; i++) {
		const struct simulate_job *j = &m->s.jobs[i];

		if (overlaps(j))
			json_array_append_new(list,
				json_pack("{s:I, s:o, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:o, "
					  "s:b}",
					"job", (json_int_t)m->jobs[i].id, "name",
					json_value_text(m->jobs[i].name), "slots",
					(json_int_t)j->slots, "runs", (json_int_t)j->runs,
					"skipped", (json_int_t)j->skipped, "first_skipped",
					json_value_time(j->first_skipped), "replaced",
					(json_int_t)j->replaced, "expired", (json_int_t)j->expired,
					"possible", (json_int_t)j->possible, "p50",
					json_value_seconds(j->usual), "p95",
					json_value_seconds(j->slow), "learned",
					m->jobs[i].learned));
	}
	return list;
}

static json_t *limits_json(const struct simulation *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->s.n_limits; i++) {
		const struct simulate_limit *l = &m->s.limits[i];

		if (l->running)
			json_array_append_new(list,
				json_pack("{s:s, s:o, s:I, s:I, s:I, s:o, s:o}", "kind",
					m->limits[i].kind, "name",
					json_value_text(m->limits[i].name), "max_running",
					(json_int_t)l->running, "peak", (json_int_t)l->peak,
					"delayed", (json_int_t)l->delayed, "longest_wait",
					json_value_seconds(l->longest), "first_at",
					json_value_time(l->first_at)));
	}
	return list;
}

static json_t *changes_json(const struct simulation *m)
{
	struct simulate_change changes[SIMULATION_CHANGES_MAX];
	size_t n = simulate_changes(&m->s, changes, ELEMENTS(changes));
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct simulate_change *c = &changes[i];
		json_t *some = json_array();

		for (int64_t k = 0; k < c->jobs && k < SIMULATE_CHANGE_JOBS; k++)
			json_array_append_new(some, json_integer(m->jobs[c->some[k]].id));
		json_array_append_new(list,
			json_pack("{s:s, s:o, s:I, s:I, s:o}", "tz", c->zone->name, "at",
				json_value_time(c->at), "shift", (json_int_t)c->shift, "jobs",
				(json_int_t)c->jobs, "some_jobs", some));
	}
	return list;
}

static json_t *minutes_json(const struct simulation *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->s.n_busiest; i++)
		json_array_append_new(list,
			json_pack("{s:o, s:I}", "at", json_value_time(m->s.busiest[i].at), "starts",
				(json_int_t)m->s.busiest[i].starts));
	return list;
}

json_t *simulation_text_json(const struct simulation *m)
{
	static const char *const stops[SIMULATE_STOP_MAX] = {
		[SIMULATE_SLOTS] = "slots", [SIMULATE_WAITING] = "waiting"};
	json_t *o = json_object();

	json_object_set_new(o, "from", json_value_time(m->s.from));
	json_object_set_new(o, "until", json_value_time(m->s.until));
	json_object_set_new(o, "tz", json_value_text(m->zone->name));
	json_object_set_new(o, "jobs", json_integer((json_int_t)m->s.n_jobs));
	json_object_set_new(o, "without_history", json_integer((json_int_t)m->unlearned));
	json_object_set_new(o, "assumed", json_value_seconds(m->assumed));
	json_object_set_new(o, "paused", json_integer((json_int_t)m->paused));
	json_object_set_new(o, "unscheduled", json_integer((json_int_t)m->unscheduled));
	json_object_set_new(o, "unreadable", json_integer((json_int_t)m->unreadable));
	json_object_set_new(o, "complete",
		json_boolean(m->s.stop == SIMULATE_COMPLETE && !m->next_cursor));
	json_object_set_new(o, "next_cursor", json_value_text(m->next_cursor));
	json_object_set_new(o, "stopped_by", json_value_text(stops[m->s.stop]));
	json_object_set_new(o, "stopped_at", json_value_time(m->s.stopped_at));
	json_object_set_new(o, "slots", json_integer(m->s.slots));
	json_object_set_new(o, "runs", json_integer(m->s.runs));
	json_object_set_new(o, "peak", json_integer(m->s.peak));
	json_object_set_new(o, "peak_at", json_value_time(m->s.peak ? m->s.peak_at : 0));
	json_object_set_new(o, "days", days_json(m));
	json_object_set_new(o, "busiest_minutes", minutes_json(m));
	json_object_set_new(o, "overlaps", overlaps_json(m));
	json_object_set_new(o, "limits", limits_json(m));
	json_object_set_new(o, "clock_changes", changes_json(m));
	return o;
}
