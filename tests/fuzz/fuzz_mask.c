/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the masking of secrets in output. The input has the number of values (1 to 4), each with
 * its length (one byte), then the output in pieces, each with its length. A piece of length 0 is a
 * flush. No value may appear in the result, also not in base64. Without flushes the result must not
 * depend on the pieces.
 */
#include "base/buf.h"
#include "exec/worker/output/secret_mask.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *p;
	size_t left;
};

static size_t take(struct input *in, const uint8_t **ret)
{
	size_t n = in->left ? in->p[0] : 0;

	if (!in->left)
		return 0;
	in->p++;
	in->left--;
	n = n < in->left ? n : in->left;
	*ret = in->p;
	in->p += n;
	in->left -= n;
	return n;
}

static void collect(const void *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
}

static void check_hidden(const struct buf *out, const struct secret_mask_value *v)
{
	AUTO_DONE(buf) coded = {};
	const char *p = v->data;
	size_t len = v->len;

	while (len && (p[len - 1] == '\n' || p[len - 1] == '\r'))
		len--;
	/* the replacement of a secret may look like such a value */
	if (len < MASK_MIN || memchr(p, '*', len))
		return;
	if (out->len && memmem(out->data, out->len, p, len))
		abort();
	buf_base64(&coded, p, len);
	if (out->len && memmem(out->data, out->len, coded.data, coded.len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct secret_mask_value values[4] = {};
	size_t n = size ? 1 + data[0] % 4 : 0;
	struct secret_mask *m, *whole;
	AUTO_DONE(buf) out = {};
	AUTO_DONE(buf) all = {};
	AUTO_DONE(buf) out_whole = {};
	bool released = false;

	if (!size)
		return 0;
	in.p++;
	in.left--;
	for (size_t i = 0; i < n; i++)
		values[i].len = take(&in, (const uint8_t **)&values[i].data);
	m = secret_mask_new(values, n);
	whole = secret_mask_new(values, n);
	while (m && in.left) {
		const uint8_t *piece = NULL;
		size_t len = take(&in, &piece);

		if (len) {
			secret_mask_write(m, piece, len, collect, &out);
			buf_add(&all, piece, len);
		} else {
			secret_mask_release(m, collect, &out);
			released = true;
		}
	}
	if (m) {
		secret_mask_release(m, collect, &out);
		secret_mask_write(whole, all.data, all.len, collect, &out_whole);
		secret_mask_release(whole, collect, &out_whole);
		if (!released && (out.len != out_whole.len || (out.len && memcmp(out.data, out_whole.data, out.len) != 0)))
			abort();
		for (size_t i = 0; i < n; i++)
			check_hidden(&out, &values[i]);
	}
	secret_mask_free(m);
	secret_mask_free(whole);
	return 0;
}
