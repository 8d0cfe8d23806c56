/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the list of crontabs that the spawner sends to the daemon, whose accepted form encodes to the
 * same bytes, and anacrontab, which the spawner's reader parses as root.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "core/crontab/anacrontab.h"
#include "core/crontab/table_job.h"
#include "exec/proto/table_list.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void anacrontab_try(const uint8_t *data, size_t size)
{
	AUTO_DONE(table_jobs) jobs = {};
	AUTO(anacrontab) *t = NULL;

	anacrontab_parse((const char *)data, size, &t);
	table_jobs_build_anacron(t, "/etc/anacrontab", &jobs);
	if (jobs.n != t->n_entries)
		abort();
	for (size_t i = 0; i < t->n_entries; i++) {
		AUTO_TEXT schedule = anacrontab_schedule(t, &t->entries[i], 20261117, 3600);

		if (strchr(t->entries[i].id, '/') || !schedule[0])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(table_list) l = {};
	AUTO_DONE(buf) again = {};

	anacrontab_try(data, size);
	if (!table_list_parse(&l, data, size, NULL))
		return 0;
	table_list_encode(&l, &again);
	if (again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}
