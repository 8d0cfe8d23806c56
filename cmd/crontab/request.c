/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of crontab(1) to jobsched-crontab, and the messages about their results. */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "crontab/crontab_command.h"
#include "spool/client.h"
#include "spool/request.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The kernel and the user database give these texts; control characters in them are escaped. */
static void say(const char *program, const char *text)
{
	AUTO_DONE(buf) line = {};

	text_escape(&line, text, strlen(text));
	fprintf(stderr, "%s: %s\n", program, line.data ? line.data : "");
}

static void say_not_allowed(const struct crontab_command *c)
{
	if (getuid() == 0)
		fprintf(stderr, "The user %s cannot use this program (%s)\n", c->user, c->program);
	else
		fprintf(stderr,
			"You (%s) are not allowed to use this program (%s)\n"
			"See crontab(1) for more information\n",
			c->user, c->program);
}

static void say_status(const struct crontab_command *c, const struct spool_reply *r)
{
	switch (r->status) {
	case SPOOL_OK:
		break;
	case SPOOL_NO_TABLE:
		fprintf(stderr, "no crontab for %s\n", c->user);
		break;
	case SPOOL_NOT_ALLOWED:
		say_not_allowed(c);
		break;
	case SPOOL_NOT_PRIVILEGED:
		fputs("must be privileged to use -u\n", stderr);
		break;
	case SPOOL_UNKNOWN_USER:
		fprintf(stderr, "%s:  user `%s' unknown\n", c->program, c->user);
		break;
	case SPOOL_NO_ACCOUNT:
		fprintf(stderr, "%s: your UID isn't in the passwd file.\nbailing out.\n", c->program);
		break;
	case SPOOL_BUSY:
		say(c->program, "too many requests at a time; try again in a few seconds");
		break;
	case SPOOL_FAILED:
		say(c->program, r->body.data ? r->body.data : "jobsched-crontab failed");
		break;
	case SPOOL_INVALID:
	case SPOOL_STATUS_MAX:
		say(c->program, "jobsched-crontab has another version; restart it with "
				"'systemctl restart jobsched-crontab.socket'");
		break;
	}
}

/* False: a message was printed, except for 'no table' if the caller wants to know. */
static bool call(const struct crontab_command *c, struct spool_request *r, struct spool_reply *ret,
	bool *ret_none)
{
	struct err e = {};

	if (c->user_given)
		snprintf(r->user, sizeof(r->user), "%s", c->user);
	if (!spool_client_call(r, ret, &e)) {
		say(c->program, e.msg);
		return false;
	}
	if (ret_none && ret->status == SPOOL_NO_TABLE)
		*ret_none = true;
	else
		say_status(c, ret);
	return ret->status == SPOOL_OK;
}

bool request_access(const struct crontab_command *c)
{
	struct spool_request r = {.operation = SPOOL_ACCESS};
	AUTO_DONE(spool_reply) reply = {};

	return call(c, &r, &reply, NULL);
}

bool request_remove(const struct crontab_command *c)
{
	struct spool_request r = {.operation = SPOOL_REMOVE};
	AUTO_DONE(spool_reply) reply = {};

	return call(c, &r, &reply, NULL);
}

/* A label is one line: the rest of a longer or stranger file name is cut. */
bool request_replace(const struct crontab_command *c, const char *label, const struct buf *table)
{
	struct spool_request r = {
		.operation = SPOOL_REPLACE, .body = table->data ? table->data : "", .len = table->len};
	AUTO_DONE(spool_reply) reply = {};

	snprintf(r.label, sizeof(r.label), "%.*s", (int)strcspn(label, "\n"), label);
	return call(c, &r, &reply, NULL);
}

enum request_found request_table(const struct crontab_command *c, struct buf *ret)
{
	struct spool_request r = {.operation = SPOOL_LIST};
	AUTO_DONE(spool_reply) reply = {};
	bool none = false;

	if (!call(c, &r, &reply, &none))
		return none ? REQUEST_NONE : REQUEST_FAILED;
	buf_add(ret, reply.body.data, reply.body.len);
	return REQUEST_FOUND;
}
