/* SPDX-License-Identifier: Apache-2.0 */
/* Renews the node and leader leases. Without a valid lease nothing is planned or started, and the spawner ends the runs of this node. */
#include "daemon/cluster/cluster.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/cluster/highest_term.h"
#include "daemon/loop/exit_status.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/event_op.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#define MARGIN 5                     /* the last fifth of a lease is not trusted */
#define RENEW 3                      /* a lease is renewed after a third of it */
#define ALONE_RENEW 2                /* the long lease of the only node is renewed after half of it */
#define RETRY (500 * USEC_MSEC)      /* delay after a failed renewal, up to twice that with jitter */
#define RETRY_PART 20                /* a short lease is retried sooner: after this part of it */
#define STAND_AFTER (50 * USEC_MSEC) /* delay after the end of a leader's lease before taking it, up to twice that */
#define UNGUARDED 4                  /* leases that a node without a spawner deadline is given beyond its run lease */
#define SKEW_SHOWN USEC_SEC          /* clock differences above this are logged */
#define STEADY (2 * USEC_MSEC)       /* a change of the clock offset below this, plus half the round trip, is noise */
#define AWAY_MAX USEC_HOUR           /* wait for a node that left as the only node, so that its spawner has no deadline */
#define OVERDUE (10 * USEC_SEC)      /* beyond a lease: a planner or leader without progress for this long raises an alarm */
#define HUNG 8                       /* leases without an answer to the leader's work, after which the leader resigns */
#define LOOK_PAUSE (20 * USEC_MSEC)  /* minimum time between two polls of the node's row */
#define SOON (100 * USEC_MSEC)       /* delay of a poll whose only purpose is to notify peers */

struct cluster {
	struct cluster_options o;
	sd_event_source *timer;            /* fires at the earliest of the three times below; NULL without an event loop */
	usec_t renew_at, look_at, trust_end_at; /* boottime; 0: not set */
	bool opened, stopped;
	usec_t opened_at;                  /* boottime, like all times here unless stated */
	bool renewing, leading, looking;   /* an operation is in flight */
	bool renew_again, look_again;      /* the operation in flight is to be repeated */
	usec_t sent, sent_wall;            /* when the renewal in flight was sent: boottime and time of day */
	usec_t ttl, run_ttl;               /* the lengths that it asked for */
	usec_t renewed;                    /* when the current lease was asked for */
	usec_t runs_until;                 /* end of the current run lease, counted from 'renewed' */
	usec_t deadline;                   /* when the spawner ends runs, while armed */
	usec_t left;                       /* when the departure was sent */
	usec_t trusted_until, leader_until;
	usec_t unbroken_since;             /* every renewal since then was in time */
	usec_t led_at;                     /* when the leader's work last succeeded, or when this node began to lead */
	usec_t lead_sent;                  /* when the leader's work in flight was sent */
	usec_t stand_after;                /* no candidacy before this time, after resigning */
	bool leads, resigning, draining;
	bool armed;                        /* the spawner has a deadline */
	bool unsure;                       /* the spawner may still have the deadline of an earlier daemon */
	bool catching_up;                  /* no renewal has succeeded since the node was opened */
	int64_t term, others;
	uint64_t segments;
	_Atomic usec_t offset;             /* the store's clock minus this machine's; read by other threads */
	usec_t looked_at;
	bool skewed;
	usec_t overdue, first_slot; /* the first unplanned slot at the last renewal, and how long it had been due */
	bool overdue_is_own;        /* this node plans that slot */
	usec_t worked, worked_seen;        /* the leader's progress mark, and when this node first saw it */
	int64_t worked_term;
	bool alarmed_planning, alarmed_leader; /* the alarm was raised */
	struct log_repeat not_renewed;
};

static usec_t cluster_boottime(const struct cluster *c)
{
	return clock_boot(c->o.clock);
}

/* The time of day by the store's clock, which counts for all nodes. */
static usec_t cluster_now(const struct cluster *c)
{
	return clock_now(c->o.clock) + c->offset;
}

static usec_t cluster_jitter(const struct cluster *c, usec_t max)
{
	return c->o.jitter ? c->o.jitter(max, c->o.arg) : io_random_upto(max);
}

bool cluster_trusted(const struct cluster *c)
{
	return c->opened && cluster_boottime(c) < c->trusted_until;
}

/* A resigning leader stops at once: the store may free the leader lease long before its answer arrives. */
bool cluster_leads(const struct cluster *c)
{
	return c->leads && !c->resigning && cluster_boottime(c) < c->leader_until && cluster_trusted(c);
}

bool cluster_is_draining(const struct cluster *c)
{
	return c->draining;
}

int64_t cluster_peers(const struct cluster *c)
{
	return c->others;
}

usec_t cluster_overdue(const struct cluster *c, usec_t own_next)
{
	usec_t now;

	if (!c || !c->overdue || !c->overdue_is_own || own_next <= c->first_slot)
		return c ? c->overdue : 0;
	now = cluster_now(c);
	return own_next < now ? now - own_next : 0;
}

usec_t cluster_lease_age(const struct cluster *c)
{
	return c && c->renewed ? cluster_boottime(c) - c->renewed : 0;
}

usec_t cluster_lease_remain(const struct cluster *c)
{
	return c && cluster_trusted(c) ? c->trusted_until - cluster_boottime(c) : 0;
}

usec_t cluster_runs_remain(const struct cluster *c)
{
	usec_t now = c ? cluster_boottime(c) : 0;

	return c && c->runs_until > now ? c->runs_until - now : 0;
}

usec_t cluster_offset(const struct cluster *c)
{
	return c->offset;
}

usec_t cluster_next(const struct cluster *c)
{
	const usec_t times[] = {c->renew_at, c->look_at, c->trust_end_at};
	usec_t next = USEC_NEVER;

	for (size_t i = 0; i < ELEMENTS(times); i++)
		if (times[i] && times[i] < next)
			next = times[i];
	return next;
}

static void set_timer(struct cluster *c, usec_t *at, usec_t delay)
{
	usec_t now = cluster_boottime(c), next;

	*at = now + delay;
	if (!c->timer)
		return;
	next = cluster_next(c);
	sd_event_source_set_time_relative(c->timer, next > now ? (uint64_t)(next - now) : 0);
	sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* The only node of a file asks for a long lease: the file watch tells it when another node arrives. */
static usec_t lease_wanted(const struct cluster *c)
{
	return c->others == 0 && c->o.alone_ttl ? c->o.alone_ttl : c->o.ttl;
}

static void submit_renewal(struct cluster *c);

/* ---- the leader's work ---- */

/* Gives up the leader lease; another node may be able to do the work. */
static void resign(struct cluster *c)
{
	if (c->resigning)
		return;
	log_error("the leader's work could not be done for a whole lease; resigning");
	c->resigning = true;
	submit_renewal(c);
}

static void on_led(struct op *op, void *arg)
{
	struct cluster *c = arg;
	struct op_lead *l = leader_op(op);

	c->leading = false;
	if (op->ok) {
		c->led_at = cluster_boottime(c);
		if (l->dead > 0)
			log_warning("%" PRId64 " node%s given up: the run lease is over", l->dead, l->dead == 1 ? " is" : "s are");
		if (l->lost.n > 0)
			log_warning("%zu run%s of nodes that are gone or left are given up", l->lost.n, l->lost.n == 1 ? "" : "s");
		if (l->moved > 0)
			log_info("%" PRId64 " segments moved; %" PRId64 " node%s alive", l->moved, l->live, l->live == 1 ? " is" : "s are");
		for (size_t i = 0; i < l->lost.n; i++)
			c->o.on_lost(&l->lost.v[i], c->o.arg);
		if (l->moved > 0)
			cluster_look(c);
	} else if (op->err.kind == ERR_FENCED) {
		c->leads = false;
	} else {
		log_warning("could not do the leader's work: %s", op->err.msg);
		if (cluster_boottime(c) - c->led_at > c->ttl)
			resign(c);
	}
	op_free(op);
}

static void submit_leader_work(struct cluster *c)
{
	usec_t now = cluster_now(c);
	struct op *op;

	if (c->leading && c->leads && c->others > 0 && cluster_boottime(c) - c->lead_sent > HUNG * c->ttl)
		resign(c); /* the store renews leases but does not do the leader's work */
	if (c->leading || c->stopped || !cluster_leads(c))
		return;
	op = op_new(OP_LEAD, on_led, c);
	op_fill(leader_op(op), .node = c->o.node_id, .term = c->term, .now = now, .away_before = now - AWAY_MAX,
		.spares = cluster_boottime(c) - c->unbroken_since < c->o.ttl, .unguarded_wait = UNGUARDED * c->o.ttl);
	c->leading = true;
	c->lead_sent = cluster_boottime(c);
	store_thread_submit(c->o.store, op);
}

/* ---- polling the row of this node ---- */

static void on_look_done(struct op *op, void *arg)
{
	struct cluster *c = arg;
	bool changed = false;

	c->looking = false;
	if (op->ok) {
		changed = node_poll_op(op)->others != c->others;
		c->others = node_poll_op(op)->others;
		c->segments = node_poll_op(op)->segments;
		for (size_t i = 0; i < node_poll_op(op)->to_end.n; i++)
			c->o.on_to_end(&node_poll_op(op)->to_end.v[i], c->o.arg);
	}
	op_free(op);
	if (changed)
		submit_leader_work(c);
	if (c->ttl != lease_wanted(c))
		submit_renewal(c);
	if (c->look_again)
		cluster_look(c);
	c->o.on_looked(c->o.arg);
	c->o.on_change(c->o.arg);
}

void cluster_look(struct cluster *c)
{
	usec_t since = cluster_boottime(c) - c->looked_at;
	struct op *op;

	if (c->stopped || !c->opened)
		return;
	c->look_again = c->looking || since < LOOK_PAUSE;
	if (c->look_again) {
		if (!c->looking)
			set_timer(c, &c->look_at, LOOK_PAUSE - since);
		return;
	}
	op = op_new(OP_NODE_POLL, on_look_done, c);
	node_poll_op(op)->node = c->o.node_id;
	c->looking = true;
	c->looked_at = cluster_boottime(c);
	store_thread_submit(c->o.store, op);
}

/* The commit of this poll carries the notification to the peers. */
void cluster_look_soon(struct cluster *c)
{
	if (!c->look_at && !c->stopped)
		set_timer(c, &c->look_at, SOON);
}

/* ---- renewing ---- */

/* The offset is uncertain by half the round trip; smaller changes are ignored. */
static void measure_clock(struct cluster *c, usec_t theirs)
{
	usec_t trip = cluster_boottime(c) - c->sent, offset = theirs - (c->sent_wall + trip / 2), change = offset - c->offset;
	bool skewed;

	if (theirs == 0)
		return;
	if (change < 0)
		change = -change;
	if (change > trip / 2 + STEADY)
		c->offset = offset;
	skewed = c->offset > SKEW_SHOWN || c->offset < -SKEW_SHOWN;
	if (skewed && !c->skewed)
		log_warning("this machine's clock is %" PRId64 " ms %s the store's, which is the one that counts; set it",
			(c->offset > 0 ? c->offset : -c->offset) / USEC_MSEC, c->offset > 0 ? "behind" : "ahead of");
	c->skewed = skewed;
}

/*
 * The spawner ends runs a margin before other nodes give them up, and kills what is left half a margin later. The margin
 * covers scheduling delays of the spawner's host: a tenth of the run lease, and not less than for the lease.
 */
static usec_t run_margin(const struct cluster *c)
{
	usec_t of_lease = c->o.ttl / MARGIN, of_runs = c->run_ttl / (2 * MARGIN);

	return of_runs > of_lease ? of_runs : of_lease;
}

/* Counts from when the renewal was sent, which is before the store began to count. */
static void set_deadline(struct cluster *c, usec_t sent)
{
	usec_t end = sent + c->run_ttl, margin = run_margin(c);

	c->deadline = end - margin;
	c->o.on_deadline(c->deadline, end - margin / 2, c->o.arg);
}

/*
 * The spawner has a deadline while there are other nodes. It is taken back only after the store knows that this node has
 * no deadline, so that no leader relies on one. Until then it moves on with each renewal, or it would pass while the
 * lease is good.
 */
static void deadline_update(struct cluster *c, bool was_guarded)
{
	if (c->others > 0 || (c->armed && was_guarded)) {
		set_deadline(c, c->sent);
		c->armed = true;
	} else if ((c->armed || c->unsure) && !was_guarded) {
		c->o.on_deadline(0, 0, c->o.arg);
		c->armed = c->unsure = false;
	}
}

static void leader_event_add(struct cluster *c)
{
	struct op *op = op_new(OP_EVENT, NULL, NULL);

	op->act = (struct act){.by = ACTOR_SYSTEM, .what = EVENT_NODE_LEADS};
	snprintf(op->act.object, sizeof(op->act.object), "%s", c->o.node_name);
	event_op(op)->now = cluster_now(c);
	store_thread_submit(c->o.store, op);
}

static void leader_lease_update(struct cluster *c, const struct op_lease *l)
{
	if (l->leads && !c->leads) {
		log_info("this node leads, in term %" PRId64, l->term);
		c->led_at = cluster_boottime(c);
		if (l->took)
			leader_event_add(c);
	} else if (!l->leads && c->leads) {
		log_info("this node does not lead any more");
		/* another node gets the time to take the lease: otherwise the next renewal could take it back */
		c->stand_after = c->resigning || l->yielded ? cluster_boottime(c) + 2 * c->o.ttl : 0;
		c->resigning = false;
	}
	c->leads = l->leads;
	c->term = l->term;
	c->leader_until = c->sent + c->ttl - c->ttl / MARGIN;
}

/* ---- every node watches planning and the leader, and raises an alarm when they stall ---- */

static void raise_alarm(struct cluster *c, const char *node, const char *words)
{
	struct op *op = op_new(OP_EVENT, NULL, NULL);

	log_error("%s; see 'jobctl nodes'", words);
	op->act = (struct act){.by = ACTOR_SYSTEM, .what = EVENT_NODE_ALARM};
	snprintf(op->act.object, sizeof(op->act.object), "%s", node);
	op_fill(event_op(op), .result = "stalled", .now = cluster_now(c));
	snprintf(event_op(op)->detail, sizeof(event_op(op)->detail), "%s", words);
	store_thread_submit(c->o.store, op);
}

/* Raises an alarm when the first slot of the schedule is overdue. */
static void watch_planning(struct cluster *c, const struct op_lease *l)
{
	usec_t now = cluster_now(c);
	char words[200];
	bool late;

	c->overdue = l->first_slot && l->first_slot < now ? now - l->first_slot : 0;
	c->first_slot = l->first_slot;
	c->overdue_is_own = text_equal(l->planner, c->o.node_name);
	/* slots that passed while no node was running get the same time from when this node was opened */
	late = c->overdue > c->o.ttl + OVERDUE && cluster_boottime(c) - c->opened_at > c->o.ttl + OVERDUE;
	if (late && !c->alarmed_planning) {
		snprintf(words, sizeof(words), "the first slot of the schedule has been waiting for %" PRId64 "s, and node '%s' does not plan it",
			c->overdue / USEC_SEC, l->planner);
		raise_alarm(c, l->planner, words);
	}
	c->alarmed_planning = late;
}

/* Raises an alarm when the leader renews its lease but its progress mark does not move. */
static void watch_leader(struct cluster *c, const struct op_lease *l)
{
	usec_t now = cluster_boottime(c);
	char words[200];
	bool still;

	if (l->worked != c->worked || l->term != c->worked_term || l->leads || !l->leader[0] || c->catching_up)
		c->worked_seen = now;
	c->worked = l->worked;
	c->worked_term = l->term;
	still = now - c->worked_seen > c->o.ttl + OVERDUE;
	if (still && !c->alarmed_leader) {
		snprintf(words, sizeof(words), "the leader, node '%s', has not done its work for %" PRId64 "s, though it is there", l->leader,
			(now - c->worked_seen) / USEC_SEC);
		raise_alarm(c, l->leader, words);
	}
	c->alarmed_leader = still;
}

/* ---- the result of a renewal ---- */

static void apply_renewal(struct cluster *c, const struct op_lease *l)
{
	bool look = l->segments != c->segments || (l->others > 0) != (c->others > 0) || c->catching_up;
	struct err e = {};

	if (!highest_term_check(c->o.term_file, store_thread_store_id(c->o.store), l->term, &e)) {
		log_error("%s", e.msg);
		c->o.on_exit(EXIT_CONFIG, c->o.arg);
		return;
	}
	store_thread_expect_term(c->o.store, l->term);
	if (!cluster_trusted(c))
		c->unbroken_since = cluster_boottime(c);
	c->renewed = c->sent;
	c->runs_until = c->sent + c->run_ttl;
	c->trusted_until = c->sent + c->ttl - c->ttl / MARGIN;
	set_timer(c, &c->trust_end_at, c->trusted_until > cluster_boottime(c) ? c->trusted_until - cluster_boottime(c) : 1);
	c->others = l->others;
	measure_clock(c, l->now);
	leader_lease_update(c, l);
	look = look || (c->draining && !l->draining); /* to claim runs that became due during the drain */
	if (l->draining != c->draining)
		log_info(l->draining ? "this node is drained: it starts nothing new" : "this node takes new work again");
	c->draining = l->draining;
	watch_planning(c, l);
	watch_leader(c, l);
	c->catching_up = false;
	if (c->others > 0)
		c->o.on_peers(c->o.arg);
	deadline_update(c, l->guarded);
	submit_leader_work(c);
	if (look)
		cluster_look(c);
}

static void on_lease_lost(struct cluster *c, const struct op *op)
{
	log_error("%s", op->err.msg);
	c->trusted_until = 0;
	c->leads = false;
	if (lease_op(op)->displaced) {
		c->o.on_exit(EXIT_TRY_AGAIN, c->o.arg);
		return;
	}
	c->opened = false;
	c->o.on_given_up(c->o.arg);
}

/* The delay until the next renewal: a part of the lease, or the end of the leader's lease if that is earlier. */
static usec_t next_renewal(const struct cluster *c, const struct op_lease *l)
{
	usec_t next = c->ttl == c->o.alone_ttl ? c->ttl / ALONE_RENEW : c->ttl / RENEW,
	       leader_end = l->leader_remains + STAND_AFTER + cluster_jitter(c, STAND_AFTER);
	usec_t spent = cluster_boottime(c) - c->sent;

	if (c->renew_again || c->ttl != lease_wanted(c))
		return 1; /* another node has arrived: replace the long lease */
	if (c->armed && c->others > 0 && !l->guarded)
		return 1; /* tell the store that the spawner has a deadline; without it other nodes wait longer for this one */
	if (!l->leads && l->leader_remains > 0 && leader_end < next)
		next = leader_end;
	return next > spent ? next - spent : 1;
}

static void on_renewed(struct op *op, void *arg)
{
	struct cluster *c = arg;
	usec_t retry = c->ttl / RETRY_PART < RETRY ? c->ttl / RETRY_PART : RETRY;

	c->renewing = false;
	if (op->ok) {
		c->not_renewed = (struct log_repeat){};
		apply_renewal(c, lease_op(op));
		set_timer(c, &c->renew_at, next_renewal(c, lease_op(op)));
	} else if (op->err.kind == ERR_FENCED) {
		if (c->opened && !c->stopped)
			on_lease_lost(c, op);
	} else {
		if (!cluster_trusted(c))
			log_line(log_repeat(&c->not_renewed, cluster_boottime(c)), NULL, "could not renew the node lease, retrying (run lease ends in %" PRId64 " s): %s",
				cluster_runs_remain(c) / USEC_SEC, op->err.msg);
		set_timer(c, &c->renew_at, retry + cluster_jitter(c, retry));
	}
	op_free(op);
	c->o.on_change(c->o.arg);
}

/*
 * The store may apply a shorter lease long before its answer arrives, and other nodes count by the shorter one from then
 * on. So a shorter lease is in force here, and for the spawner, from when it is sent.
 */
static void lease_shorten(struct cluster *c)
{
	usec_t until = c->sent + c->ttl - c->ttl / MARGIN;

	if (c->trusted_until > until) {
		c->trusted_until = until;
		set_timer(c, &c->trust_end_at, until - cluster_boottime(c));
	}
	if (c->armed && c->deadline > c->sent + c->run_ttl - run_margin(c))
		set_deadline(c, c->sent);
}

static void submit_renewal(struct cluster *c)
{
	struct op *op;

	c->renew_again = c->renewing;
	if (c->renewing || c->stopped || !c->opened)
		return;
	op = op_new(OP_LEASE, on_renewed, c);
	c->sent = cluster_boottime(c);
	c->sent_wall = clock_now(c->o.clock);
	c->ttl = lease_wanted(c);
	c->run_ttl = c->o.run_ttl > c->ttl ? c->o.run_ttl : c->ttl;
	lease_shorten(c);
	op_fill(lease_op(op), .node = c->o.node_id, .name = c->o.node_name, .ttl = c->ttl, .run_ttl = c->run_ttl,
		.at = c->sent_wall + c->offset, .stands = !c->o.barred && c->sent >= c->stand_after, .resigns = c->resigning,
		.guarded = c->armed && c->others > 0, .skew = c->offset);
	c->renewing = true;
	store_thread_submit(c->o.leases, op);
}

/* A store that does not answer fails no call for a while, so the end of the lease is logged on its own. */
static void log_trust_end(struct cluster *c)
{
	if (c->opened && !c->stopped)
		log_warning("the node lease is over: nothing is planned or started until it is renewed; runs go on (run lease ends in %" PRId64
			" s)", cluster_runs_remain(c) / USEC_SEC);
}

static bool is_due(usec_t *at, usec_t now)
{
	if (*at == 0 || *at > now)
		return false;
	*at = 0;
	return true;
}

void cluster_tick(struct cluster *c)
{
	usec_t now = cluster_boottime(c);

	if (is_due(&c->trust_end_at, now) && !cluster_trusted(c))
		log_trust_end(c);
	if (is_due(&c->look_at, now))
		cluster_look(c);
	if (is_due(&c->renew_at, now))
		submit_renewal(c);
}

static int on_timer_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct cluster *c = arg;
	usec_t next;

	(void)usec;
	cluster_tick(c);
	next = cluster_next(c);
	if (next != USEC_NEVER) {
		usec_t now = cluster_boottime(c);

		sd_event_source_set_time_relative(source, next > now ? (uint64_t)(next - now) : 0);
		sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	}
	return 0;
}

void cluster_renew_now(struct cluster *c)
{
	submit_renewal(c);
}

void cluster_opened(struct cluster *c, int64_t others)
{
	c->opened = true;
	c->opened_at = cluster_boottime(c);
	c->armed = false; /* the spawner may be a new one */
	c->unsure = true; /* the spawner may be an old one that still has a deadline */
	c->others = others;
	c->catching_up = true;
	submit_renewal(c);
}

void cluster_stop(struct cluster *c)
{
	c->stopped = true;
}

bool cluster_leave(struct cluster *c, usec_t *ret_run_ttl)
{
	c->stopped = true;
	c->left = cluster_boottime(c);
	c->run_ttl = c->o.run_ttl;
	*ret_run_ttl = c->run_ttl;
	return c->armed && c->others > 0;
}

/*
 * The next daemon of this node takes over the running jobs. Other nodes give these up after the run lease, so the spawner
 * keeps a deadline. Without other nodes there is no deadline.
 */
void cluster_left(struct cluster *c)
{
	if (c->armed && c->others > 0)
		set_deadline(c, c->left);
	else if (c->armed || c->unsure)
		c->o.on_deadline(0, 0, c->o.arg);
	c->armed = c->unsure = false;
}

/* ---- start and stop ---- */

bool cluster_new(struct sd_event *ev, const struct cluster_options *o, struct cluster **ret, struct err *e)
{
	AUTO(cluster) *c = xcalloc(1, sizeof(*c));
	int r;

	c->o = *o;
	if (!c->o.clock)
		c->o.clock = &clock_system;
	r = ev ? sd_event_add_time(ev, &c->timer, CLOCK_BOOTTIME, 0, 1, on_timer_due, c) : 0;
	if (r >= 0 && ev)
		r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	if (r < 0)
		return err_errno(e, -r, "could not make a timer");
	*ret = STEAL(c);
	return true;
}

void cluster_free(struct cluster *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->timer);
	free(c);
}
