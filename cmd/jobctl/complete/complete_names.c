/* SPDX-License-Identifier: Apache-2.0 */
/* Reads names from the daemon for completion. */
#include "jobctl/complete/complete_names.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include <inttypes.h>
#include <string.h>

#define RUNS_SHOWN 50

static const struct {
	const char *path, *member;
	bool by_name; /* the list has the filter 'name' */
	bool whole;   /* the list has no pages */
} sources[COMPLETE_KIND_MAX] = {
	[COMPLETE_JOBS] = {"/v1/jobs", "jobs", .by_name = true},
	[COMPLETE_QUEUES] = {"/v1/queues", "queues", .whole = true},
	[COMPLETE_NODES] = {"/v1/nodes", "nodes", .whole = true},
	[COMPLETE_TEMPLATES] = {"/v1/templates", "templates"},
};

static bool add_row(const json_t *row, void *arg)
{
	struct completion *c = arg;
	const char *name = member_text(row, "name"), *help = member_text(row, "state");

	if (name)
		complete_add(c, name, help);
	return c->count < COMPLETE_MAX;
}

/* "backup#17", with the state and the slot */
static bool add_run(const json_t *row, void *arg)
{
	struct completion *c = arg;
	const char *job = member_text(row, "job_name"), *state = member_text(row, "state");
	size_t typed = strcspn(c->word + c->keep, "#");
	AUTO_TEXT ref = NULL;
	AUTO_TEXT help = xprintf("%s %s", state ? state : "",
		member_text(row, "slot") ? member_text(row, "slot") : "");

	if (c->word[c->keep + typed] == '#') /* as typed: a name or a number */
		ref = xprintf("%.*s#%" PRId64, (int)typed, c->word + c->keep, member_int(row, "id"));
	else if (job)
		ref = xprintf("%s#%" PRId64, job, member_int(row, "id"));
	else
		ref = xprintf("%" PRId64 "#%" PRId64, member_int(row, "job"), member_int(row, "id"));
	complete_add(c, ref, help);
	return true;
}

static void add_whole(struct completion *c, enum complete_kind kind)
{
	json_auto_t *answer = NULL;
	const json_t *row;
	size_t i;

	if (!api_call(c->arg, "GET", sources[kind].path, NULL, &answer, NULL))
		return;
	json_array_foreach(json_object_get(answer, sources[kind].member), i, row)
		add_row(row, c);
}

static void add_rows(struct completion *c, enum complete_kind kind, const char *prefix)
{
	AUTO_DONE(buf) path = {};
	AUTO_TEXT glob = xprintf("%s*", prefix);
	struct pages pages = {.member = sources[kind].member, .row = add_row, .arg = c,
		.limit = COMPLETE_MAX};

	if (sources[kind].whole) {
		add_whole(c, kind);
		return;
	}
	buf_str(&path, sources[kind].path);
	if (sources[kind].by_name)
		api_query_add(&path, "name", glob);
	pages.path = path.data;
	api_pages(c->arg, &pages, NULL);
	free(pages.next_cursor);
}

static void add_runs(struct completion *c, const char *prefix, bool dead)
{
	AUTO_DONE(buf) path = {};
	AUTO_TEXT job = xstrndup(prefix, strcspn(prefix, "#"));
	struct pages pages = {.member = "runs", .row = add_run, .arg = c, .limit = RUNS_SHOWN};

	buf_str(&path, dead ? "/v1/dead" : "/v1/runs");
	if (strchr(prefix, '#'))
		api_query_add(&path, "job", job);
	if (!dead)
		api_query_add(&path, "planned", "false");
	pages.path = path.data;
	api_pages(c->arg, &pages, NULL);
	free(pages.next_cursor);
}

void complete_names(enum complete_kind kind, const char *prefix, struct completion *c)
{
	struct ctl *ctl = c->arg;

	if (c->socket)
		ctl->socket_given = c->socket;
	if (c->instance)
		ctl->instance = c->instance;
	if (c->user || c->system) {
		ctl->where = c->user ? WHERE_USER : WHERE_SYSTEM;
		ctl->socket_given = NULL;
	}
	if (!connect_daemon(ctl, NULL))
		return;
	if (kind == COMPLETE_RUNS || kind == COMPLETE_DEAD)
		add_runs(c, prefix, kind == COMPLETE_DEAD);
	else if (sources[kind].path)
		add_rows(c, kind, prefix);
}
