/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the store suite; the program of each backend runs all of them. */
#pragma once
#include "unit/store/store_fixture.h"

struct suite_part {
	const struct CMUnitTest *tests;
	size_t n;
};
extern const struct suite_part store_jobs_part, store_runs_part, store_plan_part, store_list_part, store_search_part, store_batch_part, store_claim_part, store_lanes_part,
	store_faults_part, store_schema_part, store_prune_part, store_late_part, store_slots_part;
extern const struct suite_part store_access_part;
extern const struct suite_part store_dead_part;
extern const struct suite_part store_chains_part, store_progress_part, store_results_part, store_states_part;
extern const struct suite_part store_limits_part;
extern const struct suite_part store_owners_part;
extern const struct suite_part store_tokens_part;
extern const struct suite_part store_apply_part, store_change_part;
extern const struct suite_part store_pauses_part, store_imposed_part, store_triggers_part;
extern const struct suite_part store_events_part;
extern const struct suite_part store_notices_part;
extern const struct suite_part store_leases_part, store_leader_part, store_segments_part, store_nodes_part, store_held_part;
extern const struct suite_part store_relay_part;
extern const struct suite_part store_metrics_part;

/* The tests of one backend only; ends with NULL. */
extern const struct suite_part *const store_engine_parts[];
extern const struct suite_part store_backup_part, store_disk_part, store_file_part, store_server_part, store_locks_part, store_event_order_part, store_rivals_part, store_round_trips_part, store_beside_part;
