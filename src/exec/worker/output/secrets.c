/* SPDX-License-Identifier: Apache-2.0 */
/* Secret values: encoding, parsing, erasing, memory files. */
#include "exec/worker/output/secrets.h"
#include "base/buf.h"
#include "base/io.h"
#include "exec/child/user.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void secrets_done(struct secrets *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].data)
			explicit_bzero(s->v[i].data, s->v[i].len);
		blob_done(&s->v[i]);
	}
	*s = (struct secrets){};
}

void secrets_encode(const struct secrets *s, struct buf *out)
{
	for (size_t i = 0; i < s->n; i++) {
		uint32_t head[2] = {0, (uint32_t)s->v[i].len};

		buf_add(out, head, sizeof(head));
		buf_add(out, s->v[i].data, s->v[i].len);
	}
}

bool secrets_parse(
	struct secrets *ret, const char *data, size_t len, int *ret_error, size_t *ret_at)
{
	struct secrets s = {};
	size_t sum = 0;

	*ret_error = 0;
	for (uint32_t head[2]; len > 0;) {
		if (len < sizeof(head) || s.n == SECRETS_MAX)
			goto out;
		memcpy(head, data, sizeof(head));
		data += sizeof(head);
		len -= sizeof(head);
		*ret_error = (int)head[0];
		*ret_at = s.n;
		sum += head[1];
		if (head[0] || head[1] > len || sum > SECRETS_BYTES)
			goto out;
		s.v[s.n] = (struct blob){xcalloc(1, (size_t)head[1] + 1), head[1]};
		memcpy(s.v[s.n++].data, data, head[1]);
		data += head[1];
		len -= head[1];
	}
	*ret = s;
	return true;
out:
	secrets_done(&s);
	return false;
}

struct secret_mask *secrets_mask(const struct secrets *s)
{
	struct secret_mask_value values[SECRETS_MAX];

	for (size_t i = 0; i < s->n; i++)
		values[i] = (struct secret_mask_value){s->v[i].data, s->v[i].len};
	return secret_mask_new(values, s->n);
}

/*
 * A process that has the descriptor can read it. Through /proc/PID/fd only the owner can open it.
 */
static int secret_memfd(const struct blob *value, const struct user *owner)
{
	AUTO_FD fd = memfd_create("jobsched-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[64];
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, value->data, value->len);
	if (r < 0)
		return r;
	if (fchmod(fd, 0400) < 0 || (owner && fchown(fd, owner->uid, owner->gid) < 0) ||
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

void secrets_files_done(struct secrets_files *f)
{
	while (f->n > 0)
		close(f->v[--f->n]);
}

int secrets_files_make(struct secrets_files *ret, const struct secrets *s, const struct user *owner)
{
	for (size_t i = 0; i < s->n; i++) {
		int fd = secret_memfd(&s->v[i], owner);

		if (fd < 0)
			return fd;
		ret->v[ret->n++] = fd;
	}
	return 0;
}
