/* SPDX-License-Identifier: Apache-2.0 */
/* Decides who may have workers. */
#include "exec/admit.h"
#include "base/err.h"
#include "exec/frame.h"
#include "exec/payload.h"
#include "exec/spawner_conf.h"
#include <string.h>

static bool refuse(enum start_failure *why, enum start_failure reason)
{
	*why = reason;
	return false;
}

static bool needs_warrant(const struct spawner_conf *c, int64_t uid)
{
	return c->require_warrant == WARRANT_ALL || (c->require_warrant == WARRANT_ROOT && uid == 0);
}

bool admit_order(const struct admission *a, const struct frame_start *s, const struct payload *p,
	enum start_failure *why, struct err *e)
{
	int64_t uid = p->order.uid;

	(void)s;
	if (!a->conf && uid != (int64_t)a->self.uid) {
		err_set(e, ERR_DENIED, "this spawner starts jobs of uid %u only", (unsigned)a->self.uid);
		return refuse(why, START_NOT_ALLOWED);
	}
	if (a->conf && !spawner_conf_uid_allowed(a->conf, uid)) {
		err_set(e, ERR_DENIED, "jobs of uid %lld are not allowed by 'allow-uids' in spawner.conf", (long long)uid);
		return refuse(why, START_NOT_ALLOWED);
	}
	if (a->conf && p->order.artifact && needs_warrant(a->conf, uid)) {
		err_set(e, ERR_DENIED, "a job that needs a warrant can have no artifact: what the engine fetched is not what was approved");
		return refuse(why, START_ARTIFACT);
	}
	return true;
}

bool admit_user(const struct order *o, const struct user *u, enum start_failure *why, struct err *e)
{
	if ((int64_t)u->uid == o->uid && (u->unnamed || strcmp(u->name, o->owner) == 0))
		return true;
	err_set(e, ERR_DENIED, "uid %lld is '%s' now, the job is of '%s'", (long long)o->uid, u->name, o->owner);
	return refuse(why, START_OTHER_USER);
}

const struct user *admission_self(const struct admission *a)
{
	return a->conf ? NULL : &a->self;
}

bool admission_asks_pam(const struct admission *a)
{
	return a->conf && a->conf->pam != PAM_POLICY_OFF;
}
