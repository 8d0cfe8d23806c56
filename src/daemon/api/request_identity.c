/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies the caller of a request. */
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/api/allow_list.h"
#include "daemon/api/client_user.h"
#include "daemon/api/request_private.h"
#include "daemon/api/route.h"
#include "daemon/api/server_private.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/user_lookup.h"
#include "store/ops/op.h"
#include "store/ops/owners.h"
#include "store/store.h"
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>

/* ---- administrators ---- */

#define GROUPS_MAX 65536 /* limit of the kernel */
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

/* Looks up the gid of the administrators' group on the reader thread. */
struct group_task {
	struct read_task task;
	struct server *server; /* NULL: freed meanwhile */
	char *name;            /* owned */
	gid_t gid;             /* result */
	int error;
};

static void work_group(struct store *s, struct read_task *task)
{
	struct group_task *t = (struct group_task *)task;
	char text[65536];
	struct group gr, *found = NULL;

	(void)s;
	t->gid = NO_GROUP;
	t->error = getgrnam_r(t->name, &gr, text, sizeof(text), &found);
	if (found)
		t->gid = found->gr_gid;
}

static void group_done(struct read_task *task)
{
	struct group_task *t = (struct group_task *)task;

	if (t->server) {
		t->server->group_task = NULL;
		/* after a failed lookup the previous gid stays in use */
		if (t->gid != NO_GROUP || t->error == 0 || t->error == ENOENT || t->error == ESRCH)
			t->server->admin_gid = t->gid;
		else
			log_warning("could not look up the group '%s': %s", t->name,
				strerror(t->error));
		if (t->server->admin_gid == NO_GROUP)
			log_info("there is no group '%s': only root is an administrator", t->name);
	}
	free(t->name);
	free(t);
}

void server_find_admins(struct server *s)
{
	struct group_task *t;

	if (!s->context.admin_group || s->context.user_mode || s->group_task)
		return;
	t = xcalloc(1, sizeof(*t));
	t->task.work = work_group;
	t->task.done = group_done;
	t->server = s;
	t->name = xstrdup(s->context.admin_group);
	s->group_task = t;
	store_thread_read(s->context.store, &t->task);
}

void server_forget_admins(struct server *s)
{
	if (s->group_task)
		s->group_task->server = NULL;
	s->group_task = NULL;
}

bool server_conn_is_admin(const struct conn *c)
{
	gid_t admins = c->server->admin_gid;
	gid_t few[64], *many = NULL, *groups = few;
	socklen_t len = sizeof(few);
	bool found = false;
	int r;

	if (admins == NO_GROUP || c->gid == admins)
		return admins != NO_GROUP;
	r = getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, few, &len);
	if (r < 0 && errno == ERANGE) {
		groups = many = xcalloc(GROUPS_MAX, sizeof(gid_t));
		len = GROUPS_MAX * sizeof(gid_t);
		r = getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, many, &len);
	}
	for (size_t i = 0; r == 0 && i < len / sizeof(gid_t) && !found; i++)
		found = groups[i] == admins;
	free(many);
	return found;
}

/* ---- permission ---- */

/* The allow and deny files do not apply to root or in user mode. */
static bool lists_permit(const struct request *r, struct err *e)
{
	const char *name = client_user_name(r);

	if (r->context->user_mode || r->who.uid == 0 || !r->context->allow)
		return true;
	return allow_list_permits(r->context->allow, name ? name : "", e);
}

static void act_for(struct request *r, const char *user);

static void check_and_handle(struct request *r)
{
	const char *as = request_text(r, "as");
	struct err e = {};

	r->who.number =
		r->context->user_mode ? r->server->access.self : request_client_user(r)->number;
	r->who.denied = !lists_permit(r, &e);
	if (r->token_owner >= 0 && r->who.number != r->token_owner) {
		err_set(&e, ERR_UNAUTHENTICATED,
			"the owner of this token does not exist any more; 'jobctl token add' makes a "
			"token for another owner");
		request_answer_err(r, &e);
	} else if (!access_may(&r->server->access, &r->who, r->route->verb, r->who.number)) {
		if (!r->who.denied)
			err_set(&e, ERR_DENIED, "only administrators may do this");
		request_answer_err(r, &e);
	} else if (as) {
		act_for(r, as);
	} else {
		r->route->handle(r);
	}
}

/* ---- name and owner number ---- */

/* Reads the owner number of a uid and a name. */
struct identity {
	struct store_read q;
	uint32_t uid;
	bool as;        /* for the user the caller acts for, not for the caller */
	char *name;     /* owned; NULL: none */
	int64_t number; /* result; -1: none yet */
};

static void free_identity(struct store_read *q)
{
	free(((struct identity *)q)->name);
	free(q);
}

static bool read_owner_number(struct store *s, struct store_read *q, struct err *e)
{
	struct identity *i = (struct identity *)q;

	return owner_read_number(s, i->uid, i->name, &i->number, e);
}

static void set_caller(struct request *r, const char *name, int64_t number)
{
	if (name)
		client_user_set_name(r, name);
	request_client_user(r)->number = number;
	check_and_handle(r);
}

static void set_acting_for(struct request *r, const char *name, int64_t number)
{
	struct err e = {};

	if (r->context->user_mode && number != (int64_t)r->server->access.self)
		err_set(&e, ERR_DENIED,
			"this daemon runs only jobs of its own user; use '--system' to reach the "
			"system's daemon");
	else if (!access_serves(&r->server->access, owner_uid(number)))
		err_set(&e, ERR_DENIED, "'%.64s' cannot own jobs", name);
	else if (number != r->who.number &&
		 !access_may(&r->server->access, &r->who, VERB_SUBMIT_AS, number))
		err_set(&e, ERR_DENIED, "only root may submit jobs for root");
	if (e.kind != ERR_NONE) {
		request_answer_err(r, &e);
		return;
	}
	r->as_name = xstrdup(name);
	r->as_number = number;
	r->route->handle(r);
}

/* A user without a number: the writer assigns one. */
struct newcomer {
	struct ticket *ticket;
	bool as;
	char *name; /* owned */
};

static void on_numbered(struct op *op, void *arg)
{
	struct newcomer *n = arg;
	struct request *r = request_ticket_redeem(n->ticket);

	if (r && op->ok)
		(n->as ? set_acting_for : set_caller)(r, n->name, owner_op(op)->number);
	else if (r)
		request_answer_err(r, &op->err);
	free(n->name);
	free(n);
	op_free(op);
}

static void identified(struct request *r, struct store_read *q)
{
	struct identity *i = (struct identity *)q;
	struct newcomer *n;
	struct op *op;

	if (i->number >= 0) {
		(i->as ? set_acting_for : set_caller)(r, i->name, i->number);
		return;
	}
	n = xcalloc(1, sizeof(*n));
	n->as = i->as;
	n->name = STEAL(i->name);
	n->ticket = request_ticket(r, false);
	op = op_new(OP_OWNER, on_numbered, n);
	op_fill(owner_op(op), .uid = i->uid, .name = n->name, .now = request_now(r));
	store_thread_submit(r->context->store, op);
}

/* The number of root, and of the only user in user mode, is the uid, also without a name. */
static bool numbered_by_uid(const struct request *r, uint32_t uid)
{
	return r->context->user_mode || uid == 0;
}

/* Looks up a user in the user database. */
struct naming {
	struct user_lookup_task task;
	struct ticket *ticket;
};

static void find_number(struct request *r, const struct user_lookup_task *t)
{
	struct identity *i = xcalloc(1, sizeof(*i));

	i->uid = t->uid;
	i->as = t->by_name;
	i->name = xstrdup(t->name);
	i->q.run = read_owner_number;
	i->q.then = identified;
	i->q.free = free_identity;
	store_read_start(r, &i->q);
}

static void on_named(struct user_lookup_task *t)
{
	struct request *r = request_ticket_redeem(((struct naming *)t)->ticket);

	if (r && !t->ok && (t->by_name || !numbered_by_uid(r, t->uid)))
		request_answer_err(r, &t->err);
	else if (r && numbered_by_uid(r, t->uid))
		(t->by_name ? set_acting_for : set_caller)(r, t->name, t->uid);
	else if (r)
		find_number(r, t);
	free(t->name);
	free(t);
}

static void start_identity_lookup(struct request *r, const char *as)
{
	struct naming *n = xcalloc(1, sizeof(*n));

	n->task = (struct user_lookup_task){
		.by_name = as != NULL, .uid = r->who.uid, .name = xstrdup(as), .done = on_named};
	n->ticket = request_ticket(r, false);
	user_lookup_submit(r->server->user_lookup, &n->task);
}

/* Only callers with the permission may learn whether the user exists. */
static void act_for(struct request *r, const char *user)
{
	struct err e = {};

	if (access_scope(&r->server->access, &r->who, VERB_SUBMIT_AS) < 0 ||
		text_equal(user, client_user_name(r))) {
		start_identity_lookup(r, user);
		return;
	}
	err_set(&e, ERR_DENIED, "only administrators may submit jobs for other users");
	request_answer_err(r, &e);
}

/*
 * In system mode every user except root needs a name; otherwise only requests that change something
 * need one, for the audit trail.
 */
static bool is_caller_known(const struct request *r)
{
	bool anonymous = (r->context->user_mode || r->who.uid == 0) &&
			 r->route->what == EVENT_NONE && r->route->verb != VERB_SESSION;

	return anonymous || client_user_name(r);
}

/* The user of a JSON web token is known by name only. */
static void on_jwt_user(struct user_lookup_task *t)
{
	struct request *r = request_ticket_redeem(((struct naming *)t)->ticket);
	struct err e = {};

	if (r && !t->ok && t->err.kind == ERR_NOT_FOUND)
		err_set(&e, ERR_UNAUTHENTICATED,
			"the subject of the JSON web token is not a user of this system");
	else if (r && !t->ok)
		e = t->err;
	else if (r && ((t->uid == 0 && !r->context->user_mode) ||
			    !access_serves(&r->server->access, t->uid)))
		err_set(&e, ERR_DENIED, "a JSON web token cannot act for this user");
	if (r && e.kind != ERR_NONE) {
		request_answer_err(r, &e);
	} else if (r) {
		free(STEAL(r->jwt_user));
		r->who.uid = t->uid;
		r->user = client_user_get(r->server, t->uid);
		request_handle(r);
	}
	free(t->name);
	free(t);
}

static void find_jwt_user(struct request *r)
{
	struct naming *n = xcalloc(1, sizeof(*n));

	n->task = (struct user_lookup_task){
		.by_name = true, .name = xstrdup(r->jwt_user), .done = on_jwt_user};
	n->ticket = request_ticket(r, false);
	user_lookup_submit(r->server->user_lookup, &n->task);
}

void request_handle(struct request *r)
{
	if (r->route->anonymous)
		r->route->handle(r);
	else if (r->jwt_user)
		find_jwt_user(r);
	else if (r->route->storeless && store_outage_since(r->context->store_outage, NULL))
		r->route->handle(r);
	else if (is_caller_known(r))
		check_and_handle(r);
	else
		start_identity_lookup(r, NULL);
}
