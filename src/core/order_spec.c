/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the order of a job from its spec: jobctl, which requests the warrant, and the daemon, which starts the job, get the same bytes. */
#include "base/sha256.h"
#include "core/job.h"
#include "core/limits.h"
#include "core/order.h"
#include "core/params.h"
#include "core/policy.h"
#include "core/warrant.h"
#include <string.h>

static void hash_stdin(struct order *o, const struct blob *in)
{
	struct sha256 h;

	if (!in->data)
		return;
	o->stdin_hash = (struct blob){xcalloc(1, SHA256_LEN + 1), SHA256_LEN};
	sha256_init(&h);
	sha256_add(&h, in->data, in->len);
	sha256_end(&h, (unsigned char *)o->stdin_hash.data);
}

static void list_notices(struct order *o, const struct strv *channels)
{
	for (size_t i = 0; i < channels->n; i++) {
		enum notify_channel channel;
		const char *target;

		if (notify_parse(channels->v[i], &channel, &target, NULL) && channel == NOTIFY_EXEC)
			strv_add(&o->notices, target);
	}
}

/* All were checked when the job came in; what does not parse now limits nothing, and cannot be there. */
static void take_limits(struct order *o, const struct job_spec *s)
{
	o->mem = s->mem;
	o->pids = s->pids;
	o->nice = s->nice;
	if (s->cpu)
		(void)limit_cpu_parse(s->cpu, &o->cpu, NULL);
	if (s->ionice)
		(void)limit_ionice_parse(s->ionice, &o->ionice, NULL);
	for (size_t i = 0; i < s->limits.n; i++) {
		char *plain = limit_resource_print(s->limits.v[i]);

		if (plain)
			strv_take(&o->limits, plain);
	}
}

/* An order with an approval carries the identity and the name that the approval covers. Other orders have the same bytes as ever. */
static void take_identity(struct order *o, const struct job_spec *s)
{
	unsigned char job[WARRANT_JOB_LEN];

	if (!warrant_job(s->warrant, job))
		return;
	o->job = (struct blob){xcalloc(1, WARRANT_JOB_LEN + 1), WARRANT_JOB_LEN};
	memcpy(o->job.data, job, WARRANT_JOB_LEN);
	o->name = xstrdup(s->name);
}

void order_from_spec(struct order *o, const struct order_source *from)
{
	const struct job_spec *s = from->spec;

	order_init(o);
	o->uid = from->uid;
	o->owner = xstrdup(from->owner);
	o->tz = xstrdup(s->tz);
	o->cwd = xstrdup(s->cwd);
	o->umask = s->umask;
	o->sandbox = xstrdup(s->sandbox);
	take_limits(o, s);
	params_merge(&s->params, from->params, &o->params);
	if (s->script) {
		strv_add(&o->argv, "/bin/sh");
		strv_add(&o->argv, "-c");
		strv_add(&o->argv, s->script);
	} else {
		params_expand(&s->command, &o->params, &o->argv);
	}
	strv_copy(&o->env, &s->env);
	hash_stdin(o, &s->stdin_data);
	strv_copy(&o->secrets, &s->secrets);
	o->artifact = xstrdup(s->artifact);
	o->sha256 = xstrdup(s->sha256);
	list_notices(o, &s->notify);
	take_identity(o, s);
}
