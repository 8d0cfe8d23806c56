/* SPDX-License-Identifier: Apache-2.0 */
/* Masks the secrets of one worker, also across a re-exec. */
#include "exec/worker/output/output_filter.h"
#include "base/buf.h"
#include "base/io.h"
#include <string.h>
#include <unistd.h>

#define RELEASE_AFTER (100 * USEC_MSEC)
#define SAVED_MAX (SECRETS_BYTES * 3 + SECRETS_MAX * 8)

void output_filter_init(struct output_filter *v)
{
	*v = (struct output_filter){.saved = -1};
}

void output_filter_done(struct output_filter *v)
{
	secret_mask_free(v->secret_mask);
	secrets_done(&v->secrets);
	if (v->saved >= 0)
		close(v->saved);
	output_filter_init(v);
}

void output_filter_set_secrets(struct output_filter *v, struct secrets *s)
{
	v->secrets = *s;
	*s = (struct secrets){};
	v->secret_mask = secrets_mask(&v->secrets);
}

static void output_append(const void *data, size_t len, void *arg)
{
	output_file_write(arg, data, len);
}

void output_filter_write(struct output_filter *v, struct deadlines *all,
	struct output_file_writer *out, const void *data, size_t len)
{
	if (!v->secret_mask) {
		output_file_write(out, data, len);
		return;
	}
	secret_mask_write(v->secret_mask, data, len, output_append, out);
	if (secret_mask_holds(v->secret_mask))
		deadline_set(all, &v->release, clock_boot(&clock_system) + RELEASE_AFTER);
	else
		deadline_clear(all, &v->release);
}

void output_filter_release(
	struct output_filter *v, struct deadlines *all, struct output_file_writer *out)
{
	deadline_clear(all, &v->release);
	if (v->secret_mask)
		secret_mask_release(v->secret_mask, output_append, out);
}

/* ---- re-exec ---- */

static void add_held(const void *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
}

/* The file has the values as records, then the bytes that are held back. */
void output_filter_save(struct output_filter *v)
{
	AUTO_DONE(buf) all = {};
	uint32_t n = (uint32_t)v->secrets.n, len;

	if (v->saved >= 0)
		close(v->saved);
	v->saved = -1;
	if (!v->secret_mask)
		return;
	buf_add(&all, &n, sizeof(n));
	len = (uint32_t)all.len;
	buf_add(&all, &len, sizeof(len));
	secrets_encode(&v->secrets, &all);
	len = (uint32_t)(all.len - 2 * sizeof(len));
	memcpy(all.data + sizeof(n), &len, sizeof(len));
	secret_mask_held(v->secret_mask, add_held, &all);
	v->saved = io_memfd_sealed("jobsched-output-filter", all.data, all.len);
	explicit_bzero(all.data, all.cap);
}

bool output_filter_adopt(struct output_filter *v, struct output_file_writer *out)
{
	AUTO_DONE(buf) all = {};
	struct secrets s = {};
	uint32_t head[2];
	size_t at;
	int error;

	v->secret_mask = NULL;
	v->secrets = (struct secrets){};
	v->release = (struct deadline){};
	if (v->saved < 0)
		return true;
	if (lseek(v->saved, 0, SEEK_SET) < 0 || io_read_all(v->saved, &all, SAVED_MAX) < 0 ||
		all.len < sizeof(head))
		return false;
	close(v->saved);
	v->saved = -1;
	memcpy(head, all.data, sizeof(head));
	if (head[1] > all.len - sizeof(head) ||
		!secrets_parse(&s, all.data + sizeof(head), head[1], &error, &at) || s.n != head[0])
		return false;
	output_filter_set_secrets(v, &s);
	if (v->secret_mask)
		secret_mask_write(v->secret_mask, all.data + sizeof(head) + head[1],
			all.len - sizeof(head) - head[1], output_append, out);
	explicit_bzero(all.data, all.cap);
	return true;
}
