/* SPDX-License-Identifier: Apache-2.0 */
/* Processes the operands of a verb in turn. */
#include "jobctl/each.h"

#include "base/err.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/ref.h"
#include "jobctl/render/render.h"

int each_operand(struct ctl *c, const struct args *a, each_fn *fn, void *arg)
{
	json_auto_t *results = json_array();
	char *const *words;
	size_t n = args_operands(a, &words);
	int code = 0;

	for (size_t i = 0; i < n; i++) {
		struct err e = {};
		struct ref ref;
		json_t *result = NULL;
		int failed;

		if (ref_parse(words[i], &ref, &e) && fn(c, &ref, arg, &result, &e)) {
			if (c->format == FORMAT_JSONL)
				render_object(c, result);
			json_array_append_new(results, result);
			continue;
		}
		failed = ctl_fail(&e);
		code = code ? code : failed;
		if (e.kind == ERR_UNREACHABLE)
			break;
	}
	if (c->format == FORMAT_JSON)
		render_object(c, results);
	return code;
}
