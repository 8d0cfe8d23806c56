/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the runs that this node archives; writes them, or makes objects of them. */
#include "daemon/archive/archive_pack.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "daemon/archive/archive.h"
#include "daemon/archive/archive_names.h"
#include "exec/proto/output_file.h"
#include "net/s3_payload.h"
#include "store/lists.h"
#include "store/read/list/list_nodes.h"
#include "store/read/prune_candidates.h"
#include "store/read/single.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHUNK (256 << 10)
#define ENDS_MAX ((size_t)512 << 10) /* bytes of stored output in the object of a run */

void archive_batch_done(struct archive_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->v[i].name);
		free(b->v[i].body);
	}
	free(b->v);
	*b = (struct archive_batch){};
}

static struct archive_item *item_add(struct archive_batch *b, char *name /* moved */)
{
	b->v = xgrow(b->v, b->n, sizeof(*b->v));
	b->v[b->n] = (struct archive_item){.name = name};
	return &b->v[b->n++];
}

static void item_add_text(struct archive_batch *b, char *name /* moved */, struct buf *text /* moved */)
{
	struct archive_item *i = item_add(b, name);
	unsigned char sum[SHA256_LEN];
	struct sha256 h;

	i->len = text->len;
	i->body = buf_steal(text);
	sha256_init(&h);
	sha256_add(&h, i->body, i->len);
	sha256_end(&h, sum);
	sha256_hex(sum, i->sha256);
}

/* ---- output ---- */

/* Reads the whole output; writes it to 'to' unless that is -1. */
static bool output_copy(int from, int to, char sha256[SHA256_HEX], int64_t *ret_size, struct err *e)
{
	AUTO_TEXT chunk = xcalloc(1, CHUNK);
	unsigned char sum[SHA256_LEN];
	struct sha256 h;
	int64_t offset = 0;
	size_t n;

	*ret_size = 0;
	sha256_init(&h);
	do {
		int r;

		if (!output_file_read(from, offset, chunk, CHUNK, &offset, &n, e))
			return false;
		sha256_add(&h, chunk, n);
		r = to >= 0 ? io_write_all(to, chunk, n) : 0;
		if (r < 0)
			return err_errno(e, -r, "could not write output to the archive");
		offset += (int64_t)n;
		*ret_size += (int64_t)n;
	} while (n > 0);
	sha256_end(&h, sum);
	sha256_hex(sum, sha256);
	return true;
}

/* Writes output to a file of the local directory: first under another name, so that a crash leaves no part under its own. */
static bool output_save(const struct archive_rules *r, const char *name, int from, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/%s", r->dir, name);
	AUTO_TEXT fresh = xprintf("%s.new", path);
	AUTO_TEXT parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	char sum[SHA256_HEX];
	AUTO_FD fd = -1;
	int64_t size;
	int error = -io_mkdirs(parent, 0700);

	if (error)
		return err_errno(e, error, "could not make the archive directory '%s'", parent);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, errno, "could not write to the archive '%s'", fresh);
	if (!output_copy(from, fd, sum, &size, e))
		return false;
	if (fsync(fd) < 0 || rename(fresh, path) < 0)
		return err_errno(e, errno, "could not write to the archive '%s'", path);
	return true;
}

/* *ret_kept false: the output is too large for the storage. */
static bool output_add(const struct archive_rules *r, const struct run *run, int64_t attempt, int fd, struct archive_batch *b,
	bool *ret_kept, struct err *e)
{
	AUTO_TEXT name = archive_name_of_output(run->slot, run->id, attempt);
	char sum[SHA256_HEX];
	struct archive_item *i;
	int64_t size;

	*ret_kept = true;
	if (r->dir)
		return output_save(r, name, fd, e);
	if (!output_copy(fd, -1, sum, &size, e))
		return false;
	if (size > S3_OBJECT_MAX) {
		*ret_kept = false;
		snprintf(b->warning, sizeof(b->warning),
			"run %" PRId64 " is kept: its output has more than %" PRId64
			" bytes, the largest object that is uploaded (see output-limit in jobschedd.conf(5))",
			run->id, (int64_t)S3_OBJECT_MAX);
		return true;
	}
	i = item_add(b, STEAL(name));
	i->run = run->id;
	i->attempt = attempt;
	memcpy(i->sha256, sum, sizeof(sum));
	return true;
}

/* ---- runs ---- */

enum place { PLACE_NONE, PLACE_HERE, PLACE_ELSEWHERE };

static bool node_lives(const struct node_list *nodes, const char *name)
{
	for (size_t i = 0; i < nodes->n; i++)
		if (text_equal(nodes->v[i].name, name))
			return true;
	return false;
}

static enum place output_place(const struct archive_rules *r, const struct node_list *nodes, const struct attempt *a, int *ret_fd)
{
	if (a->output_bytes <= a->output_dropped)
		return PLACE_NONE;
	*ret_fd = output_file_open(r->output_dir, a->run, a->number);
	if (*ret_fd >= 0)
		return PLACE_HERE;
	*ret_fd = -1;
	if (a->node_name && !text_equal(a->node_name, r->node_name) && node_lives(nodes, a->node_name))
		return PLACE_ELSEWHERE;
	return PLACE_NONE;
}

struct packing {
	struct store *s;
	const struct archive_rules *r;
	struct archive_batch *b;
	struct node_list nodes;
	struct buf lines; /* for the local directory */
};

/* The end of the output that is in the store, for example the response of a call, while there is room for it in the object. */
static bool stored_end(const struct packing *p, const struct attempt *a, struct archive_output *o, size_t *room, struct err *e)
{
	if (a->output_bytes <= a->output_dropped)
		return true;
	if (!store_output_tail(p->s, a->run, a->fence, &o->end, e))
		return false;
	if (o->end && strlen(o->end) > *room)
		free(STEAL(o->end));
	*room -= o->end ? strlen(o->end) : 0;
	return true;
}

/* *ret_mine false: the run is left to another node, or cannot be archived. */
static bool outputs_pack(struct packing *p, const struct run *run, const struct attempt_list *l, struct archive_output *o,
	bool *ret_mine, struct err *e)
{
	bool here = false, elsewhere = false, kept = true;
	size_t room = ENDS_MAX;

	for (size_t i = l->n; i-- > 0 && kept;) { /* the newest attempts first */
		AUTO_FD fd = -1;
		enum place place = output_place(p->r, &p->nodes, l->v[i], &fd);

		here |= place == PLACE_HERE;
		elsewhere |= place == PLACE_ELSEWHERE;
		if (place == PLACE_HERE && !output_add(p->r, run, l->v[i]->number, fd, p->b, &kept, e))
			return false;
		o[i].archived = place == PLACE_HERE;
		if (place != PLACE_HERE && !stored_end(p, l->v[i], &o[i], &room, e))
			return false;
	}
	*ret_mine = kept && (here || (!elsewhere && p->r->leads));
	return true;
}

static bool run_pack(struct packing *p, int64_t id, bool *ret_mine, struct err *e)
{
	__attribute__((cleanup(attempt_list_done))) struct attempt_list attempts = {};
	AUTO(run) *run = NULL;
	AUTO_DONE(buf) text = {};
	struct archive_output *outputs = NULL;
	size_t before = p->b->n;
	bool ok = true;

	*ret_mine = true;
	if (!store_run_get(p->s, -1, id, &run, e)) {
		if (e->kind != ERR_NOT_FOUND)
			return false;
		*e = (struct err){};
		return true;
	}
	if (!store_attempts(p->s, id, &attempts, e))
		return false;
	if (p->r->outputs) {
		outputs = xcalloc(attempts.n + 1, sizeof(*outputs));
		ok = outputs_pack(p, run, &attempts, outputs, ret_mine, e);
	}
	if (ok && *ret_mine)
		archive_describe_run(run, &attempts, outputs, p->r->dir ? &p->lines : &text);
	if (text.len > S3_BODY_MAX) {
		*ret_mine = false;
		snprintf(p->b->warning, sizeof(p->b->warning), "run %" PRId64 " is kept: its %zu attempts need an object of more than %zu bytes",
			id, attempts.n, S3_BODY_MAX);
	}
	if (ok && *ret_mine && !p->r->dir)
		item_add_text(p->b, archive_name_of_run(run), &text);
	for (size_t i = 0; outputs && i < attempts.n; i++)
		free(outputs[i].end);
	free(outputs);
	while (!*ret_mine && p->b->n > before) /* output of a run that is kept */
		free(p->b->v[--p->b->n].name);
	return ok;
}

static bool job_pack(struct packing *p, int64_t id, struct err *e)
{
	AUTO(job) *job = NULL;
	AUTO_DONE(buf) text = {};

	if (!store_job_get(p->s, -1, id, &job, e)) {
		if (e->kind != ERR_NOT_FOUND && e->kind != ERR_REFUSED)
			return false;
		*e = (struct err){};
		return true;
	}
	if (archive_describe_job(job, p->r->dir ? &p->lines : &text) && !p->r->dir)
		item_add_text(p->b, archive_name_of_job(job), &text);
	return true;
}

/* A job is deleted after its runs. */
static bool list_pack(struct packing *p, struct prune_candidates *list, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n_runs; i++) {
		bool mine;

		if (!run_pack(p, list->runs[i], &mine, e))
			return false;
		if (mine)
			list->runs[kept++] = list->runs[i];
	}
	p->b->left = list->n_runs - kept;
	list->n_runs = kept;
	if (p->b->left)
		list->n_jobs = 0;
	for (size_t i = 0; i < list->n_jobs; i++)
		if (!job_pack(p, list->jobs[i], e))
			return false;
	return !p->r->dir || p->lines.len == 0 || archive_append(p->r->dir, p->r->file, &p->lines, e);
}

bool archive_pack(struct store *s, const struct archive_rules *r, struct prune_candidates *list, struct archive_batch *ret,
	struct err *e)
{
	struct packing p = {.s = s, .r = r, .b = ret};
	bool ok;

	if (list->n_runs == 0 && list->n_jobs == 0)
		return true;
	ok = (!r->outputs || list_nodes_open(s, &p.nodes, e)) && list_pack(&p, list, e);
	node_list_done(&p.nodes);
	buf_done(&p.lines);
	return ok;
}

bool archive_pack_outputs(struct store *s, const struct archive_rules *r, struct kept_output *v, size_t *n, struct archive_batch *ret,
	struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		AUTO(run) *run = NULL;
		AUTO_FD fd = -1;
		bool fits = true;

		if (!store_run_get(s, -1, v[i].run, &run, e)) {
			if (e->kind != ERR_NOT_FOUND)
				return false;
			*e = (struct err){};
			continue;
		}
		fd = output_file_open(r->output_dir, v[i].run, v[i].attempt);
		if (fd < 0)
			continue; /* on another node */
		if (!output_add(r, run, v[i].attempt, fd, ret, &fits, e))
			return false;
		if (fits)
			v[kept++] = v[i];
	}
	ret->left = *n - kept;
	*n = kept;
	return true;
}
