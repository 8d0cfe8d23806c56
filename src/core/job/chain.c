/* SPDX-License-Identifier: Apache-2.0 */
/* Reads links between jobs, describes them, decides whether the end of a run satisfies a link. */
#include "core/job/chain.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include <inttypes.h>
#include <string.h>

#define EXPLAINED_MAX 4 /* links that a sentence names */

static bool read_when(const char *text, struct chain_link *ret)
{
	if (strcmp(text, "success") == 0)
		ret->when = CHAIN_SUCCESS;
	else if (strcmp(text, "failure") == 0)
		ret->when = CHAIN_FAILURE;
	else if (strcmp(text, "any") == 0)
		ret->when = CHAIN_ANY;
	else if (text_starts(text, "exit=") && text_parse_int(text + strlen("exit="), 0, 255, &ret->code))
		ret->when = CHAIN_EXIT;
	else
		return false;
	return true;
}

bool chain_link_parse(const char *text, struct chain_link *ret, struct err *e)
{
	size_t len = strcspn(text, ":");

	*ret = (struct chain_link){.when = CHAIN_SUCCESS};
	if (len == 0 || len >= CHAIN_PARENT_MAX)
		return err_field(e, "after", "'%.64s' names no job; write JOB or JOB:success, JOB:failure, JOB:any, JOB:exit=N", text);
	memcpy(ret->parent, text, len);
	if (strspn(ret->parent, "0123456789") != len && !job_name_check(ret->parent, NULL))
		return err_field(e, "after", "'%.128s' is neither the name nor the number of a job", ret->parent);
	if (text[len] && !read_when(text + len + 1, ret))
		return err_field(e, "after", "'%.64s' is not one of success, failure, any and exit=N", text + len + 1);
	return true;
}

bool chain_link_holds(const struct chain_link *l, enum run_state state, int64_t exit_code)
{
	bool failed = state == RUN_FAILED || state == RUN_TIMED_OUT || state == RUN_LOST;

	switch (l->when) {
	case CHAIN_SUCCESS:
		return state == RUN_SUCCEEDED;
	case CHAIN_FAILURE:
		return failed;
	case CHAIN_ANY:
		return failed || state == RUN_SUCCEEDED;
	default:
		return (failed || state == RUN_SUCCEEDED) && exit_code == l->code;
	}
}

static void explain_link(const struct chain_link *l, struct buf *out)
{
	bool number = strspn(l->parent, "0123456789") == strlen(l->parent);

	buf_printf(out, number ? "job %s " : "job '%s' ", l->parent);
	switch (l->when) {
	case CHAIN_SUCCESS:
		buf_str(out, "succeeds");
		return;
	case CHAIN_FAILURE:
		buf_str(out, "fails");
		return;
	case CHAIN_ANY:
		buf_str(out, "succeeds or fails");
		return;
	default:
		buf_printf(out, "ends with exit code %" PRId64, l->code);
		return;
	}
}

void chain_explain(const struct strv *links, int64_t mode, struct buf *out)
{
	const char *word = mode == CHAIN_ANY_OF ? ", or " : ", and ";
	struct chain_link l;
	size_t i;

	for (i = 0; i < links->n && i < EXPLAINED_MAX; i++) {
		buf_str(out, i ? word : "after ");
		if (chain_link_parse(links->v[i], &l, NULL))
			explain_link(&l, out);
		else
			buf_str(out, links->v[i]);
	}
	if (i < links->n)
		buf_printf(out, "%s%zu more", word, links->n - i);
}
