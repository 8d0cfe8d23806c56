/* SPDX-License-Identifier: Apache-2.0 */
/* Lists names, selects those that match, and reads their objects, several at a time. */
#include "daemon/archive/archive_search.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/archive/archive_names.h"
#include "daemon/archive/s3_client.h"
#include <string.h>

#define KEYS_PER_LIST 1000
#define READS 8 /* objects at a time */

struct found {
	char *name;   /* owned */
	json_t *run;  /* owned; NULL: not read yet, or the object is gone */
};

struct archive_search {
	struct s3_client *s3; /* borrowed */
	struct archive_query q;
	archive_search_fn *fn;
	void *arg;
	char *after;          /* owned: the last name that was examined */
	size_t examined;
	bool at_end;          /* no names follow */
	struct found *found;
	size_t n, next, reading;
	struct err error;
};

struct reading {
	struct archive_search *search;
	size_t i;
};

static void search_free(struct archive_search *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->found[i].name);
		json_decref(s->found[i].run);
	}
	free(s->found);
	free(s->after);
	archive_query_done(&s->q);
	free(s);
}

static void search_end(struct archive_search *s)
{
	AUTO_DONE(archive_page) page = {};

	for (size_t i = 0; i < s->n && !s->error.kind; i++)
		if (s->found[i].run)
			archive_page_add(&page, s->found[i].run, s->found[i].name);
	if (!s->at_end)
		page.next = xstrdup(s->after);
	s->fn(&page, s->error.kind ? &s->error : NULL, s->arg);
	search_free(s);
}

/* ---- the objects ---- */

static void reads_go_on(struct archive_search *s);

static void on_object(const struct s3_answer *a, void *arg)
{
	struct reading *r = arg;
	struct archive_search *s = r->search;
	struct found *f = &s->found[r->i];
	struct archive_run_name name;
	AUTO_DONE(buf) room = {};

	free(r);
	s->reading--;
	if (a->e.kind && a->e.kind != ERR_NOT_FOUND) /* an object that is gone was deleted meanwhile */
		s->error = a->e;
	else if (!a->e.kind)
		f->run = archive_record_parse(a->r.body, a->r.body_len);
	/* the object decides to which user it belongs, not its name */
	if (f->run && (!archive_record_name(f->run, &name, &room) || !archive_query_sees(&s->q, name.owner))) {
		json_decref(f->run);
		f->run = NULL;
	}
	reads_go_on(s);
}

static void reads_go_on(struct archive_search *s)
{
	while (!s->error.kind && s->next < s->n && s->reading < READS) {
		struct reading *r = xcalloc(1, sizeof(*r));

		*r = (struct reading){s, s->next++};
		s->reading++;
		s3_client_get(s->s3, s->found[r->i].name, 0, 0, on_object, r);
	}
	if (s->reading == 0)
		search_end(s);
}

/* ---- the names ---- */

static void names_list(struct archive_search *s);

/* False: enough were found, or the rest is later than the search. */
static bool name_examine(struct archive_search *s, const char *name)
{
	struct archive_run_name n;

	if (!archive_name_parse(name, &n))
		return true;
	if (s->q.until && n.slot >= s->q.until) {
		s->at_end = true;
		return false;
	}
	free(s->after);
	s->after = xstrdup(name);
	s->examined++;
	if (!archive_query_matches(&s->q, &n))
		return true;
	s->found = xgrow(s->found, s->n, sizeof(*s->found));
	s->found[s->n++] = (struct found){.name = xstrdup(name)};
	if (s->q.run) {
		s->at_end = true;
		return false;
	}
	return s->n < s->q.limit;
}

static void on_names(const struct s3_answer *a, void *arg)
{
	struct archive_search *s = arg;
	AUTO_TEXT text = a->e.kind ? NULL : xstrndup(a->r.body, a->r.body_len);
	bool more = true;
	char *save = NULL;

	s->error = a->e;
	for (char *key = text ? strtok_r(text, "\n", &save) : NULL; key && more; key = strtok_r(NULL, "\n", &save)) {
		const char *name = s3_client_name(s->s3, key);

		more = !name || name_examine(s, name);
		if (more && save && !*save && !a->r.more)
			s->at_end = true;
	}
	if (!s->error.kind && more && !a->r.more)
		s->at_end = true;
	if (s->error.kind || !more || s->at_end || s->examined >= SEARCH_KEYS)
		reads_go_on(s);
	else
		names_list(s);
}

static void names_list(struct archive_search *s)
{
	s3_client_list(s->s3, "runs/", s->after, KEYS_PER_LIST, on_names, s);
}

void archive_search_start(struct s3_client *s3, struct archive_query *q, archive_search_fn *fn, void *arg)
{
	struct archive_search *s;
	struct err e = {};

	if (s3_client_busy(s3, &e)) {
		archive_query_done(q);
		fn(NULL, &e, arg);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	*s = (struct archive_search){.s3 = s3, .q = *q, .fn = fn, .arg = arg};
	*q = (struct archive_query){};
	s->after = s->q.cursor ? xstrdup(s->q.cursor) : s->q.since ? archive_name_from(s->q.since) : xstrdup("");
	names_list(s);
}

/* ---- output ---- */

struct output_read {
	struct s3_client *s3;
	struct archive_query scope;
	int64_t attempt, from, length;
	archive_read_fn *fn;
	void *arg;
};

static void output_read_end(struct output_read *o, const char *data, size_t len, const struct err *e)
{
	o->fn(data, len, e, o->arg);
	free(o);
}

static void on_output(const struct s3_answer *a, void *arg)
{
	output_read_end(arg, a->r.body, a->r.body_len, a->e.kind ? &a->e : NULL);
}

static void on_record(const struct s3_answer *a, void *arg)
{
	struct output_read *o = arg;
	AUTO_DONE(archive_output_place) place = {};
	AUTO_DONE(buf) room = {};
	struct archive_run_name name;
	struct err e = a->e;
	json_auto_t *run = e.kind ? NULL : archive_record_parse(a->r.body, a->r.body_len);

	if (!e.kind && (!run || !archive_record_name(run, &name, &room) || !archive_query_sees(&o->scope, name.owner)))
		err_set(&e, ERR_NOT_FOUND, "the archive has no such run");
	if (e.kind || !archive_record_output(run, o->attempt, &place, &e)) {
		output_read_end(o, NULL, 0, &e);
	} else if (place.object) {
		s3_client_get(o->s3, place.object, o->from, o->length, on_output, o);
	} else {
		int64_t from = o->from < (int64_t)place.end.len ? o->from : (int64_t)place.end.len;
		size_t left = place.end.len - (size_t)from;

		output_read_end(o, place.end.data + from, left < (size_t)o->length ? left : (size_t)o->length, NULL);
	}
}

void archive_read_output(struct s3_client *s3, const struct archive_read_request *r, archive_read_fn *fn, void *arg)
{
	struct output_read *o;
	struct err e = {};

	if (s3_client_busy(s3, &e)) {
		fn(NULL, 0, &e, arg);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	*o = (struct output_read){.s3 = s3, .scope = {.scope = r->scope}, .attempt = r->attempt, .from = r->from, .length = r->length,
		.fn = fn, .arg = arg};
	s3_client_get(s3, r->name, 0, 0, on_record, o);
}
