/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the store suite on the backend of this program. */
#include "base/text.h"
#include "unit/store/store_suite.h"
#include <string.h>

static struct CMUnitTest *join(struct CMUnitTest *all, size_t *n, const struct suite_part *part)
{
	all = xrealloc(all, (*n + part->n) * sizeof(*all));
	memcpy(all + *n, part->tests, part->n * sizeof(*all));
	*n += part->n;
	return all;
}

/* The fault tests take long. They run in parallel, in two parts (store_faults_*.sh, store_losses_*.sh). */
static int run_faults(const char *pattern)
{
	if (pattern && pattern[0] == '!')
		cmocka_set_skip_filter(pattern + 1);
	else if (pattern)
		cmocka_set_test_filter(pattern);
	return _cmocka_run_group_tests("store", store_faults_part.tests, store_faults_part.n, place_group_setup, place_group_teardown);
}

/* Arguments: a pattern selects tests; "faults" selects the fault tests, followed by an optional pattern; '!' excludes tests. */
int main(int argc, char **argv)
{
	const struct suite_part *const parts[] = {
		&store_jobs_part,
		&store_apply_part, &store_change_part,
		&store_pauses_part,
		&store_imposed_part,
		&store_triggers_part,
		&store_limits_part,
		&store_owners_part,
		&store_tokens_part,
		&store_runs_part,
		&store_plan_part,
		&store_list_part,
		&store_search_part,
		&store_access_part,
		&store_batch_part,
		&store_claim_part,
		&store_lanes_part,
		&store_dead_part,
		&store_chains_part,
		&store_progress_part,
		&store_states_part,
		&store_results_part,
		&store_schema_part,
		&store_prune_part,
		&store_late_part,
		&store_slots_part,
		&store_events_part,
		&store_notices_part,
		&store_leases_part,
		&store_leader_part,
		&store_segments_part,
		&store_nodes_part,
		&store_held_part,
		&store_relay_part,
		&store_metrics_part,
	};
	struct CMUnitTest *all = NULL;
	size_t n = 0;
	int failed;

	if (argc > 1 && strcmp(argv[1], "faults") == 0)
		return run_faults(argv[2]);
	for (size_t i = 0; i < ELEMENTS(parts); i++)
		all = join(all, &n, parts[i]);
	for (size_t i = 0; store_engine_parts[i]; i++)
		all = join(all, &n, store_engine_parts[i]);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = _cmocka_run_group_tests("store", all, n, place_group_setup, place_group_teardown);
	free(all);
	return failed;
}
