/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs for limits: those of 'jobctl queue', 'jobctl limit'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/policy.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

/* Queues and owners have limits. */
struct kind {
	const char *path, *member; /* of the API */
	const char *none;          /* said if there are none */
	struct row_kind rows;
};

static void put_count(const json_t *row, const char *key, struct buf *out)
{
	if (json_is_integer(json_object_get(row, key)))
		buf_printf(out, "%" PRId64, member_int(row, key));
}

#define CELL_NUMBER(fn, key)                                                                       \
	static void fn(const json_t *row, const struct cell_style *style, struct buf *out)         \
	{                                                                                          \
		(void)style;                                                                       \
		put_count(row, key, out);                                                         \
	}
CELL_NUMBER(cell_uid, "uid")
CELL_NUMBER(cell_active, "active")
CELL_NUMBER(cell_max, "max_running")
CELL_NUMBER(cell_queued, "queued")
CELL_NUMBER(cell_jobs, "jobs")
CELL_NUMBER(cell_weight, "weight")

static void cell_limit_name(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const char *name = member_text(row, "name");

	(void)style;
	buf_str(out, name ? name : "");
}

static void cell_rate(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const char *rate = member_text(row, "rate");

	(void)style;
	buf_str(out, rate ? rate : "");
}

static void put_limit_name(const json_t *row, struct buf *out)
{
	cell_limit_name(row, NULL, out);
}

#define COUNTS                                                                                     \
	{{"RUNNING", true, false}, "active", false, cell_active},                                  \
	{{"MAX", true, false}, "max_running", false, cell_max},                                    \
	{{"QUEUED", true, false}, "queued", false, cell_queued},                                   \
	{{"JOBS", true, false}, "jobs", false, cell_jobs},                                         \
	{{"RATE", false, false}, "rate", false, cell_rate}

static const struct column queue_columns[] = {
	{{"QUEUE", false, false}, "name", false, cell_limit_name},
	{{"WEIGHT", true, false}, "weight", false, cell_weight},
	COUNTS,
};
static const struct column owner_columns[] = {
	{{"OWNER", false, false}, "name", false, cell_limit_name},
	{{"UID", true, false}, "uid", false, cell_uid},
	COUNTS,
};

static const struct kind queues = {"/v1/queues", "queues", "no queues (jobctl queue add NAME)",
	{queue_columns, ELEMENTS(queue_columns), put_limit_name}};
static const struct kind owners = {"/v1/owners", "owners", "no owner has limits (jobctl limit set OWNER --running N)",
	{owner_columns, ELEMENTS(owner_columns), put_limit_name}};

/* ---- list ---- */

static int list_limits(struct ctl *c, const struct kind *kind)
{
	json_auto_t *answer = NULL;
	struct err e = {};

	if (!api_call(c, "GET", kind->path, NULL, &answer, &e))
		return ctl_fail(&e);
	rows_print_all(c, &kind->rows, json_object_get(answer, kind->member), kind->none);
	return EXIT_SUCCESS;
}

int verb_queue_list(struct ctl *c, const struct args *a)
{
	(void)a;
	return list_limits(c, &queues);
}

int verb_limit_list(struct ctl *c, const struct args *a)
{
	(void)a;
	return list_limits(c, &owners);
}

/* ---- add, set ---- */

/* "none" removes a limit. */
static bool read_count_option(const struct args *a, const char *option, const char *member,
	int64_t max, bool none, json_t *body, struct err *e)
{
	const char *text = args_last(a, option);
	int64_t n;

	if (!text)
		return true;
	if (none && strcmp(text, "none") == 0)
		json_object_set_new(body, member, json_null());
	else if (text_parse_int(text, 1, max, &n))
		json_object_set_new(body, member, json_integer(n));
	else
		return err_set(e, ERR_INVALID, "--%s: '%s' is not a number from 1 to %" PRId64 "%s",
			option, text, max, none ? " or 'none'" : "");
	return true;
}

static bool read_rate(const struct args *a, json_t *body, struct err *e)
{
	const char *text = args_last(a, "rate");
	struct rate rate;

	if (!text)
		return true;
	if (strcmp(text, "none") == 0)
		json_object_set_new(body, "rate", json_null());
	else if (policy_rate_parse(text, &rate, e))
		json_object_set_new(body, "rate", json_string(text));
	else
		return err_wrap(e, "--rate");
	return true;
}

static bool check_limit_name(const struct kind *kind, const char *name, struct err *e)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	if (kind == &queues)
		return job_name_check(name, e);
	if (*name && strspn(name, allowed) == strlen(name))
		return true;
	return err_set(e, ERR_INVALID, "'%s' is not a user name", name);
}

static void put_limit_words(const json_t *o, struct buf *line)
{
	const char *rate = member_text(o, "rate");

	if (json_is_integer(json_object_get(o, "max_running")))
		buf_printf(line, "at most %" PRId64 " running", member_int(o, "max_running"));
	else
		buf_str(line, "any number running");
	if (json_is_integer(json_object_get(o, "weight")))
		buf_printf(line, ", weight %" PRId64, member_int(o, "weight"));
	if (rate)
		buf_printf(line, ", starts %s", rate);
}

/* 'how': the query that requires a new or an existing object; "": either. */
static int send_limits(struct ctl *c, const struct args *a, const struct kind *kind,
	const char *how, const char *done)
{
	json_auto_t *body = json_object(), *answer = NULL;
	AUTO_DONE(buf) line = {};
	AUTO_TEXT path = NULL;
	struct err e = {};
	char *const *words;

	args_operands(a, &words);
	if (!check_limit_name(kind, words[0], &e) ||
		!read_count_option(a, "running", "max_running", 100000, true, body, &e) ||
		(kind == &queues &&
			!read_count_option(a, "weight", "weight", 10000, false, body, &e)) ||
		!read_rate(a, body, &e))
		return ctl_fail(&e);
	if (json_object_size(body) == 0 && strcmp(done, "added") != 0) {
		ctl_say("jobctl: nothing to change; give %s",
			kind == &queues ? "--running, --weight or --rate" : "--running or --rate");
		return EXIT_USAGE;
	}
	path = xprintf("%s/%s%s", kind->path, words[0], how);
	if (!api_call(c, "PUT", path, body, &answer, &e))
		return ctl_fail(&e);
	if (render_wants_json(c))
		return render_object(c, answer);
	put_limit_words(answer, &line);
	if (kind == &queues)
		ctl_say("%s queue '%s': %s", done, words[0], line.data);
	else
		ctl_say("%s the limits of '%s': %s", done, words[0], line.data);
	return EXIT_SUCCESS;
}

int verb_queue_add(struct ctl *c, const struct args *a)
{
	return send_limits(c, a, &queues, "?new=true", "added");
}

int verb_queue_set(struct ctl *c, const struct args *a)
{
	return send_limits(c, a, &queues, "?new=false", "changed");
}

int verb_limit_set(struct ctl *c, const struct args *a)
{
	return send_limits(c, a, &owners, "", "set");
}

/* ---- rm ---- */

/* Continues after a failure. Returns the exit code of the first failure. */
static int remove_limits(struct ctl *c, const struct args *a, const struct kind *kind)
{
	char *const *words;
	size_t n = args_operands(a, &words);
	int code = EXIT_SUCCESS;

	for (size_t i = 0; i < n; i++) {
		AUTO_TEXT path = xprintf("%s/%s", kind->path, words[i]);
		json_auto_t *answer = NULL;
		struct err e = {};
		int failed;

		if (check_limit_name(kind, words[i], &e) &&
			api_call(c, "DELETE", path, NULL, &answer, &e)) {
			if (render_wants_json(c))
				render_object(c, answer);
			else
				ctl_say(kind == &queues ? "removed queue '%s'"
							: "removed the limits of '%s'",
					words[i]);
			continue;
		}
		failed = ctl_fail(&e);
		code = code ? code : failed;
		if (e.kind == ERR_UNREACHABLE)
			break;
	}
	return code;
}

int verb_queue_rm(struct ctl *c, const struct args *a)
{
	return remove_limits(c, a, &queues);
}

int verb_limit_rm(struct ctl *c, const struct args *a)
{
	return remove_limits(c, a, &owners);
}
