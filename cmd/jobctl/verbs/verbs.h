/* SPDX-License-Identifier: Apache-2.0 */
/* Verb table, with the function of each verb. */
#pragma once
#include "jobctl/verb.h"

extern const struct verb verbs[]; /* in the order of 'jobctl help' */

int verb_add(struct ctl *c, const struct args *a);
int verb_apply(struct ctl *c, const struct args *a);
int verb_complete(struct ctl *c, const struct args *a);
int verb_completion(struct ctl *c, const struct args *a);
int verb_diff(struct ctl *c, const struct args *a);
int verb_doctor(struct ctl *c, const struct args *a);
int verb_export(struct ctl *c, const struct args *a);
int verb_list(struct ctl *c, const struct args *a);
int verb_show(struct ctl *c, const struct args *a);
int verb_cancel(struct ctl *c, const struct args *a);
int verb_rm(struct ctl *c, const struct args *a);
int verb_pause(struct ctl *c, const struct args *a);
int verb_resume(struct ctl *c, const struct args *a);
int verb_freeze(struct ctl *c, const struct args *a);
int verb_thaw(struct ctl *c, const struct args *a);
int verb_progress(struct ctl *c, const struct args *a);
int verb_run(struct ctl *c, const struct args *a);
int verb_runs(struct ctl *c, const struct args *a);
int verb_log(struct ctl *c, const struct args *a);
int verb_why(struct ctl *c, const struct args *a);
int verb_events(struct ctl *c, const struct args *a);
int verb_shell(struct ctl *c, const struct args *a);
int verb_env_diff(struct ctl *c, const struct args *a);
int verb_simulate(struct ctl *c, const struct args *a);
int verb_top(struct ctl *c, const struct args *a);
int verb_wait(struct ctl *c, const struct args *a);
int verb_next(struct ctl *c, const struct args *a);
int verb_explain(struct ctl *c, const struct args *a);
int verb_import_crontab(struct ctl *c, const struct args *a);
int verb_dead_list(struct ctl *c, const struct args *a);
int verb_dead_show(struct ctl *c, const struct args *a);
int verb_dead_retry(struct ctl *c, const struct args *a);
int verb_dead_purge(struct ctl *c, const struct args *a);
int verb_queue_add(struct ctl *c, const struct args *a);
int verb_queue_set(struct ctl *c, const struct args *a);
int verb_context_add(struct ctl *c, const struct args *a);
int verb_context_list(struct ctl *c, const struct args *a);
int verb_context_rm(struct ctl *c, const struct args *a);
int verb_context_use(struct ctl *c, const struct args *a);
int verb_token_add(struct ctl *c, const struct args *a);
int verb_token_list(struct ctl *c, const struct args *a);
int verb_token_revoke(struct ctl *c, const struct args *a);
int verb_web(struct ctl *c, const struct args *a);
int verb_cron_status(struct ctl *c, const struct args *a);
int verb_cron_compare(struct ctl *c, const struct args *a);
int verb_cron_takeover(struct ctl *c, const struct args *a);
int verb_cron_give_back(struct ctl *c, const struct args *a);
int verb_nodes(struct ctl *c, const struct args *a);
int verb_node_drain(struct ctl *c, const struct args *a);
int verb_node_undrain(struct ctl *c, const struct args *a);
int verb_node_resign(struct ctl *c, const struct args *a);
int verb_queue_list(struct ctl *c, const struct args *a);
int verb_queue_rm(struct ctl *c, const struct args *a);
int verb_limit_list(struct ctl *c, const struct args *a);
int verb_limit_set(struct ctl *c, const struct args *a);
int verb_limit_rm(struct ctl *c, const struct args *a);
int verb_db_prune(struct ctl *c, const struct args *a);
int verb_db_backup(struct ctl *c, const struct args *a);
int verb_db_check(struct ctl *c, const struct args *a);
int verb_db_restore(struct ctl *c, const struct args *a);
int verb_set(struct ctl *c, const struct args *a);
int verb_approve(struct ctl *c, const struct args *a);
int verb_edit(struct ctl *c, const struct args *a);
int verb_history(struct ctl *c, const struct args *a);
int verb_undo(struct ctl *c, const struct args *a);
int verb_template_add(struct ctl *c, const struct args *a);
int verb_template_list(struct ctl *c, const struct args *a);
int verb_template_show(struct ctl *c, const struct args *a);
int verb_template_rm(struct ctl *c, const struct args *a);
int verb_status(struct ctl *c, const struct args *a);
int verb_version(struct ctl *c, const struct args *a);
int verb_help(struct ctl *c, const struct args *a);
int verb_notices_list(struct ctl *c, const struct args *a);
int verb_notices_test(struct ctl *c, const struct args *a);
int verb_none(struct ctl *c); /* jobctl without a verb */
