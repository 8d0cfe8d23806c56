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

static bool admit_own(const struct admission *a, const struct order *o, struct user *ret, enum start_failure *why,
	struct err *e)
{
	if (o->uid != (int64_t)a->self.uid) {
		err_set(e, ERR_DENIED, "this spawner starts jobs of uid %u only", (unsigned)a->self.uid);
		return refuse(why, START_NOT_ALLOWED);
	}
	*ret = a->self;
	return true;
}

bool admit(const struct admission *a, const struct frame_start *s, const struct payload *p, struct user *ret,
	enum start_failure *why, struct err *e)
{
	const struct order *o = &p->order;

	(void)s;
	if (!a->conf)
		return admit_own(a, o, ret, why, e);
	if (!spawner_conf_uid_allowed(a->conf, o->uid)) {
		err_set(e, ERR_DENIED, "jobs of uid %lld are not allowed by 'allow-uids' in spawner.conf", (long long)o->uid);
		return refuse(why, START_NOT_ALLOWED);
	}
	if (!user_lookup((uid_t)o->uid, ret, why, e))
		return false;
	if (strcmp(ret->name, o->owner) != 0) {
		err_set(e, ERR_DENIED, "uid %lld is '%s' now, the job is of '%s'", (long long)o->uid, ret->name, o->owner);
		return refuse(why, START_OTHER_USER);
	}
	return true;
}
