/* SPDX-License-Identifier: Apache-2.0 */
/* The route table: one row per method and path. */
#include "daemon/api/routes/routes.h"
#include "base/text.h"

#define AS {"as", QUERY_TEXT, 0, 0, "name of the owner of the jobs; for administrators"}
#define CURSOR {"cursor", QUERY_TEXT, 0, 0, "next_cursor of the previous page"}
#define LIMIT {"limit", QUERY_NUMBER, 1, 1000, "maximum number of rows, 100 by default"}
#define DEAD_FILTER \
	{"job", QUERY_TEXT, 0, 0, "number or name of a job"}, \
	{"since", QUERY_TIME, 0, 0, "became a dead letter at or after this time"}, \
	{"until", QUERY_TIME, 0, 0, "became a dead letter before this time, now by default"}, \
	{"cursor", QUERY_TEXT, 0, 0, "next_cursor of the previous step"}, \
	{"limit", QUERY_NUMBER, 1, 1000, "maximum number of dead letters per step, 500 by default"}

const struct route routes[] = {
	{"POST", "/v1/jobs", route_job_submit, VERB_SUBMIT, BODY_ONE, "submit a job", {
		{"dry_run", QUERY_BOOL, 0, 0,
			"check the request and show its effect; nothing is stored"},
		{"paused", QUERY_BOOL, 0, 0, "the job starts paused"}, AS}, EVENT_JOB_ADD},
	{"POST", "/v1/jobs/bulk", route_job_bulk, VERB_SUBMIT, BODY_BULK,
		"submit many jobs in one transaction", {AS}, EVENT_JOB_ADD},
	{"GET", "/v1/jobs", route_job_list, VERB_SEE, BODY_NONE, "list jobs", {
		{"state", QUERY_JOB_STATES, 0, 0, "states, separated by commas; may be repeated"},
		{"owner", QUERY_TEXT, 0, 0, "name of the owner"},
		{"tag", QUERY_TAG, 0, 0, "KEY=VALUE"},
		{"name", QUERY_TEXT, 0, 0, "pattern with * and ?"},
		{"since", QUERY_TIME, 0, 0, "created at or after this time"},
		{"until", QUERY_TIME, 0, 0, "created before this time"},
		{"all", QUERY_BOOL, 0, 0, "include removed jobs"},
		CURSOR, LIMIT}},
	{"GET", "/v1/jobs/{job}", route_job_get, VERB_SEE, BODY_NONE, "show a job", {}},
	{"GET", "/v1/jobs/{job}/why", route_job_why, VERB_SEE, BODY_NONE,
		"explain why a job ran, did not run, or will not run", {
		{"at", QUERY_TIME, 0, 0, "explain the slot at this time"},
		{"run", QUERY_NUMBER, 1, INT64_MAX, "explain this run"},
		{"limit", QUERY_NUMBER, 0, 100, "number of last runs, 10 by default"}}},
	{"POST", "/v1/jobs/{job}/cancel", route_job_cancel, VERB_CANCEL, BODY_OPTIONAL,
		"stop a job's schedule; queued runs end, running ones on request", {},
		EVENT_JOB_CANCEL},
	{"POST", "/v1/jobs/{job}/pause", route_job_pause, VERB_PAUSE, BODY_OPTIONAL,
		"pause a job: its slots are skipped, active runs continue", {}, EVENT_JOB_PAUSE},
	{"POST", "/v1/jobs/{job}/resume", route_job_resume, VERB_RESUME, BODY_OPTIONAL,
		"end a job's pause, retry a suspended job, or reactivate a cancelled one", {},
		EVENT_JOB_RESUME},
	{"POST", "/v1/jobs/{job}/run", route_job_run, VERB_TRIGGER, BODY_OPTIONAL,
		"run a job now", {}, EVENT_RUN_TRIGGER},
	{"GET", "/v1/pauses", route_pause_list, VERB_SEE, BODY_NONE,
		"list pauses and freezes, except those of single jobs", {}},
	{"POST", "/v1/pause", route_pause, VERB_PAUSE, BODY_OPTIONAL,
		"pause all jobs of a scope", {}, EVENT_PAUSE},
	{"POST", "/v1/resume", route_resume, VERB_RESUME, BODY_OPTIONAL,
		"end the pause of a scope", {}, EVENT_RESUME},
	{"POST", "/v1/freeze", route_freeze, VERB_FREEZE, BODY_OPTIONAL,
		"start no runs except those of jobs with a given tag", {}, EVENT_FREEZE},
	{"POST", "/v1/thaw", route_thaw, VERB_FREEZE, BODY_OPTIONAL,
		"end the freeze", {}, EVENT_THAW},
	{"DELETE", "/v1/jobs/{job}", route_job_remove, VERB_REMOVE, BODY_NONE,
		"cancel a job and remove it from lists; its history is kept", {}, EVENT_JOB_REMOVE},
	{"PATCH", "/v1/jobs/{job}", route_job_change, VERB_CHANGE, BODY_ONE,
		"change a job by a merge patch", {
		{"dry_run", QUERY_BOOL, 0, 0,
			"check the request and show its effect; nothing is stored"}},
		EVENT_JOB_CHANGE},
	{"GET", "/v1/jobs/{job}/revisions", route_job_revisions, VERB_SEE, BODY_NONE,
		"list the revisions of a job, newest first", {
		{"revision", QUERY_NUMBER, 1, INT64_MAX, "only this revision"},
		{"cursor", QUERY_NUMBER, 1, INT64_MAX, "next_cursor of the previous page"},
		{"limit", QUERY_NUMBER, 1, 100, "maximum number of revisions, 100 by default"}}},
	{"POST", "/v1/jobs/{job}/undo", route_job_undo, VERB_CHANGE, BODY_OPTIONAL,
		"restore the previous or an earlier revision", {}, EVENT_JOB_UNDO},
	{"GET", "/v1/templates", route_template_list, VERB_SEE, BODY_NONE,
		"list the caller's templates and those shared by root", {
		CURSOR, LIMIT}},
	{"GET", "/v1/templates/{template}", route_template_get, VERB_SEE, BODY_NONE,
		"show a template", {}},
	{"PUT", "/v1/templates/{template}", route_template_put, VERB_TEMPLATE, BODY_ONE,
		"create or replace a template", {}, EVENT_TEMPLATE_PUT},
	{"DELETE", "/v1/templates/{template}", route_template_remove, VERB_TEMPLATE, BODY_NONE,
		"remove a template; jobs made from it are kept", {}, EVENT_TEMPLATE_REMOVE},
	{"GET", "/v1/runs", route_run_list, VERB_SEE, BODY_NONE, "list runs, newest first", {
		{"job", QUERY_TEXT, 0, 0, "numbers or names of jobs, separated by commas"},
		{"state", QUERY_RUN_STATES, 0, 0, "states, separated by commas; may be repeated"},
		{"owner", QUERY_TEXT, 0, 0, "name of the owner"},
		{"tag", QUERY_TAG, 0, 0, "KEY=VALUE of the job"},
		{"since", QUERY_TIME, 0, 0, "slot at or after this time"},
		{"until", QUERY_TIME, 0, 0, "slot before this time"},
		{"planned", QUERY_BOOL, 0, 0,
			"include queued runs with a slot in the future; true by default"},
		CURSOR, LIMIT}},
	{"GET", "/v1/runs/{run}", route_run_get, VERB_SEE, BODY_NONE,
		"show a run with its attempts", {
		{"wait", QUERY_NUMBER, 0, 3600,
			"seconds to wait for the end; the response is sent when the run has "
			"ended or the time has passed"}}},
	{"GET", "/v1/runs/{run}/attempts", route_run_attempts, VERB_SEE, BODY_NONE,
		"list the attempts of a run", {}},
	{"POST", "/v1/runs/{run}/cancel", route_run_cancel, VERB_CANCEL, BODY_NONE, "end a run", {},
		EVENT_RUN_CANCEL},
	{"GET", "/v1/runs/{run}/output", route_run_output, VERB_SEE, BODY_NONE,
		"read the output of a run", {
		{"attempt", QUERY_NUMBER, 1, INT64_MAX,
			"number of the attempt, the newest by default"},
		{"from", QUERY_NUMBER, 0, INT64_MAX, "offset of the first byte"},
		{"tail", QUERY_NUMBER, 0, INT64_MAX, "maximum number of bytes, from the end"},
		{"follow", QUERY_BOOL, 0, 0, "continue until the attempt has ended"}}},
	{"GET", "/v1/dead", route_dead_list, VERB_SEE, BODY_NONE,
		"list dead letters, newest first", {
		{"job", QUERY_TEXT, 0, 0, "numbers or names of jobs, separated by commas"},
		{"since", QUERY_TIME, 0, 0, "became a dead letter at or after this time"},
		{"until", QUERY_TIME, 0, 0, "became a dead letter before this time"},
		CURSOR, LIMIT}},
	{"POST", "/v1/dead/retry", route_dead_many, VERB_DEAD, BODY_NONE,
		"retry dead letters, in steps", {DEAD_FILTER}, EVENT_DEAD_RETRY},
	{"POST", "/v1/dead/purge", route_dead_many, VERB_DEAD, BODY_NONE,
		"purge dead letters, in steps; the runs are kept", {DEAD_FILTER}, EVENT_DEAD_PURGE},
	{"POST", "/v1/runs/{run}/retry", route_dead_one, VERB_DEAD, BODY_NONE,
		"retry a dead letter", {}, EVENT_DEAD_RETRY},
	{"POST", "/v1/runs/{run}/purge", route_dead_one, VERB_DEAD, BODY_NONE,
		"purge a dead letter; the run is kept", {}, EVENT_DEAD_PURGE},
	{"GET", "/v1/queues", route_queue_list, VERB_QUEUES, BODY_NONE, "list the queues", {}},
	{"GET", "/v1/queues/{queue}", route_queue_get, VERB_QUEUES, BODY_NONE, "show a queue", {}},
	{"PUT", "/v1/queues/{queue}", route_queue_put, VERB_LIMIT, BODY_OPTIONAL,
		"create or change a queue", {
		{"new", QUERY_BOOL, 0, 0,
			"true: refuse if it exists; false: refuse if it does not exist"}},
		EVENT_QUEUE_SET},
	{"DELETE", "/v1/queues/{queue}", route_queue_remove, VERB_LIMIT, BODY_NONE,
		"remove an unused queue", {}, EVENT_QUEUE_REMOVE},
	{"GET", "/v1/owners", route_owner_list, VERB_SEE, BODY_NONE,
		"list the owners with limits of their own", {}},
	{"GET", "/v1/owners/{owner}", route_owner_get, VERB_SEE, BODY_NONE,
		"show the limits of an owner", {}},
	{"PUT", "/v1/owners/{owner}", route_owner_put, VERB_LIMIT, BODY_OPTIONAL,
		"set the limits of an owner", {
		{"new", QUERY_BOOL, 0, 0,
			"true: refuse if it exists; false: refuse if it does not exist"}},
		EVENT_LIMIT_SET},
	{"DELETE", "/v1/owners/{owner}", route_owner_remove, VERB_LIMIT, BODY_NONE,
		"remove the limits of an owner; the defaults apply again", {}, EVENT_LIMIT_REMOVE},
	{"GET", "/v1/events", route_event_list, VERB_SEE, BODY_NONE,
		"list the audit trail, newest first, or follow it", {
		{"job", QUERY_TEXT, 0, 0, "numbers or names of jobs, separated by commas"},
		{"run", QUERY_NUMBER, 1, INT64_MAX, "events of this run"},
		{"what", QUERY_TEXT, 0, 0,
			"actions such as job.cancel, or job for all of its actions, separated by "
			"commas"},
		{"since", QUERY_TIME, 0, 0, "at or after this time"},
		{"until", QUERY_TIME, 0, 0, "before this time"},
		{"follow", QUERY_BOOL, 0, 0,
			"stream of JSON lines, oldest first, from the cursor on"},
		{"cursor", QUERY_TEXT, 0, 0,
			"next_cursor of the previous page; with follow: the id after which to "
			"start"},
		{"limit", QUERY_NUMBER, 0, 1000,
			"maximum number of rows, 100 by default; with follow: number of older "
			"events first, 10 by default"}}},
	{"POST", "/v1/db/prune", route_db_prune, VERB_DATABASE, BODY_OPTIONAL,
		"delete old history now", {}, EVENT_DB_PRUNE},
	{"GET", "/v1/db/backup", route_db_backup, VERB_DATABASE, BODY_NONE,
		"copy the store to a file", {}, EVENT_DB_BACKUP},
	{"GET", "/v1/db/check", route_db_check, VERB_DATABASE, BODY_NONE,
		"check the whole store", {}},
	{"GET", "/v1/notices", route_notice_list, VERB_SEE, BODY_NONE,
		"list notices, newest first", {
		{"job", QUERY_TEXT, 0, 0, "number or name of a job"},
		{"state", QUERY_TEXT, 0, 0, "waiting, sent or failed, separated by commas"},
		CURSOR, LIMIT}},
	{"POST", "/v1/jobs/{job}/notify-test", route_notice_test, VERB_NOTIFY, BODY_NONE,
		"send a test notice to all channels of a job", {}, EVENT_NOTICE_TEST},
	{"GET", "/v1/sandboxes", route_sandbox_list, VERB_STATUS, BODY_NONE,
		"list the sandbox profiles and their effects", {}},
	{"GET", "/v1/nodes", route_node_list, VERB_STATUS, BODY_NONE,
		"list the nodes of this store and the leader", {}},
	{"POST", "/v1/nodes/{node}/drain", route_node_drain, VERB_NODES, BODY_NONE,
		"start nothing new on a node; active runs continue", {}, EVENT_NODE_SET},
	{"POST", "/v1/nodes/{node}/undrain", route_node_undrain, VERB_NODES, BODY_NONE,
		"let a node start runs again", {}, EVENT_NODE_SET},
	{"POST", "/v1/nodes/{node}/resign", route_node_resign, VERB_NODES, BODY_NONE,
		"let the leader hand over to another node", {}, EVENT_NODE_SET},
	{"GET", "/v1/status", route_status, VERB_STATUS, BODY_NONE,
		"show the status of the daemon", {}, .storeless = true},
};
const size_t routes_count = ELEMENTS(routes);
