/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the routes. */
#pragma once
#include "daemon/api/route.h"

/* The handlers, by the noun they serve. */
void route_job_submit(struct request *r);
void route_node_list(struct request *r);
void route_node_drain(struct request *r);
void route_node_undrain(struct request *r);
void route_node_resign(struct request *r);
void route_dead_list(struct request *r);
void route_dead_many(struct request *r);
void route_dead_one(struct request *r);
void route_job_bulk(struct request *r);
void route_job_list(struct request *r);
void route_job_get(struct request *r);
void route_job_cancel(struct request *r);
void route_job_remove(struct request *r);
void route_job_pause(struct request *r);
void route_job_resume(struct request *r);
void route_job_run(struct request *r);
void route_pause_list(struct request *r);
void route_pause(struct request *r);
void route_resume(struct request *r);
void route_freeze(struct request *r);
void route_thaw(struct request *r);
void route_job_change(struct request *r);
void route_job_revisions(struct request *r);
void route_job_undo(struct request *r);
void route_template_list(struct request *r);
void route_template_get(struct request *r);
void route_template_put(struct request *r);
void route_template_remove(struct request *r);
void route_run_list(struct request *r);
void route_run_get(struct request *r);
void route_run_attempts(struct request *r);
void route_run_cancel(struct request *r);
void route_run_output(struct request *r);
void route_job_why(struct request *r);
void route_event_list(struct request *r);
void route_notice_list(struct request *r);
void route_notice_test(struct request *r);
void route_sandbox_list(struct request *r);
void route_status(struct request *r);
void route_db_prune(struct request *r);
void route_db_backup(struct request *r);
void route_db_check(struct request *r);
void route_queue_list(struct request *r);
void route_queue_get(struct request *r);
void route_queue_put(struct request *r);
void route_queue_remove(struct request *r);
void route_owner_list(struct request *r);
void route_owner_get(struct request *r);
void route_owner_put(struct request *r);
void route_owner_remove(struct request *r);
