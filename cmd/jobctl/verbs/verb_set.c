/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl set' and 'jobctl undo'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/dry_run.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/spec_patch.h"
#include "jobctl/verbs/change.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

static bool find_changed_job(struct ctl *c, const char *word, json_t **ret, struct err *e)
{
	struct ref ref;

	return ref_parse(word, &ref, e) && api_job(c, &ref, ret, e);
}

int verb_set(struct ctl *c, const struct args *a)
{
	json_auto_t *patch = NULL, *job = NULL, *answer = NULL;
	struct err e = {};
	char *const *words;
	size_t n = args_operands(a, &words);
	bool dry_run = args_has(a, "dry-run");
	int64_t revision = 0;

	c->job_typed = words[0];
	c->yes = args_has(a, "yes");
	if (args_has(a, "revision") &&
		!text_parse_int(args_last(a, "revision"), 1, INT64_MAX, &revision))
		err_set(&e, ERR_INVALID, "--revision: '%s' is not the number of a revision",
			args_last(a, "revision"));
	if (e.kind || !spec_patch_from_words(words + 1, n - 1, &patch, &e) ||
		!find_changed_job(c, words[0], &job, &e) ||
		!change_send(c, job, patch, revision, dry_run, &answer, &e))
		return ctl_fail(&e);
	return change_show(c, answer, dry_run);
}

int verb_undo(struct ctl *c, const struct args *a)
{
	json_auto_t *body = json_object(), *job = NULL, *answer = NULL;
	AUTO_TEXT path = NULL;
	struct err e = {};
	char *const *words;
	int64_t to = 0;

	args_operands(a, &words);
	if (args_has(a, "to") && !text_parse_int(args_last(a, "to"), 1, INT64_MAX, &to))
		err_set(&e, ERR_INVALID, "--to: '%s' is not the number of a revision",
			args_last(a, "to"));
	if (to)
		json_object_set_new(body, "to", json_integer(to));
	if (e.kind || !find_changed_job(c, words[0], &job, &e))
		return ctl_fail(&e);
	path = xprintf("/v1/jobs/%" PRId64 "/undo", member_int(job, "id"));
	if (!api_call(c, "POST", path, body, &answer, &e))
		return ctl_fail(&e);
	return change_show(c, answer, false);
}
