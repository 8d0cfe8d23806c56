/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the archive, step by step. */
#include "jobctl/archived.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include <inttypes.h>

void archived_filter(struct buf *path, const struct ref *r)
{
	AUTO_TEXT job = r->name[0] ? xstrdup(r->name) : r->job ? xprintf("%" PRId64, r->job) : NULL;
	AUTO_TEXT run = r->run ? xprintf("%" PRId64, r->run) : NULL;

	if (job)
		api_query_add(path, "job", job);
	if (run)
		api_query_add(path, "run", run);
}

static bool on_archived(const json_t *run, void *arg)
{
	*(json_t **)arg = json_incref((json_t *)run);
	return false;
}

bool archived_run(struct ctl *c, const struct ref *r, json_t **ret, struct err *e)
{
	AUTO_DONE(buf) path = {};
	json_t *found = NULL;
	struct pages pages = {.member = "runs", .row = on_archived, .arg = &found};

	if (!r->run)
		return err_set(e, ERR_INVALID, "'%s' is a job; --archived needs a run, as '%s#17' (jobctl runs --archived %s)", r->text,
			r->text, r->text);
	buf_str(&path, "/v1/archive/runs");
	archived_filter(&path, r);
	pages.path = path.data;
	if (!api_pages(c, &pages, e))
		return false;
	free(pages.next_cursor);
	*ret = found;
	return found || err_set(e, ERR_NOT_FOUND, "the archive has no run '%s' of yours", r->text);
}
