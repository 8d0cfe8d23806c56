/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the highest term in a file of one line, "STORE-ID TERM", which is replaced atomically. */
#include "daemon/cluster/highest_term.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "store/store.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t highest_term_read(const char *file, const char *store_id)
{
	AUTO_DONE(buf) text = {};
	int64_t term = 0;
	size_t len = strlen(store_id);

	if (io_read_file(file, &text, 256) < 0 || !text.data || strncmp(text.data, store_id, len) != 0 || text.data[len] != ' ')
		return 0;
	text.data[strcspn(text.data, "\n")] = '\0';
	return text_parse_int(text.data + len + 1, 0, INT64_MAX, &term) ? term : 0;
}

bool highest_term_check(const char *file, const char *store_id, int64_t term, struct err *e)
{
	AUTO_TEXT line = NULL;
	int64_t highest;
	int r;

	if (!file)
		return true;
	highest = highest_term_read(file, store_id);
	if (term < highest)
		return err_set(e, ERR_REFUSED, "the store has gone back to term %" PRId64 ", after %" PRId64 ": the server lost "
			"commits, so runs may be forgotten; bring it up to date, or if it was restored on purpose remove '%s'",
			term, highest, file);
	if (term == highest)
		return true;
	line = xprintf("%s %" PRId64 "\n", store_id, term);
	r = io_write_file(file, line, strlen(line), 0600);
	if (r < 0)
		log_warning("could not keep the term in '%s': %s", file, strerror(-r));
	return true;
}
