/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl help'. */
#include "base/buf.h"
#include "jobctl/args.h"
#include "jobctl/help.h"
#include "jobctl/render/render.h"
#include "jobctl/suggest.h"
#include "jobctl/verbs/verbs.h"

int verb_help(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) text = {};
	char *const *words;
	size_t n = args_operands(a, &words), used;
	const struct verb *v;

	(void)c;
	if (n == 0) {
		help_all(verbs, &text);
		return render_text(&text);
	}
	v = n == 1 ? verb_find(verbs, words[0]) : verb_match(verbs, words, n, &used);
	if (n == 1 && !v && verb_in_group(verbs, NULL, words[0]))
		help_group(verbs, words[0], &text);
	else if (v && (n == 1 || used == n))
		help_verb(v, &text);
	else
		return suggest_verb(verbs, words, n);
	return render_text(&text);
}
