/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the warrant key; computes the HMAC of warrants. */
#include "exec/spawner/warrant_key.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "exec/proto/warrant_client.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "warrant.key"
#define NAME_NEW "warrant.key.new"
#define NAME_SECOND "warrant.key.second"

/*
 * Prefix of the signed bytes. No prefix is the start of another, so a warrant of one kind is never
 * valid as another.
 */
static const char *const domains[WARRANT_KIND_MAX] = {
	[WARRANT_OF_ORDER] = "jobsched order 1",
	[WARRANT_OF_TEXT] = "jobsched text 1",
};

static bool warrant_key_create(struct warrant_key *k, int dir, struct err *e)
{
	AUTO_FD fd = -1;

	if (unlinkat(dir, NAME_NEW, 0) < 0 && errno != ENOENT)
		return err_errno(e, errno, "could not remove '%s'", NAME_NEW);
	fd = openat(dir, NAME_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	io_random(k->bytes, sizeof(k->bytes));
	if (fd < 0 || io_write_all(fd, k->bytes, sizeof(k->bytes)) < 0 || fsync(fd) < 0 ||
		renameat(dir, NAME_NEW, dir, NAME) < 0 || fsync(dir) < 0)
		return err_errno(e, errno, "could not create the warrant key");
	return true;
}

static bool warrant_key_read(
	unsigned char ret[WARRANT_KEY_LEN], int fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(e, errno, "could not open '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || st.st_mode & 077)
		return err_set(e, ERR_REFUSED,
			"'%s' in the state directory must belong to root and be readable by root only; correct that, or "
			"remove the file and approve root's jobs again", name);
	if (read(fd, ret, WARRANT_KEY_LEN) != WARRANT_KEY_LEN || st.st_size != WARRANT_KEY_LEN)
		return err_set(e, ERR_REFUSED,
			"'%s' in the state directory is damaged; restore it, or remove it and approve root's jobs again",
			name);
	return true;
}

static bool warrant_key_open_second(struct warrant_key *k, int state_dir, struct err *e)
{
	AUTO_FD fd = openat(state_dir, NAME_SECOND, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	k->has_second = fd >= 0;
	if (fd >= 0)
		return warrant_key_read(k->second, fd, NAME_SECOND, e);
	return errno == ENOENT || err_errno(e, errno, "could not open '%s'", NAME_SECOND);
}

bool warrant_key_open(struct warrant_key *ret, int state_dir, struct err *e)
{
	AUTO_FD fd = -1;

	*ret = (struct warrant_key){};
	if (!warrant_key_open_second(ret, state_dir, e))
		return false;
	fd = openat(state_dir, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return warrant_key_create(ret, state_dir, e);
	if (fd < 0)
		return err_errno(e, errno, "could not open the warrant key");
	return warrant_key_read(ret->bytes, fd, NAME, e);
}

static void warrant_sign(const unsigned char key[WARRANT_KEY_LEN], const struct warrant_subject *t,
	unsigned char ret[WARRANT_LEN])
{
	const unsigned char uid[4] = {(unsigned char)t->uid, (unsigned char)(t->uid >> 8), (unsigned char)(t->uid >> 16),
		(unsigned char)(t->uid >> 24)};
	const struct sha256_part parts[] = {
		{domains[t->kind], strlen(domains[t->kind]) + 1},
		{uid, t->kind == WARRANT_OF_TEXT ? sizeof(uid) : 0},
		{t->data, t->len},
	};

	_Static_assert(WARRANT_LEN == SHA256_LEN, "a warrant is one HMAC");
	sha256_hmac(key, WARRANT_KEY_LEN, parts, ELEMENTS(parts), ret);
}

void warrant_key_sign(const struct warrant_key *k, const struct warrant_subject *t,
	unsigned char ret[WARRANT_LEN])
{
	warrant_sign(k->bytes, t, ret);
}

/* Compares in constant time. */
static bool warrant_matches(const unsigned char key[WARRANT_KEY_LEN], const struct warrant_subject *t,
	const unsigned char w[WARRANT_LEN])
{
	volatile unsigned char differs = 0;
	unsigned char right[WARRANT_LEN];

	warrant_sign(key, t, right);
	for (int i = 0; i < WARRANT_LEN; i++)
		differs = (unsigned char)(differs | (right[i] ^ w[i]));
	return differs == 0;
}

bool warrant_key_verify(const struct warrant_key *k, const struct warrant_subject *t,
	const unsigned char w[WARRANT_LEN])
{
	return warrant_matches(k->bytes, t, w) || (k->has_second && warrant_matches(k->second, t, w));
}
