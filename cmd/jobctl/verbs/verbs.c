/* SPDX-License-Identifier: Apache-2.0 */
/* Table of all verbs with their options, in the order of the help. */
#include "jobctl/verbs/verbs.h"

#include "base/auto.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "jobctl/ctl.h"
#include "jobctl/spec/when_args.h"

#define FORMATS_TEXT (1u << FORMAT_TABLE | 1u << FORMAT_WIDE)
#define FORMATS_OBJECT (FORMATS_TEXT | 1u << FORMAT_JSON | 1u << FORMAT_JSONL)
#define FORMATS_ALL ((1u << FORMAT_MAX) - 1)

static const char add_details[] =
	"Without a time the job runs now. A command of several words is run directly, without\n"
	"a shell. A single word with blanks, pipes or other shell syntax is run by /bin/sh.\n"
	"Without a command, standard input is read as a script for /bin/sh, or for the program\n"
	"in its first line '#!PROGRAM'.\n"
	"The command starts in the current directory with a clean environment, which\n"
	"'jobctl show --env JOB' prints.\n";
static const char set_details[] =
	"KEY is an option of 'jobctl add' without its dashes: priority=5, timeout=1h,\n"
	"cron='0 2 * * *', every=15m. 'KEY=' restores the default. env.NAME=, tag.KEY= and\n"
	"param.NAME= change single members. A new command follows '--'. Options stand before\n"
	"JOB. Running runs keep their definition; waiting runs use the new one. A new schedule\n"
	"starts no run by itself.\n";
static const char edit_details[] =
	"The definition is opened in $VISUAL, $EDITOR or vi as lines 'key = value'. If it is not\n"
	"valid, it is opened again with the error at its top.\n";
static const char approve_details[] =
	"Jobs of root, and with 'require-warrant = all' the jobs of all users, start only if root\n"
	"or the owner has approved them at the spawner. 'add', 'set', 'edit' and 'run --param'\n"
	"request the approval themselves. 'approve' is for a job without a valid approval: after a\n"
	"change of warrant.key, after a restore of the store, or after an upgrade from a version\n"
	"whose approvals do not include the name. It shows the job and asks for confirmation.\n";
static const char undo_details[] =
	"Each undo goes back one more step and creates a revision of its own. 'undo --to N' goes\n"
	"back to revision N.\n";
static const char template_add_details[] =
	"--param NAME is required for each job that uses the template; --param NAME=VALUE has a\n"
	"default. {NAME} in a word of the command is replaced by the value; {{ is a literal\n"
	"brace. A script gets the value only as $JOBSCHED_PARAM_NAME.\n";
static const char list_details[] =
	"PATTERN is a number, a name, or a name with '*' and '?', quoted for the shell. Finished\n"
	"and cancelled jobs are listed only with a pattern, --state or --all.\n";
static const char cancel_details[] =
	"A cancelled job has no more slots, and its queued runs are cancelled. Running runs\n"
	"continue unless --running is given. A run that is cancelled gets SIGTERM, and SIGKILL\n"
	"after its grace period. 'jobctl resume JOB' reactivates a cancelled job.\n";
static const char pause_details[] =
	"The slots of a paused job are recorded as skipped. A run that cannot be skipped (of a job\n"
	"without further slots, a retry, a boot) waits for 'jobctl resume'. Running runs are not\n"
	"affected. --all and --tag apply to your own jobs. Those of an administrator apply to the\n"
	"jobs of all users unless --owner is given. TIME is as for 'jobctl add --at', or a\n"
	"duration.\n";
static const char resume_details[] =
	"Ends the pause that 'jobctl pause' set with the same jobs or options. A job that was\n"
	"paused by name must be resumed by name. A suspended job is checked again and becomes\n"
	"active if the cause is gone. A cancelled job becomes active. Only administrators can end\n"
	"a pause that an administrator set.\n"
	"With --until the pause begins again at TIME, without an end; slots before TIME run. It\n"
	"keeps its reason unless --reason is given.\n";
static const char freeze_details[] =
	"For administrators. No run of any user starts, except runs of jobs with the tag given by\n"
	"--except.\n";
static const char run_details[] =
	"The run follows the overlap policy of the job. A paused job is not run without --force.\n"
	"--force also starts the run beside other runs of the job. During a freeze, or a pause\n"
	"that an administrator set, only administrators can use --force.\n"
	"The exit codes are those of 'jobctl wait'.\n";
static const char log_details[] =
	"For a job, shows the newest run that has started. With -f, waits for a run that has not\n"
	"started yet.\n";
static const char wait_details[] =
	"For a job, waits for its unfinished runs; if there are none, for its next run; if there\n"
	"is no next run, its last run counts. The exit code is that of the first run that did not\n"
	"succeed: 10 failed, 11 cancelled, 12 skipped or never ran, 13 timed out. It is 8 if\n"
	"--timeout has passed.\n";

static const char why_details[] =
	"For a job: the reason why it waits, its next slots, and the results of its last slots.\n"
	"For a run: its result. Each reason is followed by the command to type next. With --at:\n"
	"the result of the slot at that time, or the slots before and after it.\n";
static const char events_details[] =
	"Who did what to which object, from where and with which result. Users see the events of\n"
	"their own jobs and their own actions; administrators see all. With -f the list continues\n"
	"until interrupted and includes the ends of runs, as run.end.\n";

static const char next_details[] =
	"JOB is a number or a name. A schedule is given by an option or after '--', and needs no\n"
	"daemon. On a terminal the local time is shown first; otherwise there is one RFC 3339 time\n"
	"per line. -o wide shows the days on which the clock changes. See jobsched-time(7) for the\n"
	"syntax of schedules.\n";
static const char explain_details[] =
	"Probable mistakes in the schedule are reported on standard error, each with a code.\n";

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
	{"sort", 0, "KEY", "sort by next (slot), name or last (run) instead of number"},
	{"limit", 0, "N", "at most N jobs"},
	{"cursor", 0, "CURSOR", "continue after an earlier page"},
	{"watch", 0, NULL, "repeat every two seconds until interrupted"},
	{},
};
static const struct opt show_opts[] = {
	{"env", 0, NULL, "print the environment of its command, one NAME=VALUE per line"},
	{"sandbox", 0, NULL, "describe its sandbox profile on this machine"},
	{"as-command", 0, NULL, "print a 'jobctl add' command that creates such a job"},
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
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
	{"planned", 0, NULL, "include queued runs whose slot is in the future"},
	{"since", 0, "TIME",
		"only runs with a slot at or after this time: 2h, yesterday, 2026-11-16"},
	{"until", 0, "TIME", "only runs with a slot before this time"},
	{"limit", 'n', "N", "at most N (100); 0: all"},
	{"cursor", 0, "CURSOR", "continue after an earlier page"},
	{},
};
static const struct opt log_opts[] = {
	{"follow", 'f', NULL, "continue until the run has ended"},
	{"lines", 'n', "N", "only the last N lines of the output so far"},
	{"attempt", 0, "N", "output of attempt N instead of the newest"},
	{"raw", 0, NULL, "do not escape control characters on a terminal"},
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

static const char dead_details[] =
	"A dead letter is a run whose retries are used up, or whose exit code is declared 'dead'\n"
	"by --on-exit. A job selects all its dead letters, --all those of every job. --since and\n"
	"--until select by the time at which a run became a dead letter. A run that is retried has\n"
	"all its retries again. A run that is purged stays in the history with its result.\n";
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
static const char restore_details[] =
	"The daemon must be stopped. Runs that were running when the backup was made are recorded\n"
	"as lost and are not run again. Slots between the backup and now are caught up according\n"
	"to --catchup of each job, or skipped with --from-now. The present store is kept beside\n"
	"the restored one.\n";
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

const struct verb verbs[] = {
	{.name = "add", .group = "Submit and change jobs", .operands = "[--] COMMAND [ARG…]",
		.help = "add a job", .details = add_details, .opts = add_opts,
		.job_fields = true, .command = true, .max = -1, .formats = FORMATS_ALL,
		.run = verb_add},
	{.name = "set", .operands = "JOB KEY=VALUE… [-- COMMAND [ARG…]]",
		.help = "change a job", .details = set_details, .opts = set_opts,
		.command = true, .min = 2, .max = -1, .formats = FORMATS_OBJECT,
		.run = verb_set},
	{.name = "edit", .operands = "JOB", .help = "change a job in an editor",
		.details = edit_details, .opts = edit_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_edit},
	{.name = "undo", .operands = "JOB", .help = "undo the last change of a job",
		.details = undo_details, .opts = undo_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_undo},
	{.name = "history", .operands = "JOB",
		.help = "list the revisions of a job and their authors", .opts = history_opts,
		.min = 1, .max = 1, .formats = FORMATS_ALL, .run = verb_history},
	{.name = "approve", .operands = "JOB…", .help = "approve what jobs start",
		.details = approve_details, .opts = edit_opts, .min = 1, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_approve},
	{.name = "rm", .operands = "JOB…",
		.help = "remove jobs; their history is kept for a while", .opts = rm_opts,
		.min = 1, .max = -1, .formats = FORMATS_OBJECT, .run = verb_rm},
	{.name = "run", .group = "Control jobs and runs", .operands = "JOB",
		.help = "run a job now", .details = run_details, .opts = run_opts, .min = 1,
		.max = 1, .formats = FORMATS_ALL, .run = verb_run},
	{.name = "wait", .operands = "JOB|RUN…", .help = "wait until runs have ended",
		.details = wait_details, .opts = wait_opts, .min = 1, .max = -1,
		.formats = FORMATS_ALL, .run = verb_wait},
	{.name = "pause", .operands = "[JOB…]",
		.help = "skip the slots of jobs until they are resumed",
		.details = pause_details, .opts = pause_opts, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_pause},
	{.name = "resume", .operands = "[JOB…]",
		.help = "end a pause, or reactivate a cancelled job", .details = resume_details,
		.opts = resume_opts, .max = -1, .formats = FORMATS_OBJECT, .run = verb_resume},
	{.name = "cancel", .operands = "JOB|RUN…",
		.help = "stop a job's schedule, or end a run", .details = cancel_details,
		.opts = cancel_opts, .min = 1, .max = -1, .formats = FORMATS_OBJECT,
		.run = verb_cancel},
	{.name = "list", .group = "Inspect jobs and runs", .operands = "[PATTERN…]",
		.help = "list jobs", .details = list_details, .opts = list_opts, .max = -1,
		.formats = FORMATS_ALL, .run = verb_list},
	{.name = "show", .operands = "JOB|RUN", .help = "show a job or run in detail",
		.opts = show_opts, .min = 1, .max = 1, .formats = FORMATS_ALL, .run = verb_show},
	{.name = "runs", .operands = "[JOB|RUN…]", .help = "list runs, newest first",
		.opts = runs_opts, .max = -1, .formats = FORMATS_ALL, .run = verb_runs},
	{.name = "log", .operands = "JOB|RUN", .help = "show the output of a run",
		.details = log_details, .opts = log_opts, .min = 1, .max = 1,
		.formats = FORMATS_TEXT, .run = verb_log},
	{.name = "why", .operands = "JOB|RUN",
		.help = "explain why a job ran, did not run, or will not run",
		.details = why_details, .opts = why_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_why},
	{.name = "events", .operands = "[JOB|RUN…]", .help = "show the audit trail",
		.details = events_details, .opts = events_opts, .max = -1,
		.formats = FORMATS_ALL, .run = verb_events},
	{.name = "next", .group = "Schedules", .operands = "[JOB | -- SCHEDULE]",
		.help = "show the next slots of a job or schedule", .details = next_details,
		.opts = next_opts, .max = -1, .formats = FORMATS_ALL, .run = verb_next},
	{.name = "explain", .operands = "[SCHEDULE]",
		.help = "explain a schedule in plain English", .details = explain_details,
		.opts = explain_opts, .max = -1, .formats = FORMATS_OBJECT, .run = verb_explain},
	{.name = "dead list", .group = "Failed runs and notices", .operands = "[JOB…]",
		.help = "list runs that failed permanently", .details = dead_details,
		.opts = dead_list_opts, .bare = true, .max = -1, .formats = FORMATS_ALL,
		.run = verb_dead_list},
	{.name = "dead show", .operands = "RUN", .help = "show a dead letter",
		.opts = show_opts, .min = 1, .max = 1, .formats = FORMATS_ALL,
		.run = verb_dead_show},
	{.name = "dead retry", .operands = "[RUN|JOB…]", .help = "retry dead letters",
		.details = dead_details, .opts = dead_retry_opts, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_dead_retry},
	{.name = "dead purge", .operands = "[RUN|JOB…]",
		.help = "remove runs from the dead letters", .details = dead_details,
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
		.help = "add or replace a job template", .details = template_add_details,
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
	{.name = "freeze", .help = "start nothing until 'jobctl thaw'",
		.details = freeze_details, .opts = freeze_opts, .formats = FORMATS_OBJECT,
		.run = verb_freeze},
	{.name = "thaw", .help = "end the freeze", .opts = thaw_opts, .formats = FORMATS_OBJECT,
		.run = verb_thaw},
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
	{.name = "db backup", .operands = "FILE", .help = "write a copy of the store to a file",
		.opts = db_backup_opts, .min = 1, .max = 1, .formats = FORMATS_TEXT,
		.run = verb_db_backup},
	{.name = "db check", .help = "check the integrity of the store",
		.formats = FORMATS_OBJECT, .run = verb_db_check},
	{.name = "db restore", .operands = "FILE", .help = "replace the store by a backup",
		.details = restore_details, .opts = db_restore_opts, .min = 1, .max = 1,
		.formats = FORMATS_TEXT, .run = verb_db_restore},
	{.name = "help", .group = "Help", .operands = "[VERB]", .help = "show help", .max = 2,
		.formats = FORMATS_TEXT, .run = verb_help},
	{.name = "version", .help = "show the versions of jobctl and the daemon",
		.formats = FORMATS_OBJECT, .run = verb_version},
	{},
};
