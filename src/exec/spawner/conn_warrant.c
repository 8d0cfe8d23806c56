/* SPDX-License-Identifier: Apache-2.0 */
/* Answers warrant requests on the spawner's sockets. */
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/exec_spec.h"
#include "exec/proto/payload.h"
#include "exec/proto/warrant_client.h"
#include "exec/spawner/admission.h"
#include "exec/spawner/conn.h"
#include "exec/spawner/warrant_key.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Rate limit of all users except root together. Hashing 16 MiB takes at most a tenth of a second.
 */
#define CHECKED_BYTES_PER_SECOND (INT64_C(16) << 20)
#define USER_ORDER_MAX (1 << 20) /* bytes of one specification of a user other than root */

/*
 * Root may approve any job. An owner may approve his own jobs if spawner.conf requires warrants for
 * all. A new warrant always covers the identity and the name of the job, so that the daemon cannot
 * use it for another job.
 */
static bool approval_allowed(const struct conn *c, const struct warrant_subject *t, struct err *e)
{
	AUTO_DONE(exec_spec) o = {};

	if (t->kind == WARRANT_OF_ORDER && !exec_spec_parse(&o, t->data, t->len, e))
		return false;
	if (t->kind == WARRANT_OF_ORDER && !o.job.data)
		return err_set(e, ERR_DENIED,
			"the request does not name the job; use the jobctl of this version");
	if (c->peer == 0 || (admission_policy(c->all->admission) == WARRANT_ALL &&
				    (t->kind == WARRANT_OF_TEXT || o.uid == (int64_t)c->peer)))
		return true;
	return err_set(e, ERR_DENIED, "only root or the owner of a job can approve it");
}

static bool warrant_decide(const struct conn *c, const struct frame_ask_warrant *ask,
	const struct warrant_subject *t, unsigned char ret[WARRANT_LEN], struct err *e)
{
	const struct admission *a = c->all->admission;

	if (!a->key)
		return err_set(e, ERR_DENIED,
			"this spawner serves one user and does not use warrants");
	if (ask->check) {
		struct warrant_subject roots = *t;

		roots.uid = 0; /* a template approved by root is valid for all users */
		memcpy(ret, ask->warrant, WARRANT_LEN);
		return warrant_key_verify(a->key, t, ask->warrant) || warrant_key_verify(a->key, &roots, ask->warrant) ||
		       err_set(e, ERR_DENIED, "it was not approved in this form");
	}
	if (!approval_allowed(c, t, e))
		return false;
	warrant_key_sign(a->key, t, ret);
	log_info("uid %u has approved %s %02x%02x%02x%02x…", (unsigned)c->peer,
		t->kind == WARRANT_OF_ORDER ? "order" : "template", ret[0], ret[1], ret[2], ret[3]);
	return true;
}

struct checked {
	int64_t bytes;
};

void conns_forget_checked(struct conns *cs)
{
	struct checked *of_uid;

	for (size_t i = 0; (of_uid = map_next(&cs->checked, &i));)
		free(of_uid);
	map_done(&cs->checked);
	cs->checked = (struct map){};
	cs->checked_bytes = 0;
}

/*
 * Limits the time that users other than root can take from the spawner. A user never takes more than what is still
 * free, so that one user leaves half of each second to the others.
 */
static bool approval_rate_check(struct conn *c, size_t len, struct err *e)
{
	struct conns *cs = c->all;
	usec_t now = clock_boot(&clock_system);
	struct checked *of_uid;

	if (c->peer == 0)
		return true;
	if (now - cs->checked_since >= USEC_SEC) {
		conns_forget_checked(cs);
		cs->checked_since = now;
	}
	of_uid = map_get(&cs->checked, c->peer);
	if (!of_uid) {
		of_uid = xcalloc(1, sizeof(*of_uid));
		map_put(&cs->checked, c->peer, of_uid);
	}
	if (of_uid->bytes + (int64_t)len > CHECKED_BYTES_PER_SECOND - cs->checked_bytes)
		return err_set(e, ERR_BUSY, "too many approvals at once, try again in a second");
	of_uid->bytes += (int64_t)len;
	cs->checked_bytes += (int64_t)len;
	return true;
}

void conn_warrant_request(struct conn *c, const struct frame *f, int fd)
{
	struct warrant_subject t = {.kind = (enum warrant_kind)f->ask_warrant.kind, .uid = c->peer,
		.data = MAP_FAILED};
	size_t max = t.kind == WARRANT_OF_TEXT ? WARRANT_TEXT_MAX : c->peer == 0 ? EXEC_SPEC_MAX : USER_ORDER_MAX;
	struct frame answer;
	struct err e = {};

	frame_init(&answer, FRAME_WARRANT, 0);
	if (payload_sealed(fd, max, &t.len, &e) && t.len == 0)
		err_set(&e, ERR_INVALID, "the request is empty: nothing to approve");
	if (!e.kind)
		approval_rate_check(c, t.len, &e);
	if (!e.kind && (t.data = mmap(NULL, t.len, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
		err_set(&e, ERR_BUSY, "could not read what is to be approved");
	if (!e.kind)
		answer.warrant.given = warrant_decide(c, &f->ask_warrant, &t,
			answer.warrant.warrant, &e);
	if (!answer.warrant.given) {
		memset(answer.warrant.warrant, 0, WARRANT_LEN);
		frame_text(answer.warrant.error, FRAME_TEXT_MAX, e.msg);
	}
	if (t.data != MAP_FAILED)
		munmap((void *)t.data, t.len);
	conn_send(c, &answer);
	conn_close(c);
}
