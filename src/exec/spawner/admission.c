/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a start request: allowed uids, user name, warrant, artifact. */
#include "exec/spawner/admission.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/start/start_failure.h"
#include "exec/proto/frame.h"
#include "exec/proto/payload.h"
#include "exec/proto/warrant_client.h"
#include "exec/spawner/spawner_conf.h"
#include "exec/spawner/warrant_key.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool start_failure_set(enum start_failure *why, enum start_failure reason)
{
	*why = reason;
	return false;
}

enum warrant_policy admission_policy(const struct admission *a)
{
	return a->conf ? (enum warrant_policy)a->conf->require_warrant : WARRANT_NONE;
}

static bool warrant_required(const struct admission *a, int64_t uid)
{
	return warrant_needed(admission_policy(a), uid) && uid != (int64_t)a->daemon;
}

/*
 * The warrant covers the standard input through its SHA-256: for an interpreter it is the program.
 */
static bool stdin_hash_matches(int in, const struct blob *hash)
{
	unsigned char sum[SHA256_LEN];
	struct sha256 h;
	struct stat st;
	void *data;

	if (in < 0 || !hash->data)
		return in < 0 && !hash->data;
	if (fstat(in, &st) < 0)
		return false;
	data = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, in, 0) : NULL;
	if (data == MAP_FAILED)
		return false;
	sha256_init(&h);
	sha256_add(&h, data, (size_t)st.st_size);
	sha256_end(&h, sum);
	if (data)
		munmap(data, (size_t)st.st_size);
	return memcmp(sum, hash->data, SHA256_LEN) == 0;
}

static bool warrant_check(const struct admission *a, const struct frame_start *s,
	const struct payload *p, int in, struct err *e)
{
	const struct warrant_subject order = {.kind = WARRANT_OF_ORDER, .data = p->bytes,
		.len = p->bytes_len};
	const char *who = p->spec.uid == 0 ? "root" : "its owner";

	if (!s->has_warrant || !a->key)
		return err_set(e, ERR_DENIED,
			"no warrant: %s must approve the job with 'jobctl approve'", who);
	if (!warrant_key_verify(a->key, &order, s->warrant))
		return err_set(e, ERR_DENIED, "the warrant does not match the job: %s must review it and run "
						"'jobctl approve'", who);
	return s->part != 0 || stdin_hash_matches(in, &p->spec.stdin_hash) ||
	       err_set(e, ERR_DENIED, "the standard input differs from the approved one");
}

bool admission_check_order(const struct admission *a, const struct frame_start *s,
	const struct payload *p, int in, enum start_failure *why, struct err *e)
{
	int64_t uid = p->spec.uid;

	(void)s;
	if (!a->conf && uid != (int64_t)a->self.uid) {
		err_set(e, ERR_DENIED, "this spawner starts only jobs of uid %u",
			(unsigned)a->self.uid);
		return start_failure_set(why, START_NOT_ALLOWED);
	}
	if (a->conf && !spawner_conf_uid_allowed(a->conf, uid)) {
		err_set(e, ERR_DENIED, "jobs of uid %lld are not allowed by 'allow-uids' in spawner.conf", (long long)uid);
		return start_failure_set(why, START_NOT_ALLOWED);
	}
	if (warrant_required(a, uid) && !warrant_check(a, s, p, in, e))
		return start_failure_set(why, START_NO_WARRANT);
	if (p->spec.artifact && warrant_required(a, uid)) {
		err_set(e, ERR_DENIED, "a job that needs a warrant cannot have an artifact: the spawner cannot verify what the daemon fetched");
		return start_failure_set(why, START_ARTIFACT);
	}
	return true;
}

bool admission_check_user(const struct exec_spec *o, const struct user *u, enum start_failure *why,
	struct err *e)
{
	if ((int64_t)u->uid == o->uid && (u->unnamed || strcmp(u->name, o->owner) == 0))
		return true;
	err_set(e, ERR_DENIED, "uid %lld now belongs to '%s', but the job belongs to '%s'",
		(long long)o->uid, u->name, o->owner);
	return start_failure_set(why, START_OTHER_USER);
}

bool admission_check_file(const struct admission *a, int64_t uid)
{
	if (!a->conf)
		return uid == (int64_t)a->self.uid;
	return spawner_conf_uid_allowed(a->conf, uid) && !warrant_required(a, uid);
}

const struct user *admission_self(const struct admission *a)
{
	return a->conf ? NULL : &a->self;
}

bool admission_uses_pam(const struct admission *a)
{
	return a->conf && a->conf->pam != PAM_POLICY_OFF;
}
