/* SPDX-License-Identifier: Apache-2.0 */
/* Table of all verbs with their options, in the order of the help. */
#include "jobctl/verbs/verbs.h"

#include "base/auto.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "jobctl/ctl.h"
#include "jobctl/spec/when_args.h"
#include "jobctl/verbs/verb_details.h"

#define FORMATS_TEXT (1u << FORMAT_TABLE | 1u << FORMAT_WIDE)
#define FORMATS_OBJECT (FORMATS_TEXT | 1u << FORMAT_JSON | 1u << FORMAT_JSONL)
#define FORMATS_ALL ((1u << FORMAT_MAX) - 1)

static const struct opt cron_compare_opts[] = {
	{"since", 0, "TIME", "from this time on (7d)"},
	{"log", 0, "FILE", "syslog file of cron; by default the journal, /var/log/cron.log, cron or syslog"},
	{},
};

static const struct opt cron_takeover_opts[] = {
	{"dry-run", 0, NULL, "change nothing; show the steps"},
	{"config", 0, "FILE", "configuration of jobschedd"},
	{},
};

static const struct opt add_opts[] = {
	WHEN_OPTS,
	{"env-file", 0, "FILE",
		"file of NAME=VALUE lines for the environment; '#' begins a comment"},
	{"if-exists", 0, "WORD", "if you have a job of this name: error, keep or replace (error)"},
	{"key", 0, "KEY", "idempotency key: a repeated command with this key adds no second job"},
	{"as", 0, "USER", "add the job for this user; administrators only"},
	{"paused", 0, NULL, "add the job paused, until 'jobctl resume'"},
	{"yes", 'y', NULL, "with --template: approve without asking, if a warrant is required"},
	{"dry-run", 0, NULL,
		"add nothing; show the meaning of the schedule, its next slots and warnings"},
	{"wait", 'w', NULL, "wait for the end of the first run; exit as 'jobctl wait'"},
	{"follow", 'f', NULL,
		"show the output of the first run while it runs; exit as with --wait"},
	{},
};
#define APPROVE_OPT {"yes", 'y', NULL, "approve without asking, if a warrant is required"}
static const struct opt set_opts[] = {
	{"dry-run", 0, NULL, "change nothing; show the differences and the next slots"},
	{"revision", 0, "N", "change only if the job still has revision N"},
	APPROVE_OPT,
	{},
};
static const struct opt edit_opts[] = {
	APPROVE_OPT,
	{},
};
static const struct opt history_opts[] = {
	{"diff", 0, "N", "show the lines that revision N removed and added"},
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{},
};
static const struct opt undo_opts[] = {
	{"to", 0, "N", "go back to revision N instead of the previous one"},
	{},
};
static const struct opt template_add_opts[] = {
	WHEN_OPTS,
	{"env-file", 0, "FILE",
		"file of NAME=VALUE lines for the environment; '#' begins a comment"},
	{},
};
static const struct opt template_show_opts[] = {
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{},
};
static const struct opt list_opts[] = {
	{"state", 's', "STATE", "only jobs in this state; repeatable or comma-separated"},
	{"tag", 't', "KEY=VALUE", "only jobs with this tag; repeatable"},
	{"owner", 0, "USER", "only jobs of this user"},
	{"since", 0, "TIME", "only jobs added at or after this time: 2h, yesterday, 2026-11-16"},
	{"until", 0, "TIME", "only jobs added before this time"},
	{"all", 'a', NULL, "include finished, cancelled and removed jobs"},
	{"queue", 0, "QUEUE", "only jobs of this queue"},
	{"sort", 0, "KEY", "sort by next (run), name, last (run) or created; a minus sign reverses"},
	{"limit", 0, "N", "at most N jobs; on a terminal one screenful by default, 0: all"},
	{"cursor", 0, "CURSOR", "continue after an earlier page"},
	{"watch", 0, NULL, "repeat every two seconds until interrupted"},
	{},
};
static const struct opt show_opts[] = {
	{"env", 0, NULL, "print the environment of its command, one NAME=VALUE per line"},
	{"sandbox", 0, NULL, "describe its sandbox profile on this machine"},
	{"as-command", 0, NULL, "print a 'jobctl add' command that creates such a job"},
	{"graph", 0, NULL, "show the jobs that it runs after and those that run after it"},
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{"archived", 0, NULL, "search the run in the archive"},
	{},
};
static const struct opt cancel_opts[] = {
	{"running", 0, NULL, "for a job: also end its running runs"},
	{},
};
#define PAUSE_SCOPE_OPTS \
	{"all", 'a', NULL, "all jobs"}, \
	{"tag", 't', "KEY=VALUE", "jobs with this tag"}, \
	{"queue", 'q', "QUEUE", "jobs in this queue; administrators only"}, \
	{"owner", 0, "USER", "jobs of this user; alone or with one of the above"}
#define PAUSE_REASON_OPT {"reason", 0, "TEXT", "reason, shown by 'jobctl why' and 'jobctl events'"}
#define PAUSE_TERM_OPTS \
	{"until", 0, "TIME", "end at this time, or after a duration: 2h"}, \
	PAUSE_REASON_OPT
static const struct opt pause_opts[] = {
	PAUSE_SCOPE_OPTS,
	PAUSE_TERM_OPTS,
	{},
};
static const struct opt resume_opts[] = {
	PAUSE_SCOPE_OPTS,
	{"until", 0, "TIME", "pause again at this time, or after a duration: 2h"},
	PAUSE_REASON_OPT,
	{},
};
static const struct opt thaw_opts[] = {
	PAUSE_REASON_OPT,
	{},
};
static const struct opt freeze_opts[] = {
	{"except", 0, "TAG", "jobs with this tag still start; KEY=VALUE, or KEY for any value"},
	PAUSE_TERM_OPTS,
	{},
};
static const struct opt run_opts[] = {
	{"param", 'p', "NAME=VALUE", "value of a parameter for this run; repeatable"},
	{"force", 0, NULL, "run although the job is paused, and beside its other runs"},
	{"as-scheduled", 0, NULL, "treat the run as a slot of the schedule: pauses and jitter apply"},
	{"wait", 'w', NULL, "wait for the end of the run; exit as 'jobctl wait'"},
	{"follow", 'f', NULL, "show the output while it runs; exit as with --wait"},
	{"propagate", 0, NULL, "with --wait or --follow: exit with the exit code of the command"},
	{"yes", 'y', NULL, "with --param: approve without asking, if a warrant is required"},
	{},
};
static const struct opt rm_opts[] = {
	{"yes", 'y', NULL, "do not ask for confirmation"},
	{},
};
static const struct opt runs_opts[] = {
	{"state", 's', "STATE", "only runs in this state; repeatable or comma-separated"},
	{"failed", 0, NULL, "only runs that failed, timed out or were lost"},
	{"owner", 0, "USER", "only runs of this user's jobs"},
	{"tag", 't', "KEY=VALUE", "only runs of jobs with this tag"},
	{"result", 0, "KEY=VALUE", "only runs with this result"},
	{"planned", 0, NULL, "include queued runs whose slot is in the future"},
	{"since", 0, "TIME",
		"only runs with a slot at or after this time: 2h, yesterday, 2026-11-16"},
	{"until", 0, "TIME", "only runs with a slot before this time"},
	{"archived", 0, NULL, "search the archive instead of the store, oldest first"},
	{"limit", 'n', "N", "at most N (100); 0: all"},
	{"cursor", 0, "CURSOR", "continue after an earlier page"},
	{},
};
static const struct opt log_opts[] = {
	{"follow", 'f', NULL, "continue until the run has ended"},
	{"lines", 'n', "N", "only the last N lines of the output so far"},
	{"attempt", 0, "N", "output of attempt N instead of the newest"},
	{"raw", 0, NULL, "do not escape control characters on a terminal"},
	{"archived", 0, NULL, "search the run in the archive"},
	{},
};
static const struct opt why_opts[] = {
	{"at", 0, "TIME",
		"the slot at this time: 2026-11-16T09:00:00Z, 'yesterday 03:00', 2h (ago)"},
	{"limit", 'n', "N", "number of past slots (10)"},
	{},
};
static const struct opt events_opts[] = {
	{"follow", 'f', NULL, "continue with new events and the ends of runs"},
	{"what", 0, "WORD",
		"only these events, as job.cancel or job (all of jobs); repeatable or comma-separated"},
	{"since", 0, "TIME", "only events at or after this time"},
	{"until", 0, "TIME", "only events before this time"},
	{"limit", 'n', "N", "the newest N events (100; with -f 10); 0: all"},
	{},
};
static const struct opt next_opts[] = {
	WHEN_OPTS,
	{"tz", 0, "ZONE", "time zone of the schedule (yours)"},
	{"from", 0, "TIME", "slots after this time, as 'tomorrow 9am' (now)"},
	{"count", 'n', "N", "number of slots (10)"},
	{"id", 0, "NAME", "name that H is hashed from, normally that of the job"},
	{"dst-gap", 0, "POLICY", "fixed times that the clock skips: after or skip"},
	{"dst-fold", 0, "POLICY", "fixed times that occur twice: first, last or both"},
	{"batch", 0, NULL,
		"read lines of tab-separated schedule, zone, from, count and id; print one line each"},
	{},
};
static const struct opt explain_opts[] = {
	WHEN_OPTS,
	{"tz", 0, "ZONE", "time zone of the schedule (yours)"},
	{"from", 0, "TIME", "as if submitted at this time (now)"},
	{"id", 0, "NAME", "name that H is hashed from, normally that of the job"},
	{"dst-gap", 0, "POLICY", "fixed times that the clock skips: after or skip"},
	{"dst-fold", 0, "POLICY", "fixed times that occur twice: first, last or both"},
	{},
};
static const struct opt import_crontab_opts[] = {
	{"user", 0, "USER", "import the crontab of this user (yours)"},
	{"system", 0, NULL, "import /etc/crontab and the tables in /etc/cron.d"},
	{"table", 0, "user|system", "kind of FILE; a system table has a user in each entry (user)"},
	{"users", 0, "FILE", "account names to check against, one per line, instead of the system's"},
	{"mode", 0, "debian|cronie|strict", "how the table is read (debian)"},
	{"dry-run", 0, NULL, "add nothing; show what each line becomes, its next times and findings"},
	{"format", 0, "text|json", "json: one object per line, and nothing is added (text)"},
	{"paused", 0, NULL, "add the jobs paused, until 'jobctl resume'"},
	APPROVE_OPT,
	{},
};
static const struct opt simulate_opts[] = {
	{"days", 0, "N", "number of days (30), today included"},
	{"from", 0, "TIME", "begin at this time, as 'tomorrow' (now)"},
	{"tz", 0, "ZONE", "time zone in which days begin (yours)"},
	{"as", 0, "FORM", "table, calendar or json (table)"},
	{"owner", 0, "USER", "only jobs of this user"},
	{"assume", 0, "DURATION", "duration of jobs that have no successful run yet (1s)"},
	{"limit", 0, "N", "at most N jobs (20000)"},
	{},
};
static const struct opt shell_opts[] = {
	{"quiet", 'q', NULL, "do not report what is not applied"},
	{},
};
static const struct opt env_diff_opts[] = {
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{},
};
static const struct opt top_opts[] = {
	{"view", 0, "VIEW", "begin with jobs, runs, queues or nodes (jobs)"},
	{"batch", 'b', NULL, "print lines instead of drawing a screen"},
	{"updates", 'n', "N", "with -b: end after N updates"},
	{"delay", 'd', "SECONDS", "with -b: time between two updates (2)"},
	{},
};
static const struct opt wait_opts[] = {
	{"timeout", 0, "DURATION", "give up after this time, with exit code 8"},
	{"propagate", 0, NULL, "exit with the exit code of the first command that failed"},
	{},
};

static const struct opt notices_opts[] = {
	{"failed", 0, NULL, "only notices that could not be sent"},
	{"limit", 'n', "N", "at most N notices (50); 0: all"},
	{},
};
static const struct opt queue_opts[] = {
	{"running", 0, "N", "running runs of the queue; 'none': no limit"},
	{"weight", 0, "W", "share of starts while several queues have due runs (100)"},
	{"rate", 0, "N/DURATION[:BURST]", "limit of starts, as 10/1m; 'none': no limit"},
	{},
};
static const struct opt limit_opts[] = {
	{"running", 0, "N", "running runs of the owner; 'none': no limit"},
	{"rate", 0, "N/DURATION[:BURST]", "limit of starts, as 10/1m; 'none': no limit"},
	{},
};

#define DEAD_TIMES \
	{"job", 'j', "JOB", "dead letters of this job; repeatable"}, \
	{"since", 0, "TIME", "only those since this time"}, \
	{"until", 0, "TIME", "only those before this time"}
static const struct opt dead_list_opts[] = {
	DEAD_TIMES,
	{"limit", 'n', "N", "at most N (100); 0: all"},
	{"cursor", 0, "CURSOR", "continue after an earlier page"},
	{},
};
static const struct opt dead_retry_opts[] = {
	DEAD_TIMES,
	{"all", 'a', NULL, "every dead letter"},
	{},
};
static const struct opt dead_purge_opts[] = {
	DEAD_TIMES,
	{"all", 'a', NULL, "every dead letter"},
	{"yes", 'y', NULL, "do not ask for confirmation"},
	{},
};
static const struct opt db_prune_opts[] = {
	{"older-than", 0, "DURATION", "delete history older than this, instead of keep-days"},
	{"keep-runs", 0, "N",
		"keep the newest N runs of each job that has not ended, instead of keep-runs"},
	{"dead-older-than", 0, "DURATION",
		"delete dead letters older than this, instead of keep-dead-days"},
	{"yes", 'y', NULL, "do not ask for confirmation"},
	{},
};
static const struct opt db_backup_opts[] = {
	{"force", 0, NULL, "overwrite an existing file"},
	{},
};
static const struct opt db_restore_opts[] = {
	{"from-now", 0, NULL, "skip slots missed so far"},
	{"yes", 'y', NULL, "do not ask for confirmation"},
	{},
};

static const struct opt export_opts[] = {
	{"format", 0, "json|jsonl|crontab", "json: one document; jsonl: one line per job (json)"},
	{"owner", 0, "USER", "export the jobs of this user instead of yours"},
	{"reveal", 0, NULL, "write values of variables that look like secrets"},
	{},
};
#define SET_OPTS \
	{"file", 'f', "FILE|DIR", "the definitions; required"}, \
	{"set", 0, "NAME", "name of the set (the absolute path)"}, \
	{"owner", 0, "USER", "the jobs belong to this user; administrators only"}
static const struct opt apply_opts[] = {
	SET_OPTS,
	{"dry-run", 0, NULL, "change nothing; show what would be done"},
	{"prune", 0, NULL, "remove jobs of the set that the files no longer contain"},
	{"adopt", 0, NULL, "jobs that exist already become members of the set"},
	{"yes", 'y', NULL, "with --prune: do not ask for confirmation"},
	{},
};
static const struct opt diff_opts[] = {
	SET_OPTS,
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{},
};

static const struct opt token_add_opts[] = {
	{"role", 0, "ROLE", "viewer (the default), operator or admin"},
	{"owner", 0, "USER", "act for this user; for administrators"},
	{"scope", 0, "VERBS", "permit only these verbs, separated by commas"},
	{"expires", 0, "DURATION", "the token is valid for this long; default: until it is revoked"},
	{"all", 0, NULL, "a viewer sees the jobs of all users; for administrators"},
	{},
};
static const struct opt web_opts[] = {
	{"role", 0, "ROLE", "viewer (the default), operator or admin"},
	{"port", 0, "PORT", "port on 127.0.0.1; default: any"},
	{"no-browser", 0, NULL, "only print the URL"},
	{},
};
static const struct opt context_add_opts[] = {
	{"url", 0, "URL", "https://HOST:PORT of the daemon"},
	{"token-file", 0, "FILE", "file with a token, readable only by you"},
	{"ca-file", 0, "FILE", "certificate authorities; default: those of the system"},
	{},
};

const struct verb verbs[] = {
	{.name = "add", .group = "Submit and change jobs", .operands = "[--] COMMAND [ARG…]",
		.help = "add a job", .details = verb_details_add, .opts = add_opts,
		.job_fields = true, .command = true, .max = -1, .formats = FORMATS_ALL,
		.run = verb_add},
	{.name = "set", .operands = "JOB KEY=VALUE… [-- COMMAND [ARG…]]",
		.help = "change a job", .details = verb_details_set, .opts = set_opts,
		.command = true, .min = 2, .max = -1, .formats = FORMATS_OBJECT,
		.run = verb_set},
	{.name = "edit", .operands = "JOB", .help = "change a job in an editor",
		.details = verb_details_edit, .opts = edit_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_edit},
	{.name = "undo", .operands = "JOB", .help = "undo the last change of a job",
		.details = verb_details_undo, .opts = undo_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_undo},
	{.name = "history", .operands = "JOB",
		.help = "list the revisions of a job and their authors", .opts = history_opts,
		.min = 1, .max = 1, .formats = FORMATS_ALL, .run = verb_history},
	{.name = "approve", .operands = "JOB…", .help = "approve what jobs start",
		.details = verb_details_approve, .opts = edit_opts, .min = 1, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_approve},
	{.name = "rm", .operands = "JOB…",
		.help = "remove jobs; their history is kept for a while", .opts = rm_opts,
		.min = 1, .max = -1, .formats = FORMATS_OBJECT, .run = verb_rm},
	{.name = "export", .group = "Definitions in files", .operands = "[PATTERN…]",
		.help = "write the definitions of jobs", .details = verb_details_export,
		.opts = export_opts, .max = -1, .formats = FORMATS_TEXT, .run = verb_export},
	{.name = "apply", .help = "make jobs match the definitions in files",
		.details = verb_details_apply, .opts = apply_opts, .formats = FORMATS_OBJECT,
		.run = verb_apply},
	{.name = "diff", .help = "show the differences between files and jobs",
		.details = verb_details_diff, .opts = diff_opts, .formats = FORMATS_OBJECT,
		.run = verb_diff},
	{.name = "run", .group = "Control jobs and runs", .operands = "JOB",
		.help = "run a job now", .details = verb_details_run, .opts = run_opts, .min = 1,
		.max = 1, .formats = FORMATS_ALL, .run = verb_run},
	{.name = "wait", .operands = "JOB|RUN…", .help = "wait until runs have ended",
		.details = verb_details_wait, .opts = wait_opts, .min = 1, .max = -1,
		.formats = FORMATS_ALL, .run = verb_wait},
	{.name = "pause", .operands = "[JOB…]",
		.help = "skip the slots of jobs until they are resumed",
		.details = verb_details_pause, .opts = pause_opts, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_pause},
	{.name = "resume", .operands = "[JOB…]",
		.help = "end a pause, or reactivate a cancelled job", .details = verb_details_resume,
		.opts = resume_opts, .max = -1, .formats = FORMATS_OBJECT, .run = verb_resume},
	{.name = "cancel", .operands = "JOB|RUN…",
		.help = "stop a job's schedule, or end a run", .details = verb_details_cancel,
		.opts = cancel_opts, .min = 1, .max = -1, .formats = FORMATS_OBJECT,
		.run = verb_cancel},
	{.name = "list", .group = "Inspect jobs and runs", .operands = "[PATTERN…]",
		.help = "list jobs", .details = verb_details_list, .opts = list_opts, .max = -1,
		.formats = FORMATS_ALL, .run = verb_list},
	{.name = "show", .operands = "JOB|RUN", .help = "show a job or run in detail",
		.opts = show_opts, .min = 1, .max = 1, .formats = FORMATS_ALL, .run = verb_show},
	{.name = "runs", .operands = "[JOB|RUN…]", .help = "list runs, newest first",
		.opts = runs_opts, .max = -1, .formats = FORMATS_ALL, .run = verb_runs},
	{.name = "log", .operands = "JOB|RUN", .help = "show the output of a run",
		.details = verb_details_log, .opts = log_opts, .min = 1, .max = 1,
		.formats = FORMATS_TEXT, .run = verb_log},
	{.name = "why", .operands = "JOB|RUN",
		.help = "explain why a job ran, did not run, or will not run",
		.details = verb_details_why, .opts = why_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_why},
	{.name = "events", .operands = "[JOB|RUN…]", .help = "show the audit trail",
		.details = verb_details_events, .opts = events_opts, .max = -1,
		.formats = FORMATS_ALL, .run = verb_events},
	{.name = "progress", .operands = "[PERCENT] [TEXT…]",
		.help = "report progress or a sign of life, from inside a job", .details = verb_details_progress,
		.max = -1, .formats = FORMATS_TEXT, .run = verb_progress},
	{.name = "shell", .operands = "JOB [-- COMMAND [ARG…]]",
		.help = "start a shell or command with the environment of a job",
		.details = verb_details_shell, .opts = shell_opts, .command = true, .min = 1, .max = -1,
		.formats = FORMATS_TEXT, .run = verb_shell},
	{.name = "env-diff", .operands = "JOB",
		.help = "compare the environment of a job with that of this shell",
		.details = verb_details_env_diff, .opts = env_diff_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_env_diff},
	{.name = "top", .help = "show jobs, runs, queues and nodes on a screen that is updated",
		.details = verb_details_top, .opts = top_opts, .formats = FORMATS_ALL, .run = verb_top},
	{.name = "next", .group = "Schedules", .operands = "[JOB | -- SCHEDULE]",
		.help = "show the next slots of a job or schedule", .details = verb_details_next,
		.opts = next_opts, .max = -1, .formats = FORMATS_ALL, .run = verb_next},
	{.name = "explain", .operands = "[SCHEDULE]",
		.help = "explain a schedule in plain English", .details = verb_details_explain,
		.opts = explain_opts, .max = -1, .formats = FORMATS_OBJECT, .run = verb_explain},
	{.name = "import crontab", .operands = "[FILE]",
		.help = "add the entries of a crontab as jobs",
		.details = verb_details_import_crontab, .opts = import_crontab_opts, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_import_crontab},
	{.name = "simulate", .operands = "[PATTERN]",
		.help = "show what will run in the next days, with overlaps and peaks",
		.details = verb_details_simulate, .opts = simulate_opts, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_simulate},
	{.name = "dead list", .group = "Failed runs and notices", .operands = "[JOB…]",
		.help = "list runs that failed permanently", .details = verb_details_dead,
		.opts = dead_list_opts, .bare = true, .max = -1, .formats = FORMATS_ALL,
		.run = verb_dead_list},
	{.name = "dead show", .operands = "RUN", .help = "show a dead letter",
		.opts = show_opts, .min = 1, .max = 1, .formats = FORMATS_ALL,
		.run = verb_dead_show},
	{.name = "dead retry", .operands = "[RUN|JOB…]", .help = "retry dead letters",
		.details = verb_details_dead, .opts = dead_retry_opts, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_dead_retry},
	{.name = "dead purge", .operands = "[RUN|JOB…]",
		.help = "remove runs from the dead letters", .details = verb_details_dead,
		.opts = dead_purge_opts, .max = -1, .formats = FORMATS_OBJECT,
		.run = verb_dead_purge},
	{.name = "notices list", .operands = "[JOB]", .help = "list sent and failed notices",
		.opts = notices_opts, .bare = true, .max = 1, .formats = FORMATS_ALL,
		.run = verb_notices_list},
	{.name = "notices test", .operands = "JOB",
		.help = "send a test notice to all channels of a job", .min = 1, .max = 1,
		.formats = FORMATS_ALL, .run = verb_notices_test},
	{.name = "template list", .group = "Templates",
		.help = "list your templates and those shared by root", .bare = true,
		.formats = FORMATS_ALL, .run = verb_template_list},
	{.name = "template add", .operands = "NAME -- COMMAND [ARG…]",
		.help = "add or replace a job template", .details = verb_details_template_add,
		.opts = template_add_opts, .job_fields = true, .min = 1, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_template_add},
	{.name = "template show", .operands = "NAME", .help = "show a template",
		.opts = template_show_opts, .min = 1, .max = 1, .formats = FORMATS_OBJECT,
		.run = verb_template_show},
	{.name = "template rm", .operands = "NAME…",
		.help = "remove templates; existing jobs are kept", .min = 1, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_template_rm},
	{.name = "queue list", .group = "Queues and limits",
		.help = "list queues with their limits and runs", .bare = true,
		.formats = FORMATS_ALL, .run = verb_queue_list},
	{.name = "queue add", .operands = "NAME", .help = "add a queue", .opts = queue_opts,
		.min = 1, .max = 1, .formats = FORMATS_OBJECT, .run = verb_queue_add},
	{.name = "queue set", .operands = "NAME", .help = "change the limits of a queue",
		.opts = queue_opts, .min = 1, .max = 1, .formats = FORMATS_OBJECT,
		.run = verb_queue_set},
	{.name = "queue rm", .operands = "NAME…", .help = "remove unused queues", .min = 1,
		.max = -1, .formats = FORMATS_OBJECT, .run = verb_queue_rm},
	{.name = "limit list", .help = "list owners that have limits", .bare = true,
		.formats = FORMATS_ALL, .run = verb_limit_list},
	{.name = "limit set", .operands = "OWNER", .help = "set the limits of an owner",
		.opts = limit_opts, .min = 1, .max = 1, .formats = FORMATS_OBJECT,
		.run = verb_limit_set},
	{.name = "limit rm", .operands = "OWNER…", .help = "remove the limits of owners",
		.min = 1, .max = -1, .formats = FORMATS_OBJECT, .run = verb_limit_rm},
	{.name = "status", .group = "Administration", .help = "show the state of the daemon",
		.formats = FORMATS_OBJECT, .run = verb_status},
	{.name = "doctor", .operands = "[CHECK…]",
		.help = "find faults of the installation and commands that mend them",
		.details = verb_details_doctor, .max = -1, .formats = FORMATS_OBJECT,
		.run = verb_doctor},
	{.name = "freeze", .help = "start nothing until 'jobctl thaw'",
		.details = verb_details_freeze, .opts = freeze_opts, .formats = FORMATS_OBJECT,
		.run = verb_freeze},
	{.name = "thaw", .help = "end the freeze", .opts = thaw_opts, .formats = FORMATS_OBJECT,
		.run = verb_thaw},
	{.name = "cron status", .bare = true, .help = "show the crontabs of this machine and whether their jobs run",
		.formats = FORMATS_OBJECT, .run = verb_cron_status},
	{.name = "cron compare", .help = "compare what cron has run with the slots of these jobs",
		.details = verb_details_cron_compare, .opts = cron_compare_opts, .formats = FORMATS_OBJECT, .run = verb_cron_compare},
	{.name = "cron takeover", .help = "stop cron and let jobschedd run the crontabs",
		.details = verb_details_cron_takeover, .opts = cron_takeover_opts, .formats = FORMATS_TEXT, .run = verb_cron_takeover},
	{.name = "cron give-back", .help = "start cron again and undo the takeover",
		.opts = cron_takeover_opts, .formats = FORMATS_TEXT, .run = verb_cron_give_back},
	{.name = "nodes", .help = "list the nodes that share the store", .formats = FORMATS_ALL,
		.run = verb_nodes},
	{.name = "node drain", .operands = "NODE",
		.help = "start no new runs on a node; running ones continue", .min = 1,
		.max = 1, .formats = FORMATS_OBJECT, .run = verb_node_drain},
	{.name = "node undrain", .operands = "NODE", .help = "let a node start runs again",
		.min = 1, .max = 1, .formats = FORMATS_OBJECT, .run = verb_node_undrain},
	{.name = "node resign", .operands = "NODE",
		.help = "make the leader hand over to another node", .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_node_resign},
	{.name = "db prune", .help = "delete old history now", .opts = db_prune_opts,
		.formats = FORMATS_OBJECT, .run = verb_db_prune},
	{.name = "token add", .operands = "NAME", .help = "create a token for the API over TCP",
		.details = verb_details_token, .opts = token_add_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_token_add},
	{.name = "token list", .bare = true, .help = "list tokens and sessions",
		.formats = FORMATS_ALL, .run = verb_token_list},
	{.name = "token revoke", .operands = "TOKEN…", .help = "revoke tokens and end their sessions",
		.min = 1, .max = -1, .formats = FORMATS_TEXT, .run = verb_token_revoke},
	{.name = "web", .help = "open the page of the daemon in the browser", .details = verb_details_web,
		.opts = web_opts, .formats = FORMATS_TEXT, .run = verb_web},
	{.name = "context add", .operands = "NAME", .help = "name a daemon over TCP",
		.opts = context_add_opts, .min = 1, .max = 1, .formats = FORMATS_TEXT,
		.run = verb_context_add},
	{.name = "context use", .operands = "NAME|none",
		.help = "use a context for the next commands, or none", .min = 1, .max = 1,
		.formats = FORMATS_TEXT, .run = verb_context_use},
	{.name = "context list", .bare = true, .help = "list the contexts",
		.formats = FORMATS_ALL, .run = verb_context_list},
	{.name = "context rm", .operands = "NAME", .help = "remove a context", .min = 1, .max = 1,
		.formats = FORMATS_TEXT, .run = verb_context_rm},
	{.name = "db backup", .operands = "FILE", .help = "write a copy of the store to a file",
		.opts = db_backup_opts, .min = 1, .max = 1, .formats = FORMATS_TEXT,
		.run = verb_db_backup},
	{.name = "db check", .help = "check the integrity of the store",
		.formats = FORMATS_OBJECT, .run = verb_db_check},
	{.name = "db restore", .operands = "FILE", .help = "replace the store by a backup",
		.details = verb_details_restore, .opts = db_restore_opts, .min = 1, .max = 1,
		.formats = FORMATS_TEXT, .run = verb_db_restore},
	{.name = "help", .group = "Help", .operands = "[VERB]", .help = "show help", .max = 2,
		.formats = FORMATS_TEXT, .run = verb_help},
	{.name = "completion", .operands = "bash|zsh|fish",
		.help = "print a completion script for a shell", .details = verb_details_completion,
		.min = 1, .max = 1, .formats = FORMATS_TEXT, .run = verb_completion},
	{.name = "__complete", .operands = "line|words …", .help = "candidates for a shell",
		.hidden = true, .command = true, .min = 1, .max = -1, .formats = FORMATS_TEXT,
		.run = verb_complete},
	{.name = "version", .help = "show the versions of jobctl and the daemon",
		.formats = FORMATS_OBJECT, .run = verb_version},
	{},
};
