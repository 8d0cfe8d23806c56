/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the chain of a job as a tree. */
#include "jobctl/render/graph.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/text.h"
#include "jobctl/member.h"
#include <inttypes.h>
#include <string.h>

struct drawing {
	const json_t *links;
	int64_t shown;       /* the job that was asked for */
	struct map jobs;     /* number → JSON of the job */
	struct map drawn;    /* number → JSON of the job, once it is in the text */
	struct buf *out, indent;
};

static void job_label(struct drawing *d, const json_t *job)
{
	const char *name = member_text(job, "name");

	if (name)
		text_escape(d->out, name, strlen(name));
	else
		buf_printf(d->out, "%" PRId64, member_int(job, "id"));
}

/* "  (active, last run succeeded)" */
static void job_facts(struct drawing *d, const json_t *job)
{
	const char *last = member_text(job, "last_run");

	buf_printf(d->out, "  (%s, %s%s)%s\n", member_text(job, "state"), last ? "last run " : "no run yet", last ? last : "",
		member_int(job, "id") == d->shown ? "  <--" : "");
}

/* Parents that are gone; the child does not run for them. */
static void missing_parents(struct drawing *d, int64_t job)
{
	const json_t *link;
	size_t i;

	json_array_foreach(d->links, i, link)
		if (member_int(link, "child") == job && json_is_null(json_object_get(link, "parent"))) {
			buf_printf(d->out, "%s  after '", d->indent.data ? d->indent.data : "");
			text_escape(d->out, member_text(link, "after"), strlen(member_text(link, "after")));
			buf_str(d->out, "', which does not exist\n");
		}
}

static void children_draw(struct drawing *d, int64_t job);

static void job_draw(struct drawing *d, int64_t id)
{
	const json_t *job = map_get(&d->jobs, id);

	if (!job)
		return;
	job_label(d, job);
	if (map_get(&d->drawn, id)) {
		buf_str(d->out, "  (see above)\n");
		return;
	}
	map_put(&d->drawn, id, (void *)job);
	job_facts(d, job);
	missing_parents(d, id);
	children_draw(d, id);
}

static const json_t *next_child(const struct drawing *d, int64_t job, size_t *from)
{
	for (; *from < json_array_size(d->links); ++*from) {
		const json_t *link = json_array_get(d->links, *from);

		if (member_int(link, "parent") == job && map_get(&d->jobs, member_int(link, "child")))
			return json_array_get(d->links, (*from)++);
	}
	return NULL;
}

static void children_draw(struct drawing *d, int64_t job)
{
	size_t at = 0, indent = d->indent.len;
	const json_t *link = next_child(d, job, &at);

	while (link) {
		const json_t *next = next_child(d, job, &at);

		buf_printf(d->out, "%s%s ", d->indent.data ? d->indent.data : "", next ? "├─" : "└─");
		if (strcmp(member_text(link, "when"), "success") != 0)
			buf_printf(d->out, "[%s] ", member_text(link, "when"));
		buf_str(&d->indent, next ? "│  " : "   ");
		job_draw(d, member_int(link, "child"));
		d->indent.len = indent;
		if (d->indent.data)
			d->indent.data[indent] = '\0';
		link = next;
	}
}

static bool has_parent(const struct drawing *d, int64_t job)
{
	const json_t *link;
	size_t i;

	json_array_foreach(d->links, i, link)
		if (member_int(link, "child") == job && map_get(&d->jobs, member_int(link, "parent")))
			return true;
	return false;
}

void graph_write(const json_t *graph, struct buf *out)
{
	const json_t *jobs = json_object_get(graph, "jobs"), *job;
	struct drawing d = {.links = json_object_get(graph, "links"), .shown = member_int(graph, "job"), .out = out};
	size_t i;

	json_array_foreach(jobs, i, job)
		map_put(&d.jobs, member_int(job, "id"), (void *)job);
	json_array_foreach(jobs, i, job)
		if (!has_parent(&d, member_int(job, "id")))
			job_draw(&d, member_int(job, "id"));
	if (json_is_true(json_object_get(graph, "more")))
		buf_str(out, "There are more jobs; these are the nearest ones.\n");
	map_done(&d.jobs);
	map_done(&d.drawn);
	buf_done(&d.indent);
}
