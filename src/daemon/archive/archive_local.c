/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files NAME.jsonl.gz. A place in the archive is NAME:MEMBER:LINE, where MEMBER is the offset of a gzip member. */
#include "daemon/archive/archive_local.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/archive/archive_names.h"
#include "daemon/archive/archive_search.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16)
#define CHUNK (64 << 10)
#define LINE_MAX_BYTES ((size_t)4 << 20)
#define NAME_LEN 16 /* 20261118T020000Z */
#define ENDING ".jsonl.gz"

struct place {
	char name[NAME_LEN + 1];
	int64_t member, line;
};

static bool name_valid(const char *name)
{
	return strspn(name, "0123456789TZ") == NAME_LEN;
}

static bool place_parse(const char *text, struct place *ret)
{
	int used = 0;

	if (!name_valid(text) || text[NAME_LEN] != ':' ||
		sscanf(text + NAME_LEN, ":%18" SCNd64 ":%18" SCNd64 "%n", &ret->member, &ret->line, &used) != 2 || text[NAME_LEN + used] ||
		ret->member < 0 || ret->line < 0)
		return false;
	memcpy(ret->name, text, NAME_LEN);
	ret->name[NAME_LEN] = '\0';
	return true;
}

static char *place_text(const struct place *p)
{
	return xprintf("%s:%" PRId64 ":%" PRId64, p->name, p->member, p->line);
}

/* ---- one file ---- */

/* False: stop. 'at' is the place of the line. */
typedef bool line_fn(const struct place *at, const char *line, size_t len, void *arg);

struct lines {
	struct place at;    /* of the next line */
	int64_t first;      /* lines before this one of the first member are skipped */
	struct buf partial;
	size_t bytes;       /* read so far */
	line_fn *fn;
	void *arg;
};

/* False: the function has stopped. */
static bool lines_feed(struct lines *l, const char *data, size_t len)
{
	const char *end = data + len, *newline;

	for (; data < end; data = newline + 1) {
		bool more = true;

		newline = memchr(data, '\n', (size_t)(end - data));
		if (l->partial.len < LINE_MAX_BYTES)
			buf_add(&l->partial, data, newline ? (size_t)(newline - data) : (size_t)(end - data));
		if (!newline)
			return true;
		if (l->at.line >= l->first && l->partial.len < LINE_MAX_BYTES)
			more = l->fn(&l->at, l->partial.data ? l->partial.data : "", l->partial.len, l->arg);
		l->bytes += l->partial.len;
		buf_clear(&l->partial);
		if (!more)
			return false;
		l->at.line++;
	}
	return true;
}

enum member_end { MEMBER_END, MEMBER_STOPPED, MEMBER_DAMAGED, MEMBER_NONE };

/* Reads the member at l->at.member and sets it to the next one. */
static enum member_end member_read(int fd, struct lines *l)
{
	AUTO_TEXT in = xcalloc(1, CHUNK);
	AUTO_TEXT out = xcalloc(1, CHUNK);
	z_stream z = {};
	int64_t at = l->at.member;
	enum member_end end = MEMBER_DAMAGED;
	int r = Z_OK;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return MEMBER_DAMAGED;
	while (r == Z_OK || r == Z_BUF_ERROR) {
		if (z.avail_in == 0) {
			ssize_t n = pread(fd, in, CHUNK, at);

			if (n <= 0) { /* a crash left the member incomplete */
				end = n == 0 && at == l->at.member ? MEMBER_NONE : MEMBER_DAMAGED;
				break;
			}
			at += n;
			z.next_in = (unsigned char *)in;
			z.avail_in = (unsigned)n;
		}
		z.next_out = (unsigned char *)out;
		z.avail_out = CHUNK;
		r = inflate(&z, Z_NO_FLUSH);
		if ((r == Z_OK || r == Z_STREAM_END) && !lines_feed(l, out, CHUNK - z.avail_out)) {
			inflateEnd(&z);
			return MEMBER_STOPPED;
		}
	}
	if (r == Z_STREAM_END) {
		end = MEMBER_END;
		l->at.member = at - (int64_t)z.avail_in;
		l->at.line = 0;
		l->first = 0;
	}
	inflateEnd(&z);
	return end;
}

static int file_open(const char *dir, const char *name)
{
	AUTO_TEXT path = xprintf("%s/%s" ENDING, dir, name);

	return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- search ---- */

struct search {
	const struct archive_query *q;
	struct archive_page *page;
	struct place stopped; /* the next line to examine */
	struct lines *lines;
};

static bool on_line(const struct place *at, const char *line, size_t len, void *arg)
{
	struct search *s = arg;
	AUTO_TEXT as = place_text(at);
	AUTO_DONE(buf) room = {};
	struct archive_run_name name;
	json_auto_t *run = text_starts(line, "{\"run\"") ? archive_record_parse(line, len) : NULL;

	s->stopped = *at;
	s->stopped.line++;
	if (run && archive_record_name(run, &name, &room) && archive_query_matches(s->q, &name))
		archive_page_add(s->page, run, as);
	return s->page->n < s->q->limit && s->lines->bytes + len < LOCAL_BYTES;
}

static int select_file(const struct dirent *d)
{
	return name_valid(d->d_name) && strcmp(d->d_name + NAME_LEN, ENDING) == 0;
}

/* True: the search goes on with the next file. */
static bool file_search(int fd, struct lines *l)
{
	enum member_end end;

	do
		end = member_read(fd, l);
	while (end == MEMBER_END);
	return end != MEMBER_STOPPED;
}

bool archive_local_search(const char *dir, const struct archive_query *q, struct archive_page *ret, struct err *e)
{
	struct search s = {.q = q, .page = ret};
	struct lines l = {.fn = on_line, .arg = &s};
	struct place from = {};
	struct dirent **files = NULL;
	int n;

	if (q->cursor && !place_parse(q->cursor, &from))
		return err_field(e, "cursor", "'%.80s' is not a cursor of this archive", q->cursor);
	n = scandir(dir, &files, select_file, alphasort);
	if (n < 0 && errno != ENOENT)
		return err_errno(e, errno, "could not read the archive '%s'", dir);
	s.lines = &l;
	for (int i = 0; i < n; i++) {
		bool first = strncmp(files[i]->d_name, from.name, NAME_LEN) == 0;
		AUTO_FD fd = -1;

		if (ret->next || strncmp(files[i]->d_name, from.name, NAME_LEN) < 0) {
			free(files[i]);
			continue;
		}
		l.at = (struct place){.member = first ? from.member : 0};
		l.first = first ? from.line : 0;
		memcpy(l.at.name, files[i]->d_name, NAME_LEN);
		free(files[i]);
		buf_clear(&l.partial);
		fd = file_open(dir, l.at.name);
		if (fd >= 0 && !file_search(fd, &l))
			ret->next = place_text(&s.stopped);
	}
	free(files);
	buf_done(&l.partial);
	return true;
}

/* ---- output ---- */

static bool on_single(const struct place *at, const char *line, size_t len, void *arg)
{
	(void)at;
	*(json_t **)arg = archive_record_parse(line, len);
	return false;
}

static bool object_read(const char *dir, const char *name, const struct archive_read_request *o, struct buf *ret, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/%s", dir, name);
	AUTO_FD fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_errno(e, errno, "could not read the archived output '%s'", path);
	n = pread(fd, buf_room(ret, (size_t)o->length), (size_t)o->length, o->from);
	if (n < 0)
		return err_errno(e, errno, "could not read the archived output '%s'", path);
	ret->len += (size_t)n;
	return true;
}

bool archive_local_output(const char *dir, const struct archive_read_request *o, struct buf *ret, struct err *e)
{
	const struct archive_query scope = {.scope = o->scope};
	AUTO_DONE(archive_output_place) place = {};
	AUTO_DONE(buf) room = {};
	json_auto_t *run = NULL;
	struct archive_run_name name;
	struct lines l = {.fn = on_single, .arg = &run};
	AUTO_FD fd = -1;

	if (place_parse(o->name, &l.at)) {
		l.first = l.at.line;
		l.at.line = 0;
		fd = file_open(dir, l.at.name);
		if (fd >= 0)
			member_read(fd, &l);
		buf_done(&l.partial);
	}
	if (!run || !archive_record_name(run, &name, &room) || !archive_query_sees(&scope, name.owner))
		return err_set(e, ERR_NOT_FOUND, "the archive has no such run");
	if (!archive_record_output(run, o->attempt, &place, e))
		return false;
	if (place.object)
		return object_read(dir, place.object, o, ret, e);
	if (o->from < (int64_t)place.end.len) {
		size_t left = place.end.len - (size_t)o->from;

		buf_add(ret, place.end.data + o->from, left < (size_t)o->length ? left : (size_t)o->length);
	}
	return true;
}
