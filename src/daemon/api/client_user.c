/* SPDX-License-Identifier: Apache-2.0 */
/* State kept per user of the API. */
#include "daemon/api/client_user.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/api/server_private.h"

#define NAME_LIFE (60 * USEC_SEC) /* cached names are looked up again after this time */

struct client_user *client_user_get(struct server *s, uint32_t uid)
{
	struct client_user *p = map_get(&s->users, uid);

	if (p)
		return p;
	p = xcalloc(1, sizeof(*p));
	p->uid = uid;
	p->number = uid;
	map_put(&s->users, uid, p);
	return p;
}

void client_users_done(struct server *s)
{
	struct client_user *p;

	for (size_t i = 0; (p = map_next(&s->users, &i));) {
		free(p->name);
		free(p);
	}
	map_done(&s->users);
}

static bool is_unlimited(const struct request *r)
{
	return r->context->user_mode || r->who.uid == 0;
}

static usec_t request_boot_now(const struct request *r)
{
	return clock_boot(r->context->clock);
}

bool client_user_take_submission(struct request *r, struct err *e)
{
	const struct server_limits *l = request_limits(r);
	struct client_user *p = request_client_user(r);
	usec_t now = request_boot_now(r);

	if (is_unlimited(r))
		return true;
	if (p->refilled == 0)
		p->tokens = (double)l->submissions_burst;
	else
		p->tokens +=
			(double)(now - p->refilled) / USEC_SEC * (double)l->submissions_per_second;
	if (p->tokens > (double)l->submissions_burst)
		p->tokens = (double)l->submissions_burst;
	p->refilled = now;
	if (p->tokens < 1)
		return err_set(e, ERR_LIMIT,
			"too many submissions: the limit is %zu per second, try again in a second",
			l->submissions_per_second);
	p->tokens -= 1;
	return true;
}

/*
 * A bulk request may need more tokens than the bucket holds: it is accepted if one token is left,
 * and the number becomes negative.
 */
void client_user_charge(struct request *r, size_t n)
{
	if (!is_unlimited(r))
		request_client_user(r)->tokens -= (double)n;
}

int64_t client_user_jobs_limit(const struct request *r)
{
	return is_unlimited(r) ? 0 : (int64_t)request_limits(r)->jobs_per_uid;
}

int64_t client_user_store_limit(const struct request *r)
{
	return is_unlimited(r) ? 0 : request_limits(r)->owner_store;
}

const char *client_user_owner_name(struct request *r)
{
	const struct client_user *p = client_user_get(r->server, owner_uid(request_owner(r)));

	if (r->as_name)
		return r->as_name;
	return p->name && request_boot_now(r) - p->name_at < NAME_LIFE ? p->name : NULL;
}

static void set_name(struct client_user *p, const char *name, usec_t now)
{
	char *copy = xstrdup(name);

	free(p->name);
	p->name = copy;
	p->name_at = now;
}

void client_user_set_owner_name(struct request *r, const char *name)
{
	if (!r->as_name)
		set_name(client_user_get(r->server, owner_uid(request_owner(r))), name,
			request_boot_now(r));
}

const char *client_user_name(const struct request *r)
{
	const struct client_user *p = request_client_user(r);

	return p->name && request_boot_now(r) - p->name_at < NAME_LIFE ? p->name : NULL;
}

bool client_user_is(const struct request *r, const char *ref)
{
	int64_t uid;

	return text_equal(ref, client_user_name(r)) ||
	       (text_parse_int(ref, 0, UINT32_MAX, &uid) && uid == r->who.uid);
}

void client_user_set_name(struct request *r, const char *name)
{
	set_name(request_client_user(r), name, request_boot_now(r));
}
