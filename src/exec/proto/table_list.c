/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and strict decoding of the list of crontabs. */
#include "exec/proto/table_list.h"
#include "base/buf.h"
#include "base/err.h"
#include <stdlib.h>
#include <string.h>

#define TABLE_MAGIC UINT32_C(0x6c62746a) /* "jtbl" */
#define NAME_BYTES 4096                  /* of a path, a user or a reason */

void table_file_done(struct table_file *f)
{
	free(f->path);
	free(f->user);
	free(f->problem);
	blob_done(&f->content);
	free(f->warrants);
	*f = (struct table_file){};
}

void table_list_done(struct table_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		table_file_done(&l->files[i]);
	for (size_t i = 0; i < l->stamps_n; i++)
		free(l->stamps[i].id);
	free(l->files);
	free(l->stamps);
	free(l->cron);
	free(l->anacron);
	*l = (struct table_list){};
}

/* ---- encoding ---- */

static void put_number(struct buf *out, uint64_t n, size_t bytes)
{
	for (; bytes > 0; bytes--, n >>= 8)
		buf_char(out, (char)(n & 0xff));
}

static void put_bytes(struct buf *out, const char *data, size_t len)
{
	put_number(out, len, 4);
	if (len)
		buf_add(out, data, len);
}

static void put_text(struct buf *out, const char *text)
{
	put_bytes(out, text ? text : "", text ? strlen(text) : 0);
}

static void put_file(struct buf *out, const struct table_file *f)
{
	put_text(out, f->path);
	put_number(out, (uint64_t)f->kind, 8);
	put_number(out, (uint64_t)f->uid, 8);
	put_text(out, f->user);
	put_text(out, f->problem);
	put_bytes(out, f->content.data, f->content.len);
	put_number(out, f->warrants_n, 8);
	for (size_t i = 0; i < f->warrants_n; i++) {
		put_number(out, (uint64_t)f->warrants[i].line, 8);
		buf_add(out, f->warrants[i].job, WARRANT_JOB_LEN);
		buf_add(out, f->warrants[i].warrant, WARRANT_LEN);
	}
}

void table_list_encode(const struct table_list *l, struct buf *out)
{
	put_number(out, TABLE_MAGIC, 4);
	put_number(out, (uint64_t)l->mode, 8);
	put_number(out, (uint64_t)l->cron_pid, 8);
	put_text(out, l->cron);
	put_text(out, l->anacron);
	put_number(out, l->n, 8);
	for (size_t i = 0; i < l->n; i++)
		put_file(out, &l->files[i]);
	put_number(out, l->stamps_n, 8);
	for (size_t i = 0; i < l->stamps_n; i++) {
		put_text(out, l->stamps[i].id);
		put_number(out, (uint64_t)l->stamps[i].day, 8);
	}
	put_number(out, TABLE_MAGIC, 4);
}

/* ---- decoding ---- */

struct table_cursor {
	const unsigned char *at, *end;
	bool failed;
};

static uint64_t take_number(struct table_cursor *c, size_t bytes, uint64_t max)
{
	uint64_t n = 0;

	if ((size_t)(c->end - c->at) < bytes) {
		c->failed = true;
		return 0;
	}
	for (size_t i = bytes; i > 0; i--)
		n = n << 8 | c->at[i - 1];
	c->at += bytes;
	c->failed |= n > max;
	return c->failed ? 0 : n;
}

static void take_raw(struct table_cursor *c, unsigned char *to, size_t len)
{
	if (c->failed || (size_t)(c->end - c->at) < len) {
		c->failed = true;
		return;
	}
	memcpy(to, c->at, len);
	c->at += len;
}

static char *take_bytes(struct table_cursor *c, size_t max, size_t *ret_len)
{
	size_t len = take_number(c, 4, max);
	char *data;

	if (c->failed || (size_t)(c->end - c->at) < len) {
		c->failed = true;
		len = 0;
	}
	data = xcalloc(1, len + 1);
	memcpy(data, c->at, len);
	c->at += len;
	*ret_len = len;
	return data;
}

static char *take_text(struct table_cursor *c)
{
	size_t len;
	char *text = take_bytes(c, NAME_BYTES, &len);

	c->failed |= strlen(text) != len;
	return text;
}

static void take_file(struct table_cursor *c, struct table_file *f)
{
	uint64_t n;

	f->path = take_text(c);
	f->kind = (int64_t)take_number(c, 8, TABLE_KIND_MAX - 1);
	f->uid = (int64_t)take_number(c, 8, UINT32_MAX);
	f->user = take_text(c);
	f->problem = take_text(c);
	f->content.data = take_bytes(c, TABLE_FILE_MAX, &f->content.len);
	n = take_number(c, 8, TABLE_LINES_MAX);
	f->warrants = xcalloc(n ? n : 1, sizeof(*f->warrants));
	for (; !c->failed && f->warrants_n < n; f->warrants_n++) {
		struct table_warrant *w = &f->warrants[f->warrants_n];

		w->line = (int64_t)take_number(c, 8, TABLE_FILE_MAX);
		take_raw(c, w->job, WARRANT_JOB_LEN);
		take_raw(c, w->warrant, WARRANT_LEN);
	}
}

static void take_stamp(struct table_cursor *c, struct table_stamp *s)
{
	s->id = take_text(c);
	s->day = (int64_t)take_number(c, 8, 99991231);
}

bool table_list_parse(struct table_list *ret, const void *data, size_t len, struct err *e)
{
	struct table_cursor c = {data, (const unsigned char *)data + len, len > TABLE_LIST_MAX};
	AUTO_DONE(table_list) l = {};
	uint64_t n;

	c.failed |= take_number(&c, 4, UINT32_MAX) != TABLE_MAGIC;
	l.mode = (int64_t)take_number(&c, 8, 16);
	l.cron_pid = (int64_t)take_number(&c, 8, INT32_MAX);
	l.cron = take_text(&c);
	l.anacron = take_text(&c);
	n = take_number(&c, 8, TABLE_FILES_MAX);
	l.files = xcalloc(n ? n : 1, sizeof(*l.files));
	for (; !c.failed && l.n < n; l.n++)
		take_file(&c, &l.files[l.n]);
	n = take_number(&c, 8, TABLE_FILES_MAX);
	l.stamps = xcalloc(n ? n : 1, sizeof(*l.stamps));
	for (; !c.failed && l.stamps_n < n; l.stamps_n++)
		take_stamp(&c, &l.stamps[l.stamps_n]);
	c.failed |= take_number(&c, 4, UINT32_MAX) != TABLE_MAGIC;
	if (c.failed || c.at != c.end)
		return err_set(e, ERR_INVALID, "the list of crontabs is incomplete or invalid");
	*ret = l;
	l = (struct table_list){};
	return true;
}
