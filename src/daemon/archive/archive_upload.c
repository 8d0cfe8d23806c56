/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a number of uploads under way until all are confirmed or one has failed for good. */
#include "daemon/archive/archive_upload.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/archive/archive_pack.h"
#include "daemon/archive/s3_client.h"
#include "exec/proto/output_file.h"
#include <errno.h>
#include <inttypes.h>

#define UPLOADS 16 /* at a time */

struct slot {
	struct archive_upload *upload;
	struct s3_call *call; /* NULL: free */
};

struct archive_upload {
	struct archive_upload_options o;
	size_t next, confirmed; /* objects */
	struct slot slots[UPLOADS];
};

_Static_assert(S3_PARTS_MAX >= OUTPUT_FILE_SEGMENTS, "an output file has no more parts");

static bool uploads_fill(struct archive_upload *u, struct err *e);

static void uploads_end(struct archive_upload *u, const struct err *e)
{
	archive_upload_fn *fn = u->o.fn;
	void *arg = u->o.arg;
	struct err why = e ? *e : (struct err){};

	archive_upload_free(u);
	fn(e ? &why : NULL, arg);
}

static void on_uploaded(const struct s3_answer *a, void *arg)
{
	struct slot *slot = arg;
	struct archive_upload *u = slot->upload;
	struct err e = a->e;

	slot->call = NULL;
	u->confirmed += !e.kind;
	if (e.kind || !uploads_fill(u, &e))
		uploads_end(u, &e);
	else if (u->confirmed == u->o.batch->n)
		uploads_end(u, NULL);
}

static bool file_upload(struct archive_upload *u, const struct archive_item *i, struct slot *slot, struct err *e)
{
	struct output_file_segment segments[OUTPUT_FILE_SEGMENTS];
	struct s3_part parts[OUTPUT_FILE_SEGMENTS];
	AUTO_FD fd = output_file_open(u->o.output_dir, i->run, i->attempt);
	size_t n = 0;

	if (fd < 0)
		return err_errno(e, -fd, "could not open the output of run %" PRId64, i->run);
	if (!output_file_segments(fd, segments, &n, e))
		return false;
	for (size_t k = 0; k < n; k++)
		parts[k] = (struct s3_part){segments[k].at, segments[k].length};
	slot->call = s3_client_put(u->o.s3,
		&(struct s3_upload){.name = i->name, .file = STEAL_FD(fd), .parts = parts, .parts_n = n, .sha256 = i->sha256}, on_uploaded,
		slot);
	return true;
}

static bool item_upload(struct archive_upload *u, const struct archive_item *i, struct slot *slot, struct err *e)
{
	if (!i->body)
		return file_upload(u, i, slot, e);
	slot->call = s3_client_put(u->o.s3,
		&(struct s3_upload){.name = i->name, .body = i->body, .len = i->len, .file = -1, .sha256 = i->sha256}, on_uploaded, slot);
	return true;
}

static bool uploads_fill(struct archive_upload *u, struct err *e)
{
	for (size_t k = 0; k < UPLOADS && u->next < u->o.batch->n; k++)
		if (!u->slots[k].call && !item_upload(u, &u->o.batch->v[u->next++], &u->slots[k], e))
			return false;
	return true;
}

struct archive_upload *archive_upload_new(const struct archive_upload_options *o, struct err *e)
{
	AUTO(archive_upload) *u = xcalloc(1, sizeof(*u));

	u->o = *o;
	for (size_t k = 0; k < UPLOADS; k++)
		u->slots[k].upload = u;
	return uploads_fill(u, e) ? STEAL(u) : NULL;
}

void archive_upload_free(struct archive_upload *u)
{
	if (!u)
		return;
	for (size_t k = 0; k < UPLOADS; k++)
		s3_client_cancel(u->slots[k].call);
	free(u);
}
