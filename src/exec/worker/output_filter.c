/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the secrets of one worker, also over a change of our program. */
#include "exec/worker/output_filter.h"
#include "base/buf.h"
#include "base/io.h"
#include <string.h>
#include <unistd.h>

#define RELEASE_AFTER (100 * USEC_MSEC)
#define SAVED_MAX (SECRETS_BYTES * 3 + SECRETS_MAX * 8)

void veil_init(struct veil *v)
{
	*v = (struct veil){.saved = -1};
}

void veil_done(struct veil *v)
{
	mask_free(v->mask);
	secrets_done(&v->secrets);
	if (v->saved >= 0)
		close(v->saved);
	veil_init(v);
}

void veil_put(struct veil *v, struct secrets *s)
{
	v->secrets = *s;
	*s = (struct secrets){};
	v->mask = secrets_mask(&v->secrets);
}

static void keep(const void *data, size_t len, void *arg)
{
	output_write(arg, data, len);
}

void veil_write(struct veil *v, struct deadlines *all, struct output_writer *out, const void *data, size_t len)
{
	if (!v->mask) {
		output_write(out, data, len);
		return;
	}
	mask_write(v->mask, data, len, keep, out);
	if (mask_holds(v->mask))
		deadline_set(all, &v->release, clock_boot(&clock_system) + RELEASE_AFTER);
	else
		deadline_clear(all, &v->release);
}

void veil_release(struct veil *v, struct deadlines *all, struct output_writer *out)
{
	deadline_clear(all, &v->release);
	if (v->mask)
		mask_release(v->mask, keep, out);
}

/* ---- over a change of our program ---- */

static void add_held(const void *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
}

/* The values as records, then as they are the bytes that wait for what comes next. */
void veil_save(struct veil *v)
{
	AUTO_DONE(buf) all = {};
	uint32_t n = (uint32_t)v->secrets.n, len;

	if (v->saved >= 0)
		close(v->saved);
	v->saved = -1;
	if (!v->mask)
		return;
	buf_add(&all, &n, sizeof(n));
	len = (uint32_t)all.len;
	buf_add(&all, &len, sizeof(len));
	secrets_encode(&v->secrets, &all);
	len = (uint32_t)(all.len - 2 * sizeof(len));
	memcpy(all.data + sizeof(n), &len, sizeof(len));
	mask_held(v->mask, add_held, &all);
	v->saved = io_memfd_sealed("jobsched-veil", all.data, all.len);
	explicit_bzero(all.data, all.cap);
}

bool veil_adopt(struct veil *v, struct output_writer *out)
{
	AUTO_DONE(buf) all = {};
	struct secrets s = {};
	uint32_t head[2];
	size_t at;
	int error;

	v->mask = NULL;
	v->secrets = (struct secrets){};
	v->release = (struct deadline){};
	if (v->saved < 0)
		return true;
	if (lseek(v->saved, 0, SEEK_SET) < 0 || io_read_all(v->saved, &all, SAVED_MAX) < 0 || all.len < sizeof(head))
		return false;
	close(v->saved);
	v->saved = -1;
	memcpy(head, all.data, sizeof(head));
	if (head[1] > all.len - sizeof(head) || !secrets_parse(&s, all.data + sizeof(head), head[1], &error, &at) || s.n != head[0])
		return false;
	veil_put(v, &s);
	if (v->mask)
		mask_write(v->mask, all.data + sizeof(head) + head[1], all.len - sizeof(head) - head[1], keep, out);
	explicit_bzero(all.data, all.cap);
	return true;
}
