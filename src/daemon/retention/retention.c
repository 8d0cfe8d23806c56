/* SPDX-License-Identifier: Apache-2.0 */
/* A pass deletes old history, then history above the budgets, then orphaned output files. */
#include "daemon/retention/retention.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/archive/archive.h"
#include "daemon/archive/archive_pack.h"
#include "daemon/archive/archive_upload.h"
#include "daemon/loop/store_thread.h"
#include "exec/proto/output_dir.h"
#include "store/ops/op.h"
#include "store/ops/retention.h"
#include "store/read/check.h"
#include "store/read/prune_candidates.h"
#include "store/read/single.h"
#include "store/store.h"
#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#define FIRST_PASS (2 * USEC_MIN)
#define PASS_EVERY USEC_HOUR
#define CHECK_EVERY USEC_DAY
#define ARCHIVE_RETRY USEC_MIN /* after a pass that the archive has stopped; doubles up to PASS_EVERY */
#define STEP_PAUSE (20 * USEC_MSEC) /* between steps, so that other operations are not delayed */
#define OUTPUTS_STEP 200
#define EVENTS_STEP 500             /* events that one step deletes at most */
#define ENOUGH(budget) ((budget) - (budget) / 10)

enum stage { STAGE_IDLE, STAGE_HISTORY, STAGE_BUDGET, STAGE_OUTPUTS, STAGE_STRAY, STAGE_CHECK,
	STAGE_MAX };

struct waiter {
	struct prune_rule keep;
	retention_done_fn *fn;
	void *arg;
	struct waiter *next;
};

/* One step: reads what to delete on the thread for long tasks, then deletes it. */
struct step {
	struct read_task task;
	struct retention *r;
	enum stage stage;
	struct prune_rule keep;
	usec_t now;
	struct archive_rules archive;
	bool archives;
	int output_dir;
	struct retention_limits limits;
	struct prune_pass pass;       /* input and result */
	struct prune_candidates list;       /* result, as the members below */
	struct kept_output *outputs;
	size_t n_outputs;
	struct strv problems;
	struct archive_batch batch;   /* to be uploaded before anything is deleted */
	bool more;                    /* the budget is still exceeded */
	bool ok;
	struct err err;
};

struct retention {
	struct retention_options o;
	sd_event_source *timer;
	enum stage stage;
	struct waiter *waiters, **last_waiter;
	/* the pass was requested by this waiter; NULL: a periodic pass */
	struct waiter *served;
	struct prune_pass usual, pass; /* usual: progress of the periodic passes */
	struct retention_report report;
	char *archive_name;           /* owned; of this pass */
	bool leads;                   /* of this pass: it deletes history */
	bool left;                    /* the pass has left runs to other nodes */
	unsigned archive_failures;    /* passes in a row */
	struct archive_upload *upload; /* owned: of the current step; NULL: none */
	usec_t checked_at;            /* CLOCK_BOOTTIME */
	bool swept;                   /* orphaned files were searched for since the start */
	bool busy;                    /* a step is under way */
	bool stopped;
	struct step *step;            /* owned: the current one, while its operation is under way */
};

static void step_start(struct retention *r);

static void step_free(struct step *l)
{
	if (!l)
		return;
	prune_candidates_done(&l->list);
	archive_batch_done(&l->batch);
	strv_done(&l->problems);
	free(l->outputs);
	free(l);
}

/* ---- on the thread for long tasks ---- */

static bool archive_list(struct store *s, struct step *l)
{
	if (!l->archives)
		return true;
	if (!archive_pack(s, &l->archive, &l->list, &l->batch, &l->err))
		return false;
	if (l->batch.left && l->list.n_runs == 0)
		l->pass.done = true; /* the next step would find the same runs */
	return true;
}

static bool step_find_budget(struct store *s, struct step *l)
{
	struct owner_budget budget = {
		.store = l->limits.store_budget, .per_owner = l->limits.owner_store_limit};

	if (!prune_candidates_next_owner(s, &budget, &l->pass, &l->err))
		return false;
	l->more = l->pass.has_owner;
	return !l->more ||
	       (prune_candidates_of_owner(s, &l->pass, &l->list, &l->err) && archive_list(s, l));
}

/*
 * Deletes output of the owner with the most bytes first, until the second largest owner has as
 * much. So the output of one owner does not displace that of the others.
 */
static bool step_find_outputs(struct store *s, struct step *l)
{
	struct store_sizes sizes;
	int64_t over, his, freed = 0;
	size_t n;

	if (!store_sizes(s, &sizes, &l->err))
		return false;
	if (!l->limits.output_budget || sizes.outputs <= l->limits.output_budget)
		return true;
	over = sizes.outputs - ENOUGH(l->limits.output_budget);
	his = sizes.most - sizes.second + 1 < over ? sizes.most - sizes.second + 1 : over;
	l->outputs = xcalloc(OUTPUTS_STEP, sizeof(*l->outputs));
	if (!prune_candidates_outputs(s, sizes.most_uid, OUTPUTS_STEP, l->outputs, &n, &l->err))
		return false;
	while (l->n_outputs < n && freed < his)
		freed += l->outputs[l->n_outputs++].bytes;
	l->more = n > 0 && freed < over;
	if (l->archives && l->archive.outputs &&
		!archive_pack_outputs(s, &l->archive, l->outputs, &l->n_outputs, &l->batch, &l->err))
		return false;
	l->more = l->more && l->n_outputs > 0;
	return true;
}

/* A crash between deleting rows and deleting files leaves orphaned files. */
static bool step_find_strays(struct store *s, struct step *l)
{
	AUTO_DONE(output_dir_list) names = {};

	if (!output_dir_list_read(l->output_dir, &names, &l->err))
		return false;
	l->outputs = xcalloc(names.n ? names.n : 1, sizeof(*l->outputs));
	for (size_t i = 0; i < names.n; i++) {
		AUTO(run) *run = NULL;
		struct err e = {};

		/*
		 * negative numbers are notices, and the row of a new run may not be visible on this
		 * connection yet
		 */
		if (names.v[i].run <= 0 || names.v[i].changed_at > l->now - USEC_HOUR)
			continue;
		/* the directory that the attempts of a run share (attempt 0) is removed with its end */
		if (store_run_get(s, -1, names.v[i].run, &run, &e) && (names.v[i].attempt > 0 || !run_state_final(run->state)))
			continue;
		if (e.kind != ERR_NONE && e.kind != ERR_NOT_FOUND) {
			l->err = e;
			return false;
		}
		l->outputs[l->n_outputs++] =
			(struct kept_output){.run = names.v[i].run, .attempt = names.v[i].attempt};
	}
	return true;
}

static void step_read(struct store *s, struct read_task *task)
{
	struct step *l = (struct step *)task;

	if (!s) {
		err_set(&l->err, ERR_BUSY, "the store could not be opened");
		return;
	}
	switch (l->stage) {
	case STAGE_HISTORY:
		l->ok = prune_candidates_find(s, &l->keep, l->now, &l->pass, &l->list, &l->err) &&
			archive_list(s, l);
		break;
	case STAGE_BUDGET:
		l->ok = step_find_budget(s, l);
		break;
	case STAGE_OUTPUTS:
		l->ok = step_find_outputs(s, l);
		break;
	case STAGE_STRAY:
		l->ok = step_find_strays(s, l);
		break;
	case STAGE_CHECK:
		l->ok = check_store(s, &l->problems, &l->err);
		break;
	default:
		break;
	}
}

/* ---- on the loop ---- */

static void set_step_timer(struct retention *r, usec_t delay)
{
	sd_event_source_set_time_relative(r->timer, (uint64_t)delay);
	sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

static void next_stage(struct retention *r);

static void pass_begin(struct retention *r)
{
	free(r->archive_name);
	r->archive_name = archive_name(clock_now(r->o.clock));
	r->report = (struct retention_report){.ok = true};
	r->served = r->waiters;
	r->pass = r->served ? (struct prune_pass){} : r->usual;
	r->pass.done = false;
	r->stage = STAGE_HISTORY;
	r->left = false;
	r->leads = r->served || !r->o.may || r->o.may(r->o.arg);
	/* a node that does not lead archives the runs whose output it has */
	if (r->leads || (r->o.archive && r->o.archive_outputs)) {
		step_start(r);
		return;
	}
	r->stage = STAGE_OUTPUTS; /* the following stages are done on every node */
	next_stage(r);
}

static usec_t pass_delay(const struct retention *r)
{
	unsigned n = r->archive_failures;

	return n == 0 || n > 6 ? PASS_EVERY : ARCHIVE_RETRY << (n - 1);
}

static void pass_end(struct retention *r)
{
	const struct retention_report *p = &r->report;
	struct waiter *w = STEAL(r->served);

	r->stage = STAGE_IDLE;
	if (p->runs || p->jobs || p->outputs)
		log_info("retention: deleted %" PRId64 " runs, %" PRId64 " jobs and %" PRId64
			 " output files with %" PRId64 " bytes",
			p->runs, p->jobs, p->outputs, p->output_bytes);
	if (p->ok)
		r->archive_failures = 0;
	else
		log_warning("retention stopped, next pass in %" PRId64 " min: %s", pass_delay(r) / USEC_MIN, p->why);
	if (w) {
		r->waiters = w->next;
		if (!r->waiters)
			r->last_waiter = &r->waiters;
		w->fn(p, w->arg);
		free(w);
	}
	set_step_timer(r, r->waiters ? 0 : pass_delay(r));
}

static void pass_fail(struct retention *r, const struct err *e)
{
	r->report.ok = false;
	snprintf(r->report.why, sizeof(r->report.why), "%s", e->msg);
	pass_end(r);
}

static void next_stage(struct retention *r)
{
	bool check_due = clock_boot(r->o.clock) - r->checked_at >= CHECK_EVERY;

	if (r->stage == STAGE_HISTORY && !r->served)
		r->usual = r->left ? (struct prune_pass){} : r->pass;
	if (r->stage == STAGE_HISTORY && !r->leads)
		r->stage = STAGE_OUTPUTS; /* the following stages are done on every node */
	r->pass = (struct prune_pass){};
	r->stage++;
	if (r->stage == STAGE_STRAY && (r->swept || r->o.output_dir < 0))
		r->stage++;
	if (r->stage == STAGE_CHECK && (r->served || !check_due))
		r->stage++;
	if (r->stage == STAGE_MAX)
		pass_end(r);
	else
		step_start(r);
}

static void forget_files(struct retention *r, const struct kept_output *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r->o.forget(v[i].run, v[i].attempt, r->o.arg)) {
			r->report.outputs++;
			r->report.output_bytes += v[i].bytes;
		} else {
			r->swept = false; /* the file is searched for again */
		}
}

static void on_step_pruned(struct op *op, void *arg)
{
	struct retention *r = arg;
	struct step *l = STEAL(r->step);
	bool more = r->stage == STAGE_HISTORY
			    ? !l->pass.done || retention_prune_op(op)->events == EVENTS_STEP
			    : l->more && !l->pass.done;

	r->busy = false;
	if (op->ok) {
		r->report.runs += retention_prune_op(op)->runs;
		r->report.jobs += retention_prune_op(op)->jobs;
		r->report.events += retention_prune_op(op)->events;
		forget_files(r, retention_prune_op(op)->outputs, retention_prune_op(op)->n_outputs);
		r->pass = l->pass;
		if (more)
			set_step_timer(r, STEP_PAUSE);
		else
			next_stage(r);
	} else {
		pass_fail(r, &op->err);
	}
	step_free(l);
	op_free(op);
}

static void on_forgotten(struct op *op, void *arg)
{
	struct retention *r = arg;
	struct step *l = STEAL(r->step);

	r->busy = false;
	if (!op->ok) {
		pass_fail(r, &op->err);
	} else {
		forget_files(r, l->outputs, l->n_outputs);
		if (l->more)
			set_step_timer(r, STEP_PAUSE);
		else
			next_stage(r);
	}
	step_free(l);
	op_free(op);
}

static void step_submit(struct retention *r, struct step *l)
{
	struct op *op;

	r->step = l;
	r->busy = true;
	if (l->stage == STAGE_OUTPUTS) {
		op = op_new(OP_FORGET, on_forgotten, r);
		op_fill(retention_forget_op(op), l->outputs, l->n_outputs);
	} else {
		op = op_new(OP_PRUNE, on_step_pruned, r);
		op_fill(retention_prune_op(op), .list = &l->list,
			.events_before = l->now - l->keep.age);
	}
	op->patient = true;
	store_thread_submit(r->o.store, op);
}

/* ---- the upload of a step ---- */

static void on_step_uploaded(const struct err *e, void *arg)
{
	struct retention *r = arg;
	struct step *l = STEAL(r->step);

	r->upload = NULL;
	r->busy = false;
	if (!e) {
		step_submit(r, l);
		return;
	}
	r->archive_failures++;
	pass_fail(r, e);
	step_free(l);
}

/* Deletes what the step has found, after the archive has it. */
static void step_archive(struct retention *r, struct step *l)
{
	struct err e = {};

	r->left |= l->batch.left > 0;
	if (l->batch.warning[0])
		log_warning("%s", l->batch.warning);
	if (l->batch.n == 0) {
		step_submit(r, l);
		return;
	}
	r->upload = archive_upload_new(&(struct archive_upload_options){.s3 = r->o.s3,
		.batch = &l->batch,
		.output_dir = r->o.output_dir,
		.fn = on_step_uploaded,
		.arg = r}, &e);
	if (!r->upload) {
		pass_fail(r, &e);
		step_free(l);
		return;
	}
	r->step = l;
	r->busy = true;
}

static void log_problems(const struct strv *problems)
{
	for (size_t i = 0; i < problems->n; i++)
		log_error("the store is damaged: %s", problems->v[i]);
	if (problems->n)
		log_error("replace it by an intact backup with 'jobctl db restore FILE'");
}

static void on_step_read(struct read_task *task)
{
	struct step *l = (struct step *)task;
	struct retention *r = l->r;

	r->busy = false;
	if (r->stopped) {
		step_free(l);
		return;
	}
	if (!l->ok) {
		pass_fail(r, &l->err);
	} else if (l->stage == STAGE_HISTORY || (l->stage == STAGE_BUDGET && l->more) ||
		   (l->stage == STAGE_OUTPUTS && l->n_outputs)) {
		step_archive(r, l);
		return;
	} else {
		if (l->stage == STAGE_STRAY) {
			r->swept = true;
			forget_files(r, l->outputs, l->n_outputs);
		}
		if (l->stage == STAGE_CHECK) {
			r->checked_at = clock_boot(r->o.clock);
			log_problems(&l->problems);
		}
		next_stage(r);
	}
	step_free(l);
}

static void step_start(struct retention *r)
{
	struct step *l = xcalloc(1, sizeof(*l));

	*l = (struct step){
		.task = {.work = step_read, .done = on_step_read},
		.r = r,
		.stage = r->stage,
		.keep = r->served ? r->served->keep : r->o.limits.keep,
		.now = clock_now(r->o.clock),
		.archives = r->o.archive != NULL,
		.archive = {.dir = r->o.s3 ? NULL : r->o.archive, .file = r->archive_name, .outputs = r->o.archive_outputs,
			.output_dir = r->o.output_dir, .leads = r->leads, .node_name = r->o.node_name},
		.output_dir = r->o.output_dir,
		.limits = r->o.limits,
		.pass = r->pass,
	};
	r->busy = true;
	store_thread_read_long(r->o.store, &l->task);
}

static int on_retention_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct retention *r = arg;

	(void)source;
	(void)usec;
	if (r->busy || r->stopped)
		return 0;
	if (r->stage == STAGE_IDLE)
		pass_begin(r);
	else
		step_start(r);
	return 0;
}

bool retention_new(struct sd_event *ev, const struct retention_options *o, struct retention **ret,
	struct err *e)
{
	AUTO(retention) *r = xcalloc(1, sizeof(*r));
	int error;

	r->o = *o;
	r->last_waiter = &r->waiters;
	r->checked_at = clock_boot(o->clock); /* the first check is due after CHECK_EVERY */
	error = sd_event_add_time_relative(
		ev, &r->timer, CLOCK_BOOTTIME, (uint64_t)FIRST_PASS, 1, on_retention_timer, r);
	if (error < 0)
		return err_errno(e, -error, "could not make a timer");
	*ret = STEAL(r);
	return true;
}

void retention_free(struct retention *r)
{
	if (!r)
		return;
	while (r->waiters) {
		struct waiter *w = r->waiters;

		r->waiters = w->next;
		w->fn(&(struct retention_report){.why = "the daemon ends"}, w->arg);
		free(w);
	}
	archive_upload_free(r->upload);
	step_free(r->step);
	sd_event_source_disable_unref(r->timer);
	free(r->archive_name);
	free(r);
}

struct prune_rule retention_rule(const struct retention *r)
{
	return r->o.limits.keep;
}

void retention_stop(struct retention *r)
{
	r->stopped = true;
	archive_upload_free(STEAL(r->upload)); /* the next daemon uploads the objects again, under the same names */
}

void retention_set_limits(struct retention *r, const struct retention_limits *l)
{
	r->o.limits = *l;
	/* start again: runs kept before may exceed the new limits */
	r->usual = (struct prune_pass){};
}

void retention_now(struct retention *r, const struct prune_rule *keep, retention_done_fn *fn,
	void *arg)
{
	struct waiter *w = xcalloc(1, sizeof(*w));

	*w = (struct waiter){.keep = *keep, .fn = fn, .arg = arg};
	*r->last_waiter = w;
	r->last_waiter = &w->next;
	if (r->stage == STAGE_IDLE && !r->busy)
		pass_begin(r);
}
