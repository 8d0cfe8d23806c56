/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl completion' and the hidden verb that the shells call. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/args.h"
#include "jobctl/complete/complete.h"
#include "jobctl/complete/complete_names.h"
#include "jobctl/complete/scripts.h"
#include "jobctl/ctl.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include <string.h>
#include <unistd.h>

#define COMPLETE_SECONDS 2 /* the process ends itself after this time: a shell waits for it */

int verb_completion(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) out = {};
	struct err e = {};
	char *const *words;
	const char *text;

	(void)c;
	args_operands(a, &words);
	text = scripts_find(words[0]);
	if (!text) {
		err_set(&e, ERR_INVALID, "'%s' is not bash, zsh or fish", words[0]);
		return ctl_fail(&e);
	}
	buf_str(&out, text);
	return render_text(&out);
}

/* "line TEXT" is a command line after 'jobctl', "words WORD…" its words. */
int verb_complete(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) out = {};
	AUTO_DONE(strv) typed = {};
	struct completion completion = {
		.table = verbs, .names = complete_names, .arg = c, .out = &out};
	char *const *words;
	size_t n = args_operands(a, &words);

	alarm(COMPLETE_SECONDS);
	if (strcmp(words[0], "line") == 0 && n == 2)
		complete_split(words[1], &typed);
	for (size_t i = 1; strcmp(words[0], "words") == 0 && i < n; i++)
		strv_add(&typed, words[i]);
	complete_words(&completion, &typed);
	return render_text(&out);
}
