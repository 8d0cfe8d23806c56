/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that counts calls, fails one and forwards the others. */
#include "unit/store/db_faulty.h"
#include "base/text.h"
#include "unit/unit.h"
#include <unistd.h>
#include <stdlib.h>

struct db_faulty {
	struct db db;
	struct db *real; /* owned */
	bool lost;
	size_t ahead; /* reads that were sent ahead and not dropped */
};

/* The functions of a backend have no argument for this, so the current fault is kept here; one at a time. */
static const struct db_ops *real_ops;
static struct fault *fault;
static struct db_ops faulty;

/* The real backend gets the properties of the batch from the store. */
static struct db_faulty *of(struct db *db)
{
	struct db_faulty *d = (struct db_faulty *)db;

	d->real->writing = db->writing;
	d->real->defer = db->defer;
	return d;
}

static bool fires(void)
{
	if (fault->calls_left == 0 || --fault->calls_left > 0)
		return false;
	fault->fired = true;
	return true;
}

static bool lose(struct db_faulty *d, struct err *e)
{
	real_ops->rollback(d->real);
	d->lost = true;
	return err_set(e, ERR_UNREACHABLE, "the connection was lost");
}

/* Counts the call. False: it fails. */
static bool passes(struct db *db, bool committing, struct err *e)
{
	struct db_faulty *d = of(db);

	if (d->lost)
		return err_set(e, ERR_UNREACHABLE, "there is no connection");
	if ((fault->mode == FAULT_COMMITTED && !committing) || fault->mode >= FAULT_QUERY || !fires())
		return true;
	switch (fault->mode) {
	case FAULT_BUSY:
		return err_set(e, ERR_BUSY, "busy");
	case FAULT_FULL:
		return err_set(e, ERR_FULL, "full");
	case FAULT_DEVICE:
		return err_set(e, ERR_UNCERTAIN, "input/output error");
	case FAULT_LOST:
		lose(d, e);
		if (committing)
			e->kind = ERR_UNCERTAIN;
		return false;
	case FAULT_COMMITTED:
		return real_ops->commit(d->real, e) && (lose(d, e), e->kind = ERR_UNCERTAIN, false);
	default:
		return err_set(e, ERR_INTERNAL, "the statement failed");
	}
}

static bool f_open(const struct db_options *o, struct db **ret, struct err *e)
{
	struct db_faulty *d = xcalloc(1, sizeof(*d));

	if (!real_ops->open(o, &d->real, e)) {
		free(d);
		return false;
	}
	d->db = (struct db){.ops = &faulty, .sql = d->real->sql, .pid = getpid()};
	*ret = &d->db;
	return true;
}

static void f_close(struct db *db)
{
	real_ops->close(of(db)->real);
	free(db);
}

static bool f_prepare(struct db *db, struct err *e)
{
	bool ok = real_ops->prepare(of(db)->real, e);

	/* a SQLite that plays a server has no transaction ids */
	db->no_xids = of(db)->real->no_xids || (db->ops->reconnects && !real_ops->reconnects);
	return ok;
}

static bool f_reconnect(struct db *db, int wait_ms, struct err *e)
{
	(void)wait_ms;
	(void)e;
	of(db)->lost = false;
	return true;
}

static bool f_begin(struct db *db, bool write, struct err *e)
{
	assert_int_equal(of(db)->ahead, 0); /* no batch uses rows of an earlier one */
	return passes(db, false, e) && real_ops->begin(of(db)->real, write, e);
}

static bool f_commit(struct db *db, struct err *e)
{
	bool ok = passes(db, true, e);

	if (!ok && !of(db)->lost)
		real_ops->rollback(of(db)->real);
	return ok && real_ops->commit(of(db)->real, e);
}

static void f_rollback(struct db *db)
{
	if (!of(db)->lost)
		real_ops->rollback(of(db)->real);
}

static bool f_savepoint(struct db *db, struct err *e)
{
	return passes(db, false, e) && real_ops->savepoint(of(db)->real, e);
}

static bool f_release(struct db *db, struct err *e)
{
	return passes(db, false, e) && real_ops->release(of(db)->real, e);
}

static bool f_rollback_to(struct db *db, struct err *e)
{
	return passes(db, false, e) && real_ops->rollback_to(of(db)->real, e);
}

static void f_bind_int(struct db *db, int query, int at, int64_t v)
{
	real_ops->bind_int(of(db)->real, query, at, v);
}

static void f_bind_text(struct db *db, int query, int at, const char *s)
{
	real_ops->bind_text(of(db)->real, query, at, s);
}

static enum db_step f_step(struct db *db, int query, struct err *e)
{
	if (fault->mode >= FAULT_QUERY && fault->calls_left && fault->query == query) {
		fault->fired = true;
		if (fault->mode == FAULT_CUT) {
			lose(of(db), e);
			return DB_FAILED;
		}
		err_set(e, ERR_INTERNAL, "this query always fails");
		return DB_FAILED;
	}
	return passes(db, false, e) ? real_ops->step(of(db)->real, query, e) : DB_FAILED;
}

static bool f_send(struct db *db, int query, struct err *e)
{
	return passes(db, false, e) && real_ops->send(of(db)->real, query, e);
}

static bool f_prefetch(struct db *db, int query, struct err *e)
{
	of(db)->ahead++;
	return passes(db, false, e) && real_ops->prefetch(of(db)->real, query, e);
}

static void f_prefetch_drop(struct db *db)
{
	of(db)->ahead = 0;
	real_ops->prefetch_drop(of(db)->real);
}

static int64_t f_column_int(struct db *db, int query, int at)
{
	return real_ops->column_int(of(db)->real, query, at);
}

static const char *f_column_text(struct db *db, int query, int at)
{
	return real_ops->column_text(of(db)->real, query, at);
}

static void f_reset(struct db *db, int query)
{
	real_ops->reset(of(db)->real, query);
}

static bool f_reserve_held(struct db *db)
{
	return real_ops->reserve_held(of(db)->real);
}

static void f_reserve_release(struct db *db)
{
	real_ops->reserve_release(of(db)->real);
}

const struct db_ops *db_faulty_ops(const struct db_ops *real, struct fault *f, enum faulty_kind kind)
{
	real_ops = real;
	fault = f;
	faulty = (struct db_ops){
		.name = "faulty",
		.row_locks = real->row_locks,
		.reconnects = kind != FAULTY_FILE,
		.open = f_open,
		.close = f_close,
		.prepare = f_prepare,
		.reconnect = f_reconnect,
		.begin = f_begin,
		.commit = f_commit,
		.rollback = f_rollback,
		.savepoint = f_savepoint,
		.release = f_release,
		.rollback_to = f_rollback_to,
		.bind_int = f_bind_int,
		.bind_text = f_bind_text,
		.step = f_step,
		.column_int = f_column_int,
		.column_text = f_column_text,
		.reset = f_reset,
		.reserve_held = f_reserve_held,
		.reserve_release = f_reserve_release,
	};
	if (kind == FAULTY_PIPELINE) {
		faulty.send = f_send;
		faulty.prefetch = f_prefetch;
		faulty.prefetch_drop = f_prefetch_drop;
	}
	return &faulty;
}
