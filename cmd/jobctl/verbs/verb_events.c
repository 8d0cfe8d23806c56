/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl events'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/filters.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"
#include "jobctl/verbs/verbs.h"
#include "wire/http_client.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define EVENTS_DEFAULT 100
#define LINE_MAX_BYTES (64 * 1024) /* the longest line of an event stream */
#define AWAY_MAX (30 * USEC_SEC)   /* a daemon that restarts may be unreachable for this long */

/* ---- columns ---- */

static void cell_event_time(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(row, "at", style, out);
}

CELL(id)
CELL(what)
CELL(uid)
CELL(origin)
CELL(result)
CELL(job)
CELL(run)
CELL(node)
CELL(detail)

static void cell_who(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	if (member_text(row, "who"))
		cell_put(row, "who", out);
	else if (json_is_integer(json_object_get(row, "uid")))
		buf_printf(out, "uid %" PRId64, member_int(row, "uid"));
	else
		buf_str(out, "jobsched");
}

/* The reference to the object: backup, 12, backup#17 or another name. */
static void cell_object(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	if (member_text(row, "object"))
		cell_put(row, "object", out);
	else
		cell_put(row, "job", out);
	if (member_int(row, "run"))
		buf_printf(out, "#%" PRId64, member_int(row, "run"));
}

static void event_name(const json_t *row, struct buf *out)
{
	cell_put(row, "id", out);
}

static const struct column event_columns[] = {
	{{"ID", true, false}, "id", true, cell_id},
	{{"WHEN", false, false}, "at", false, cell_event_time},
	{{"WHO", false, false}, "who", false, cell_who},
	{{"UID", true, false}, "uid", true, cell_uid},
	{{"FROM", false, false}, "origin", true, cell_origin},
	{{"WHAT", false, false}, "what", false, cell_what},
	{{"OBJECT", false, false}, "object", false, cell_object},
	{{"JOB", true, false}, "job", true, cell_job},
	{{"RUN", true, false}, "run", true, cell_run},
	{{"NODE", false, false}, "node", true, cell_node},
	{{"RESULT", false, true}, "result", false, cell_result},
	{{"DETAIL", false, false}, "detail", false, cell_detail},
};
static const struct row_kind event_rows = {event_columns, ELEMENTS(event_columns), event_name};

/* ---- filters ---- */

/*
 * Several jobs, or one run. A number is not looked up, so the events of a removed job can be
 * listed.
 */
static bool add_refs(struct ctl *c, const struct args *a, struct buf *path, struct err *e)
{
	AUTO_DONE(buf) jobs = {};
	char *const *words;
	size_t n = args_operands(a, &words);
	int64_t run = 0;

	for (size_t i = 0; i < n; i++) {
		json_auto_t *o = NULL;
		struct ref ref;

		if (!ref_parse(words[i], &ref, e))
			return false;
		if (ref.run && n > 1)
			return err_set(e, ERR_INVALID,
				"a run cannot be combined with others: jobctl events %s", words[i]);
		if (ref.run && !api_run(c, &ref, &o, e))
			return false;
		if (!ref.run && !ref.job && !api_job(c, &ref, &o, e))
			return false;
		run = ref.run;
		buf_printf(&jobs, "%s%" PRId64, i ? "," : "",
			ref.run	  ? member_int(o, "job")
			: ref.job ? ref.job
				  : member_int(o, "id"));
	}
	if (n > 0)
		api_query_add(path, "job", jobs.data);
	if (run) {
		AUTO_TEXT number = xprintf("%" PRId64, run);

		api_query_add(path, "run", number);
	}
	return true;
}

static bool add_whats(const struct args *a, struct buf *path, struct err *e)
{
	AUTO_DONE(buf) list = {};

	for (size_t i = 0; i < args_count(a, "what"); i++) {
		AUTO_TEXT words = xstrdup(args_nth(a, "what", i));
		char *save = NULL;

		for (char *word = strtok_r(words, ",", &save); word;
			word = strtok_r(NULL, ",", &save)) {
			uint64_t bits;

			if (!event_what_bits(word, &bits))
				return err_set(e, ERR_INVALID,
					"--what: there is no event '%s'; jobctl(1) lists all "
					"events",
					word);
			buf_printf(&list, "%s%s", list.len ? "," : "", word);
		}
	}
	if (list.len)
		api_query_add(path, "what", list.data);
	return true;
}

static bool events_path(struct ctl *c, const struct args *a, struct buf *path, struct err *e)
{
	buf_str(path, "/v1/events");
	return add_refs(c, a, path, e) && add_whats(a, path, e) &&
	       filter_time(path, a, "since", c->now, e) && filter_time(path, a, "until", c->now, e);
}

/* ---- list: the daemon sends the newest events first, jobctl shows them last ---- */

static bool on_event(const json_t *row, void *arg)
{
	json_array_append((json_t *)arg, (json_t *)row);
	return true;
}

static bool list_events(struct ctl *c, const struct args *a, const char *path, struct err *e)
{
	json_auto_t *all = json_array();
	struct pages pages = {.path = path, .member = "events", .row = on_event, .arg = all};
	struct rows rows;
	bool ok;

	if (!filter_limit(a, EVENTS_DEFAULT, &pages.limit, e))
		return false;
	ok = api_pages(c, &pages, e);
	free(pages.next_cursor);
	if (!ok)
		return false;
	rows_begin(&rows, c, &event_rows);
	for (size_t i = json_array_size(all); i-- > 0;)
		rows_add(&rows, json_array_get(all, i));
	rows_end(&rows);
	if (json_array_size(all) == 0 && c->terminal && render_is_text(c))
		ctl_say("no events");
	return true;
}

/* ---- following ---- */

struct event_stream {
	struct ctl *c;
	struct rows rows;
	struct buf line;    /* incomplete line */
	int64_t last;       /* number of the newest event; 0: none yet */
	bool broken;        /* a line was not JSON */
	bool there;         /* a connection was made once */
};

static void on_event_line(struct event_stream *f, size_t len)
{
	json_auto_t *row = json_loadb(f->line.data, len, 0, NULL);

	if (!row) {
		f->broken = true;
		return;
	}
	if (member_int(row, "id"))
		f->last = member_int(row, "id");
	f->rows.style.now = clock_now(&clock_system);
	rows_add(&f->rows, row);
}

static bool on_chunk(const char *data, size_t len, void *arg)
{
	struct event_stream *f = arg;
	char *end;

	buf_add(&f->line, data, len);
	while (!f->broken && f->line.len > 0 && (end = memchr(f->line.data, '\n', f->line.len))) {
		size_t n = (size_t)(end - f->line.data);

		on_event_line(f, n);
		memmove(f->line.data, end + 1, f->line.len - n - 1);
		f->line.len -= n + 1;
	}
	rows_page(&f->rows);
	return !f->broken && f->line.len < LINE_MAX_BYTES;
}

static bool follow_once(struct event_stream *f, const struct args *a, const char *path,
	struct err *e)
{
	AUTO_DONE(buf) full = {};
	const char *limit = args_last(a, "limit");
	char cursor[24];

	buf_str(&full, path);
	api_query_add(&full, "follow", "true");
	snprintf(cursor, sizeof(cursor), "%" PRId64, f->last);
	if (f->last)
		api_query_add(&full, "cursor", cursor);
	if (limit)
		api_query_add(&full, "limit", limit);
	buf_clear(&f->line);
	if (!connect_daemon(f->c, e))
		return false;
	f->there = true;
	return http_client_stream(f->c->client, full.data, -1, on_chunk, f, e);
}

/* Waits for a daemon that restarts, and continues after the last event by its cursor. */
static bool follow_events(struct ctl *c, const struct args *a, const char *path, struct err *e)
{
	struct event_stream f = {.c = c};
	usec_t away = 0;
	bool ok = true;

	if (!filter_limit(a, 10, &(size_t){0}, e))
		return false;
	if (c->format == FORMAT_JSON)
		c->format = FORMAT_JSONL; /* an array would never end */
	rows_begin(&f.rows, c, &event_rows);
	while (ok && !f.broken) {
		int64_t before = f.last;
		usec_t now;

		*e = (struct err){};
		ok = follow_once(&f, a, path, e) ||
		     (f.there && (e->kind == ERR_UNREACHABLE || e->kind == ERR_BUSY ||
					 e->kind == ERR_UNCERTAIN));
		now = clock_boot(&clock_system);
		if (away == 0 || f.last != before)
			away = now;
		if (ok && now - away > AWAY_MAX)
			ok = e->kind == ERR_NONE &&
			     err_set(e, ERR_UNREACHABLE, "the daemon has ended the stream");
		if (ok)
			nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
	}
	rows_end(&f.rows);
	buf_done(&f.line);
	return ok && (!f.broken || err_set(e, ERR_INTERNAL, "the daemon's answer is not JSON"));
}

int verb_events(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) path = {};
	struct err e = {};

	if (!events_path(c, a, &path, &e) ||
	    !(args_has(a, "follow") ? follow_events : list_events)(c, a, path.data, &e))
		return ctl_fail(&e);
	return EXIT_SUCCESS;
}
