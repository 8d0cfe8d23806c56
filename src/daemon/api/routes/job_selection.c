/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the filter of jobs from the query of a request. */
#include "daemon/api/routes/job_selection.h"
#include "base/text.h"
#include "core/job/job.h"
#include "daemon/api/request.h"
#include <stdlib.h>
#include <string.h>

static void split_tag(struct job_selection *s, const char *tag)
{
	const char *eq = tag ? strchr(tag, '=') : NULL;

	if (!eq)
		return;
	s->tag_key = xstrndup(tag, (size_t)(eq - tag));
	s->tag_value = xstrdup(eq + 1);
}

void job_selection_read(const struct request *r, struct job_selection *ret)
{
	*ret = (struct job_selection){.owner = xstrdup(request_text(r, "owner")),
		.name = xstrdup(request_text(r, "name")),
		.queue = xstrdup(request_text(r, "queue"))};
	split_tag(ret, request_text(r, "tag"));
	ret->filter = (struct job_filter){
		.states = (unsigned)request_number(r, "state", 0),
		.owner = ret->owner,
		.name_glob = ret->name,
		.tag_key = ret->tag_key,
		.tag_value = ret->tag_value,
		.queue = ret->queue,
		.created_since = request_number(r, "since", 0),
		.created_until = request_number(r, "until", 0),
	};
	if (request_number(r, "all", 0) && ret->filter.states == 0)
		ret->filter.states = (1u << JOB_STATE_MAX) - 1;
}

void job_selection_done(struct job_selection *s)
{
	free(s->owner);
	free(s->name);
	free(s->tag_key);
	free(s->tag_value);
	free(s->queue);
	*s = (struct job_selection){};
}
