/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers notices: takes due ones from the store, hands them to jobsched-net or the spawner, records the result. */
#include "daemon/notify/notifier.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "core/job/notice.h"
#include "core/job/owner.h"
#include "core/job/policy.h"
#include "core/start/start_plan.h"
#include "daemon/loop/config.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/store_thread.h"
#include "daemon/loop/user_lookup.h"
#include "daemon/metrics/metrics.h"
#include "daemon/notify/notice_message.h"
#include "daemon/notify/webhook_sign.h"
#include "exec/proto/output_file.h"
#include "store/notice_row.h"
#include "store/ops/notices.h"
#include "store/ops/notices_due.h"
#include "store/ops/op.h"
#include "store/store.h"
#include "wire/json_value.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define LEASE (3 * USEC_MIN)      /* longer than any try takes; afterwards any node may try again */
#define RETRY_DELAY USEC_SEC      /* after the store refused an operation */
#define WEBHOOK_TIMEOUT (10 * USEC_SEC)
#define NET_DELAY (5 * USEC_SEC) /* before the next try, when jobsched-net is not running */
#define ERROR_SHOWN 500           /* bytes of the last line of a failing command */

struct notifier {
	struct notifier_options o;
	sd_event *ev;             /* borrowed */
	struct map deliveries;      /* by notice */
	struct map under_way;     /* notices that an earlier daemon began and the spawner or jobsched-net still delivers */
	struct op *refused;       /* to be submitted again */
	sd_event_source *retry_timer;
	struct log_repeat not_recorded, not_sent, failed;
	usec_t next, not_before;
	bool held;                /* due notices wait for a slot: the end of any notice is a reason to take again */
	bool again;               /* take now, whatever 'next' says */
	bool spawner_listed;              /* the spawner has named its commands */
	bool ready, resuming, taking, stopped;
	char host[65];
	char *self; /* owned: name of the daemon's user */
};

enum sent_by { BY_NONE, BY_COMMAND, BY_NET };

/* One notice that is being delivered. The reader thread fills in the message first. */
struct delivery {
	struct read_task task;
	struct notifier *owner;
	struct notice *notice;    /* owned */
	struct notice_message notice_message;
	struct err err;
	enum sent_by by;
	bool read, missing;
};

static void delivery_free(struct delivery *g)
{
	notice_message_done(&g->notice_message);
	notice_free(g->notice);
	free(g);
}

/* ---- recording ---- */

static void resubmit_refused(struct notifier *n)
{
	struct op *op = STEAL(n->refused), *next;

	for (; op; op = next) {
		next = op->next;
		store_thread_submit(n->o.store, op);
	}
}

static int on_notice_retry_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	resubmit_refused(arg);
	return 0;
}

static void submit_later(struct notifier *n, struct op *op)
{
	op->next = n->refused;
	n->refused = op;
	sd_event_source_set_time_relative(n->retry_timer, (uint64_t)RETRY_DELAY);
	sd_event_source_set_enabled(n->retry_timer, SD_EVENT_ONESHOT);
}

static void on_recorded(struct op *op, void *arg)
{
	struct notifier *n = arg;
	const struct op_notice_done *d = notice_done_op(op);

	if (!op->ok && op->err.kind != ERR_NOT_FOUND && !n->stopped) {
		log_line(log_repeat(&n->not_recorded, clock_boot(&clock_system)), NULL,
			"could not record the result of notice %" PRId64 ", trying again every second: %s", d->id, op->err.msg);
		submit_later(n, op);
		return;
	}
	n->not_recorded = (struct log_repeat){};
	op_free(op);
}

static void on_command_recorded(struct op *op, void *arg)
{
	struct notifier *n = arg;
	int64_t run = -notice_done_op(op)->id, fence = notice_done_op(op)->try;
	bool again = !op->ok && op->err.kind != ERR_NOT_FOUND && !n->stopped;

	on_recorded(op, arg);
	if (!again) {
		spawner_link_ack(n->o.spawner, run, fence);
		spawner_link_forget_output(n->o.spawner, run, fence);
	}
}

static void on_webhook_recorded(struct op *op, void *arg)
{
	struct notifier *n = arg;
	const struct net_id id = {NET_KIND_WEBHOOK, notice_done_op(op)->id, notice_done_op(op)->try};
	bool again = !op->ok && op->err.kind != ERR_NOT_FOUND && !n->stopped;

	on_recorded(op, arg);
	if (!again)
		net_client_ack(n->o.net, &id);
}

static usec_t retry_at(const struct notifier *n, int64_t try, usec_t now)
{
	uint64_t random;

	io_random(&random, sizeof(random));
	return now + notice_retry_delay(try, n->o.config->notice_retry * USEC_SEC, random);
}

/* A try that is over. */
struct sent {
	int64_t id, try;
	bool last;    /* no further try follows */
	enum sent_by by;
	bool untried; /* nothing was sent: it does not count as a try */
};

/* The notice was delivered if 'error' is NULL. */
static void record(struct notifier *n, const struct sent *t, const char *error)
{
	static void (*const recorded[])(struct op *, void *) = {
		[BY_NONE] = on_recorded, [BY_COMMAND] = on_command_recorded, [BY_NET] = on_webhook_recorded};
	struct op *op = op_new(OP_NOTICE_DONE, recorded[t->by], n);
	usec_t now = clock_now(n->o.clock);

	op_fill(notice_done_op(op), .id = t->id, .try = t->try, .now = now, .error = xstrdup(error),
		.untried = t->untried,
		.state = !error ? NOTICE_SENT : !t->untried && (t->last || t->try >= NOTICE_TRIES) ? NOTICE_FAILED : NOTICE_WAITING);
	if (notice_done_op(op)->state == NOTICE_WAITING)
		notice_done_op(op)->due_at = t->untried ? now + NET_DELAY : retry_at(n, t->try, now);
	op->patient = true;
	store_thread_submit(n->o.store, op);
}

static void count_try(const struct notifier *n, const struct notice *notice, bool sent)
{
	bool last = notice->kind == NOTICE_KIND_TEST || notice->tries >= NOTICE_TRIES;
	enum notify_channel channel;
	const char *target;
	struct err e = {};

	if (policy_notify_parse(notice->channel, &channel, &target, &e))
		metrics_add(n->o.metrics, METRIC_NOTICES, channel,
			sent ? METRIC_NOTICE_SENT : last ? METRIC_NOTICE_FAILED : METRIC_NOTICE_RETRY, 1);
}

static void delivery_finish(struct notifier *n, struct delivery *g, const char *error)
{
	const struct notice *notice = g->notice;

	count_try(n, notice, !error);
	if (error)
		log_line(log_repeat(&n->failed, clock_boot(&clock_system)), &(struct log_about){.job = notice->job, .run = notice->run},
			"notice %" PRId64 " could not be sent, try %" PRId64 " of %d: %s", notice->id, notice->tries,
			notice->kind == NOTICE_KIND_TEST ? 1 : NOTICE_TRIES, error);
	record(n, &(struct sent){.id = notice->id, .try = notice->tries, .last = notice->kind == NOTICE_KIND_TEST, .by = g->by}, error);
	map_take(&n->deliveries, notice->id);
	delivery_free(g);
	n->again |= n->held;
}

/* jobsched-net could not take it. The notice waits; a test notice fails, because its sender waits for the answer. */
static void delivery_postpone(struct notifier *n, struct delivery *g, const char *why)
{
	const struct notice *notice = g->notice;

	if (notice->kind == NOTICE_KIND_TEST) {
		delivery_finish(n, g, why);
		return;
	}
	log_line(log_repeat(&n->not_sent, clock_boot(&clock_system)), &(struct log_about){.job = notice->job, .run = notice->run},
		"notice %" PRId64 " is not sent yet, trying again every %d s: %s", notice->id, (int)(NET_DELAY / USEC_SEC), why);
	record(n, &(struct sent){.id = notice->id, .try = notice->tries, .by = g->by, .untried = true}, why);
	map_take(&n->deliveries, notice->id);
	delivery_free(g);
	n->again |= n->held;
}

/* As cron, which discards the output if there is no mail program. Another try would not help. */
static void delivery_discard(struct notifier *n, struct delivery *g)
{
	static const char why[] = "there is no mail program " POLICY_SENDMAIL "; the output is not mailed ('jobctl log' shows it)";
	const struct notice *notice = g->notice;

	log_line(log_repeat(&n->not_sent, clock_boot(&clock_system)), &(struct log_about){.job = notice->job, .run = notice->run}, "%s",
		why);
	record(n, &(struct sent){.id = notice->id, .try = notice->tries, .last = true, .by = g->by}, why);
	map_take(&n->deliveries, notice->id);
	delivery_free(g);
	n->again |= n->held;
}

/* ---- handing over ---- */

/* The result of a webhook. One without a delivery was begun by an earlier daemon. */
static void on_net_result(const struct net_result *r, int fd, void *arg)
{
	struct notifier *n = arg;
	struct delivery *g = map_get(&n->deliveries, r->id.id);
	const char *error = r->outcome == NET_DONE ? NULL : r->error;

	if (fd >= 0)
		close(fd);
	if (!g || g->notice->tries != r->id.attempt)
		record(n, &(struct sent){.id = r->id.id, .try = r->id.attempt, .by = BY_NET}, error);
	else if (r->outcome == NET_BUSY)
		delivery_postpone(n, g, error);
	else
		delivery_finish(n, g, error);
}

static void on_net_has(const struct net_id *id, void *arg)
{
	struct notifier *n = arg;

	if (!n->ready)
		map_put(&n->under_way, id->id, (void *)(intptr_t)id->id);
}

static bool post_webhook(struct notifier *n, struct delivery *g, const char *url, struct err *e)
{
	json_auto_t *json = notice_message_json(&g->notice_message);
	AUTO_DONE(strv) headers = {};
	AUTO_DONE(buf) body = {};
	const char *texts[8];
	int payload;

	json_value_write(json, &body);
	strv_add(&headers, "Content-Type: application/json");
	strv_add(&headers, "Expect:");
	strv_take(&headers, xprintf("Jobsched-Notice: %s", g->notice_message.id));
	if (n->o.config->webhook_key_file &&
	    !webhook_sign(n->o.config->webhook_key_file, clock_now(n->o.clock) / USEC_SEC, &body, &headers, e))
		return false;
	texts[0] = url;
	for (size_t i = 0; i < headers.n; i++)
		texts[i + 1] = headers.v[i];
	payload = net_payload_memfd(texts, headers.n + 1, body.data, body.len, e);
	if (payload < 0)
		return false;
	g->by = BY_NET;
	net_client_request(n->o.net, &(struct net_request){.id = {NET_KIND_WEBHOOK, g->notice->id, g->notice->tries},
		.uid = owner_uid(g->notice->uid), .timeout = WEBHOOK_TIMEOUT}, payload);
	return true;
}

static bool run_command(struct notifier *n, struct delivery *g, enum notify_channel channel, const char *target,
	struct err *e)
{
	const struct config *c = n->o.config;
	struct notice_message_target how = {.now = clock_now(n->o.clock), .host = n->host};
	AUTO_TEXT mailer = channel == NOTIFY_OUTPUT ? policy_output_command(target) : NULL;
	AUTO_DONE(start_plan) plan = {};

	if (channel == NOTIFY_EXEC) {
		how.command = target;
	} else if (channel == NOTIFY_OUTPUT) {
		how.command = mailer;
		how.mails_output = true;
		how.to = target;
	} else {
		how.sendmail = c->sendmail ? c->sendmail : SENDMAIL_DEFAULT;
		how.to = target;
		if (warrant_needed(spawner_link_warrants(n->o.spawner), owner_uid(g->notice->uid)) || owner_uid(g->notice->uid) == 0) {
			/* a mail needs no warrant and no root: it is sent as the daemon's user */
			how.as = n->self;
			how.as_uid = getuid();
		}
	}
	notice_message_plan(&g->notice_message, &how, &plan);
	g->by = BY_COMMAND;
	return spawner_link_start(n->o.spawner, &plan, e);
}

static void delivery_start(struct notifier *n, struct delivery *g)
{
	enum notify_channel channel;
	const char *target;
	struct err e = {};

	notice_message_write(&g->notice_message, n->o.output_dir, store_thread_store_id(n->o.store), n->o.node_name);
	if (policy_notify_parse(g->notice->channel, &channel, &target, &e) && channel == NOTIFY_OUTPUT &&
	    access(POLICY_SENDMAIL, F_OK) < 0) {
		delivery_discard(n, g);
		return;
	}
	if (!e.kind && (channel == NOTIFY_WEBHOOK ? post_webhook(n, g, target, &e) : run_command(n, g, channel, target, &e)))
		return;
	delivery_finish(n, g, e.msg);
}

static void read_message(struct store *s, struct read_task *task)
{
	struct delivery *g = (struct delivery *)task;

	g->read = notice_message_read(&g->notice_message, s, g->notice, &g->err);
}

static void on_message_read(struct read_task *task)
{
	struct delivery *g = (struct delivery *)task;
	struct notifier *n = g->owner;

	if (n->stopped) { /* the next daemon sends it */
		map_take(&n->deliveries, g->notice->id);
		delivery_free(g);
	} else if (!g->read) {
		delivery_finish(n, g, g->err.msg);
	} else {
		delivery_start(n, g);
	}
}

/* ---- taking ---- */

static void delivery_new(struct notifier *n, struct notice *notice)
{
	struct delivery *g = xcalloc(1, sizeof(*g));

	g->owner = n;
	g->notice = notice;
	g->task = (struct read_task){.work = read_message, .done = on_message_read};
	map_put(&n->deliveries, notice->id, g);
	store_thread_read(n->o.store, &g->task);
}

static void on_taken(struct op *op, void *arg)
{
	struct notifier *n = arg;

	n->taking = false;
	if (!op->ok && !n->stopped) {
		log_warning("could not take the notices that are due, trying again in 1s: %s", op->err.msg);
		n->not_before = clock_now(n->o.clock) + RETRY_DELAY;
		n->again = true;
	}
	n->held = op->ok && notices_due_op(op)->held;
	for (size_t i = 0; op->ok && i < notices_due_op(op)->taken.n; i++) {
		struct notice **v = &notices_due_op(op)->taken.v[i];

		if (!n->stopped && !map_get(&n->deliveries, (*v)->id))
			delivery_new(n, STEAL(*v));
	}
	op_free(op);
}

void notifier_set_next_due(struct notifier *n, usec_t next)
{
	n->next = next;
}

/* Counts the notices under way by owner. */
static void count_in_use(const struct notifier *n, struct op_notice_take *t)
{
	struct delivery *g;

	t->in_use = xcalloc(n->deliveries.used ? n->deliveries.used : 1, sizeof(*t->in_use));
	for (size_t i = 0; (g = map_next(&n->deliveries, &i));) {
		size_t k = 0;

		while (k < t->n_in_use && t->in_use[k].uid != g->notice->uid)
			k++;
		if (k == t->n_in_use)
			t->in_use[t->n_in_use++].uid = g->notice->uid;
		t->in_use[k].n++;
	}
}

usec_t notifier_pump(struct notifier *n)
{
	usec_t now = clock_now(n->o.clock), next = n->again ? 0 : n->next;
	size_t slots = (size_t)n->o.config->notice_slots;
	struct op *op;

	if (!n->ready || n->taking || n->stopped || next == USEC_NEVER || n->deliveries.used >= slots)
		return USEC_NEVER;
	if (next > now || n->not_before > now)
		return next > n->not_before ? next : n->not_before;
	op = op_new(OP_NOTICE_TAKE, on_taken, n);
	op_fill(notices_due_op(op), .node = n->o.node_id, .now = now, .again_at = now + LEASE,
		.limit = slots, .shared = n->o.shared);
	count_in_use(n, notices_due_op(op));
	n->taking = true;
	n->again = false;
	store_thread_submit(n->o.store, op);
	return USEC_NEVER;
}

/* ---- the spawner ---- */

/* Adds the last line of the output of a failing command. */
static void add_last_words(const struct notifier *n, const struct spawn_report *r, struct buf *out)
{
	char said[ERROR_SHOWN];
	struct output_file_extent at;
	int64_t offset;
	size_t len = 0;
	AUTO_FD fd = output_file_open(n->o.output_dir, r->run, r->attempt);

	if (fd < 0 || !output_file_stat(fd, &at, NULL))
		return;
	offset = at.total > ERROR_SHOWN ? at.total - ERROR_SHOWN : 0;
	if (!output_file_read(fd, offset, said, sizeof(said), &offset, &len, NULL))
		return;
	while (len > 0 && said[len - 1] == '\n')
		len--;
	if (len > 0) {
		size_t from = notice_text_last_lines(said, len, 1);

		buf_str(out, ": ");
		text_escape(out, said + from, len - from);
	}
}

static void describe_command_end(const struct notifier *n, const struct spawn_report *r, struct buf *out)
{
	if (r->kind == SPAWN_NOT_STARTED)
		buf_str(out, r->error ? r->error : "it could not be started");
	else if (r->outcome == ATTEMPT_TIMED_OUT)
		buf_str(out, "it took too long");
	else if (r->term_signal)
		buf_printf(out, "signal %" PRId64, r->term_signal);
	else if (r->exit_code > 0)
		buf_printf(out, "exit code %" PRId64, r->exit_code);
	else if (r->outcome != ATTEMPT_SUCCEEDED)
		buf_str(out, r->error ? r->error : attempt_outcome_name(r->outcome));
	if (out->len > 0 && r->kind == SPAWN_ENDED)
		add_last_words(n, r, out);
}

static void command_ended(struct notifier *n, const struct spawn_report *r)
{
	struct delivery *g = map_get(&n->deliveries, -r->run);
	AUTO_DONE(buf) error = {};

	describe_command_end(n, r, &error);
	map_take(&n->under_way, -r->run);
	if (g && g->notice->tries == r->fence)
		delivery_finish(n, g, error.len ? error.data : NULL);
	else if (r->kind == SPAWN_ENDED)
		record(n, &(struct sent){.id = -r->run, .try = r->fence, .by = BY_COMMAND}, error.len ? error.data : NULL); /* started by an earlier daemon */
}

static void on_resumed(struct op *op, void *arg)
{
	struct notifier *n = arg;

	n->ready = true;
	if (!op->ok)
		log_warning("notices of an earlier daemon are sent a few minutes late: %s", op->err.msg);
	op_free(op);
}

static void submit_resume(struct notifier *n)
{
	struct op *op = op_new(OP_NOTICE_RESUME, on_resumed, n);
	struct op_notice_resume *r = notice_resume_op(op);
	void *try;

	r->node = n->o.node_id;
	r->name = n->o.node_name;
	r->now = clock_now(n->o.clock);
	r->under_way = xcalloc(n->under_way.used ? n->under_way.used : 1, sizeof(*r->under_way));
	for (size_t i = 0; (try = map_next(&n->under_way, &i));)
		r->under_way[r->n++] = (int64_t)(intptr_t)try;
	map_done(&n->under_way);
	store_thread_submit(n->o.store, op);
}

/* Notices of an earlier daemon that neither the spawner nor jobsched-net still delivers are sent again. */
static void resume_notices(struct notifier *n)
{
	if (n->ready || n->resuming || !n->spawner_listed || net_client_syncing(n->o.net))
		return;
	n->resuming = true;
	submit_resume(n);
}

/* After a reconnect: commands that the spawner does not list any more have ended without a report. */
static void spawner_listed(struct notifier *n)
{
	struct delivery *g;

	for (size_t i = 0; (g = map_next(&n->deliveries, &i));)
		if (g->missing)
			delivery_finish(n, g, "the spawner that ran it is gone");
	n->spawner_listed = true;
	resume_notices(n);
}

void notifier_net_synced(struct notifier *n)
{
	resume_notices(n);
}

static void on_spawner_report(const struct spawn_report *r, void *arg)
{
	struct notifier *n = arg;
	struct delivery *g;

	switch (r->kind) {
	case SPAWN_STARTED:
	case SPAWN_HAS:
		g = map_get(&n->deliveries, -r->run);
		if (g)
			g->missing = false;
		else
			map_put(&n->under_way, -r->run, (void *)(intptr_t)-r->run);
		break;
	case SPAWN_NOT_STARTED:
	case SPAWN_ENDED:
		command_ended(n, r);
		break;
	case SPAWN_LIST_DONE:
		spawner_listed(n);
		break;
	case SPAWN_GONE:
		for (size_t i = 0; (g = map_next(&n->deliveries, &i));)
			g->missing = g->by == BY_COMMAND;
		break;
	default:
		break;
	}
}

/* ---- start and stop ---- */

bool notifier_new(struct sd_event *ev, const struct notifier_options *o, struct notifier **ret, struct err *e)
{
	AUTO(notifier) *n = xcalloc(1, sizeof(*n));
	struct utsname host;
	int r = sd_event_add_time(ev, &n->retry_timer, CLOCK_BOOTTIME, 0, 1, on_notice_retry_timer, n);

	if (r < 0 || (r = sd_event_source_set_enabled(n->retry_timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	n->o = *o;
	n->ev = ev;
	n->next = USEC_NEVER;
	snprintf(n->host, sizeof(n->host), "%s", uname(&host) == 0 && host.nodename[0] ? host.nodename : "localhost");
	if (!user_lookup_name(getuid(), true, &n->self, e))
		return false;
	spawner_link_set_client(o->spawner, SPAWNER_LINK_NOTICES, on_spawner_report, n);
	net_client_kind(o->net, NET_KIND_WEBHOOK,
		&(struct net_client_kind){.result = on_net_result, .has = on_net_has, .arg = n});
	*ret = STEAL(n);
	return true;
}

void notifier_set_output_dir(struct notifier *n, int fd)
{
	n->o.output_dir = fd;
}

void notifier_stop(struct notifier *n)
{
	n->stopped = true;
}

void notifier_free(struct notifier *n)
{
	struct delivery *g;

	if (!n)
		return;
	for (size_t i = 0; (g = map_next(&n->deliveries, &i));)
		delivery_free(g);
	map_done(&n->deliveries);
	map_done(&n->under_way);
	while (n->refused) {
		struct op *op = n->refused;

		n->refused = op->next;
		op_free(op);
	}
	sd_event_source_disable_unref(n->retry_timer);
	free(n->self);
	free(n);
}
