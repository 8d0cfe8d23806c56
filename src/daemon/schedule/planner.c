/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the store to turn due slots into runs. */
#include "daemon/schedule/planner.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/time/slots.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/schedule_cache.h"
#include "store/ops/op.h"
#include "store/ops/run/boot_runs.h"
#include "store/ops/run/plans.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_LIMIT 2000      /* due rows in one transaction */
/* Past slots examined in one transaction, which takes some milliseconds. */
#define PLAN_STEPS 100000
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define RETRY_DELAY USEC_SEC /* after the store refused the operation */

struct planner {
	const struct clock *clock;
	struct store_thread *store;
	const char *node_id;
	usec_t next_slot, not_before;
	bool planning, stopped;
	struct err refused;          /* why the last planning failed; ERR_NONE: it succeeded */
	usec_t refused_since;
	struct log_repeat not_planned;
	char boot_id[64];
	/* owned: the store refused it, it is submitted again at boot_at; NULL: none */
	struct op *boot;
	usec_t boot_at;
	struct schedule_cache *schedule_cache; /* used on the store thread */
};

struct planner *planner_new(const struct clock *clock, struct store_thread *store,
	const char *node_id)
{
	struct planner *p = xcalloc(1, sizeof(*p));

	*p = (struct planner){.clock = clock, .store = store, .node_id = node_id, .next_slot = USEC_NEVER,
		.schedule_cache = schedule_cache_new()};
	return p;
}

struct schedule_cache *planner_schedule_cache(const struct planner *p)
{
	return p->schedule_cache;
}

void planner_free(struct planner *p)
{
	if (!p)
		return;
	schedule_cache_free(p->schedule_cache);
	op_free(p->boot);
	free(p);
}

void planner_set_next_slot(struct planner *p, usec_t next_slot)
{
	p->next_slot = next_slot;
}

static void on_booted(struct op *op, void *arg)
{
	struct planner *p = arg;

	if (!op->ok && op->err.kind != ERR_UNCERTAIN && op->err.kind != ERR_REFUSED &&
		!p->stopped) {
		log_error("could not queue the boot jobs, trying again in 1 s: %s", op->err.msg);
		p->boot = op;
		p->boot_at = clock_now(p->clock) + RETRY_DELAY;
		return;
	}
	if (boot_runs_op(op)->runs)
		log_info("the machine was booted: %zu boot jobs queued", boot_runs_op(op)->runs);
	op_free(op);
}

/* Returns when to call again; USEC_NEVER: the operation is stored or submitted. */
static usec_t boot_resubmit(struct planner *p, usec_t now)
{
	if (!p->boot)
		return USEC_NEVER;
	if (p->boot_at > now + RETRY_DELAY)
		p->boot_at = now; /* the clock has been set back */
	if (p->boot_at > now)
		return p->boot_at;
	store_thread_submit(p->store, STEAL(p->boot));
	return USEC_NEVER;
}

/*
 * On the store thread, inside the transaction. A spec that cannot be read is queued; the dispatcher
 * reports the error.
 */
static bool boot_due(int64_t job, const char *text, usec_t now, usec_t *ret,
	struct start_policy *ret_policy, void *arg)
{
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	(void)arg;
	*ret = now;
	job_spec_init(&spec);
	if (!spec_json_from_text(text, &spec, &e))
		return true;
	if (now < spec.from || (spec.until && now > spec.until)) {
		log_line(LOG_LEVEL_INFO, &(struct log_about){.job = job},
			"job %" PRId64
			" does not run after this boot, which is before its 'from' or after its 'until'",
			job);
		return false;
	}
	policy_start_of(&spec, ret_policy);
	*ret = now + io_random_upto(spec.jitter);
	return true;
}

/*
 * $JOBSCHED_BOOT_ID of the service manager has precedence: in a container /proc shows the boot of
 * the host.
 */
static bool read_boot_id(struct planner *p)
{
	const char *named = getenv("JOBSCHED_BOOT_ID"), *text = named;
	AUTO_DONE(buf) file = {};
	size_t n = 0;
	int r = named ? 0 : io_read_file(BOOT_ID_FILE, &file, 64);

	if (r < 0) {
		log_warning("boot jobs are not started, could not read '%s': %s", BOOT_ID_FILE,
			strerror(-r));
		return false;
	}
	if (!named)
		text = file.data;
	for (; *text && *text != '\n' && n < sizeof(p->boot_id) - 1; text++) /* hyphens are ignored */
		if (*text != '-')
			p->boot_id[n++] = *text;
	p->boot_id[n] = '\0';
	return n > 0;
}

void planner_boot(struct planner *p, const char *node_name)
{
	struct op *op;

	if (!read_boot_id(p))
		return;
	op = op_new(OP_BOOT, on_booted, p);
	op_fill(boot_runs_op(op), .name = node_name, .boot = p->boot_id, .now = clock_now(p->clock),
		.fn = boot_due);
	store_thread_submit(p->store, op);
}

void planner_invalidate(struct planner *p)
{
	schedule_cache_invalidate(p->schedule_cache);
}

const char *planner_refused(const struct planner *p, usec_t *ret_since)
{
	*ret_since = p->refused_since;
	return p->refused.kind ? p->refused.msg : NULL;
}

usec_t planner_next_slot(const struct planner *p)
{
	return p->next_slot;
}

void planner_stop(struct planner *p)
{
	p->stopped = true;
}

static void on_planned(struct op *op, void *arg)
{
	struct planner *p = arg;

	p->planning = false;
	if (!op->ok) {
		p->not_before = clock_now(p->clock) + RETRY_DELAY;
		log_line(log_repeat(&p->not_planned, clock_boot(p->clock)), NULL,
			"could not plan due jobs, trying again every second: %s", op->err.msg);
		if (!p->refused.kind)
			p->refused_since = clock_now(p->clock);
		p->refused = op->err;
	} else {
		p->refused = (struct err){};
		p->not_planned = (struct log_repeat){};
	}
	op_free(op);
}

static usec_t plan(struct planner *p, usec_t now)
{
	struct op *op;
	usec_t at;

	if (p->planning || p->next_slot == USEC_NEVER)
		return USEC_NEVER;
	at = p->next_slot - SLOTS_LOOKAHEAD;
	if (p->not_before > now + RETRY_DELAY)
		p->not_before = 0; /* the clock has been set back */
	if (at < p->not_before)
		at = p->not_before;
	if (at > now)
		return at;
	op = op_new(OP_PLAN, on_planned, p);
	op_fill(plan_op(op), .node = p->node_id, .now = now, .horizon = now + SLOTS_LOOKAHEAD,
		.limit = PLAN_LIMIT, .steps = PLAN_STEPS, .fn = schedule_cache_plan,
		.fn_arg = p->schedule_cache);
	p->planning = true;
	store_thread_submit(p->store, op);
	return USEC_NEVER;
}

usec_t planner_pump(struct planner *p)
{
	usec_t now = clock_now(p->clock), boot, at;

	if (p->stopped)
		return USEC_NEVER;
	boot = boot_resubmit(p, now);
	at = plan(p, now);
	return boot < at ? boot : at;
}
