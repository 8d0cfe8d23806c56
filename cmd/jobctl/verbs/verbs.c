/* SPDX-License-Identifier: Apache-2.0 */
/* Every verb of jobctl, with its options, in the order of the help. */
#include "jobctl/verbs/verbs.h"

#include "base/auto.h"
#include "core/job/job.h"
#include "jobctl/ctl.h"
#include "jobctl/spec/when_args.h"

#define FORMATS_TEXT (1u << FORMAT_TABLE | 1u << FORMAT_WIDE)
#define FORMATS_OBJECT (FORMATS_TEXT | 1u << FORMAT_JSON | 1u << FORMAT_JSONL)
#define FORMATS_ALL ((1u << FORMAT_MAX) - 1)

static const char add_details[] =
	"Without a time the job runs now. Several words are run as they are, without a shell;\n"
	"one word with blanks, pipes or other shell syntax is run by /bin/sh. Without a\n"
	"command, standard input is read as such a script; a first line '#!PROGRAM' has it run\n"
	"by that program.\n"
	"The command starts in the directory where 'jobctl add' was called, with a clean\n"
	"environment: see 'jobctl show --env JOB'.\n";
static const char set_details[] =
	"A KEY is an option of 'jobctl add' without its dashes: priority=5, timeout=1h, cron='0 2 * * *',\n"
	"every=15m. KEY= alone gives the default back. env.NAME=, tag.KEY= and param.NAME= are single\n"
	"members. A new command comes after '--'. Options come before JOB. What runs goes on as it is;\n"
	"what waits follows the new definition, and a new schedule starts nothing by itself.\n";
static const char edit_details[] =
	"The definition is opened in $VISUAL, $EDITOR or vi as lines 'key = value'. One that is not valid\n"
	"is opened again with the error at its top.\n";
static const char approve_details[] =
	"Root's jobs, and with 'require-warrant = all' everybody's, start only what root or their owner has approved at\n"
	"the spawner. 'add', 'set', 'edit' and 'run --param' request the approval themselves. 'approve' is for a job\n"
	"without a valid one: after a new warrant.key, a restored store, or an upgrade from a version whose approvals do not cover the name. It shows the\n"
	"job and asks.\n";
static const char undo_details[] =
	"Each undo goes one step further back and is a revision of its own; 'undo --to N' goes to any.\n";
static const char template_add_details[] =
	"--param NAME must be given for each job made from it, --param NAME=VALUE has that default.\n"
	"{NAME} stands for the value inside the words of the command, {{ is a brace. A shell gets it as\n"
	"$JOBSCHED_PARAM_NAME only.\n";
static const char list_details[] =
	"A PATTERN is a number, a name, or a name with '*' and '?'; quote it for the shell.\n";
static const char cancel_details[] =
	"A cancelled job has no more slots and its queued runs are cancelled. Running runs continue\n"
	"unless --running is given. A cancelled run gets SIGTERM, and SIGKILL after its grace.\n"
	"'jobctl resume JOB' reactivates a cancelled job.\n";
static const char pause_details[] =
	"A paused job's slots are skipped, and the record says so; what cannot be skipped (a job that\n"
	"has no other slot, a retry, a boot) waits for 'jobctl resume'. What runs goes on.\n"
	"--all and --tag mean your own jobs; an administrator's word counts for everybody's unless\n"
	"--owner names one. TIME is what 'jobctl add --at' takes, or a duration.\n";
static const char resume_details[] =
	"Ends what 'jobctl pause' began with the same words; a job that was paused by name is resumed\n"
	"by name. A suspended job is looked at again and goes on when the cause is gone. A cancelled\n"
	"job is active again. A pause that an administrator set is ended by administrators only.\n"
	"With --until the pause begins again at TIME, without an end, and keeps its reason unless --reason\n"
	"gives another; slots before TIME run.\n";
static const char freeze_details[] =
	"For administrators: nothing starts, whoever owns it, but jobs with the tag of --except.\n";
static const char run_details[] =
	"The run obeys the job's overlap policy. A paused job is refused unless --force is given, which\n"
	"also starts it beside other runs of the job. During a freeze, or a pause that an administrator\n"
	"set, only administrators can do that.\n"
	"The exit codes are those of 'jobctl wait'.\n";
static const char log_details[] =
	"Of a job it is the newest run that has started; with -f, a run that waits is waited for.\n";
static const char wait_details[] =
	"A job's open runs are waited for; when it has none, its next one, and when there is no\n"
	"next one, the last one counts. The exit code is that of the first run that did not\n"
	"succeed: 10 failed, 11 cancelled, 12 skipped or never ran, 13 timed out; 8 when the\n"
	"waiting took longer than --timeout.\n";

static const char why_details[] =
	"What it waits for, when it runs next, and what became of its last slots; of a run,\n"
	"what became of that one. Each reason ends with the command to type next. With --at, what\n"
	"became of the slot at that time, or which slots are around it.\n";
static const char events_details[] =
	"Who did what to which object, from where, with what result: of your jobs and your own\n"
	"acts, or of everybody's for an administrator. With -f it goes on until interrupted, and\n"
	"shows the ends of runs too, as run.end.\n";

static const char next_details[] =
	"A job is asked for by number or name; a schedule is given by an option or written after\n"
	"'--', and needs no daemon. A terminal shows the local time first; elsewhere there is one\n"
	"RFC 3339 instant a line. -o wide marks the days on which the clock jumps. The language is\n"
	"in jobsched-time(7).\n";
static const char explain_details[] =
	"What is probably not meant is said on standard error, each finding with its code.\n";

static const struct opt add_opts[] = {
	WHEN_OPTS,
	{"env-file", 0, "FILE", "NAME=VALUE lines for the environment; '#' starts a comment line"},
	{"if-exists", 0, "WORD", "a job of yours has the name already: error, keep it, or replace its definition"},
	{"key", 0, "KEY", "idempotency key: adding twice with it makes one job"},
	{"as", 0, "USER", "the job is this user's; for administrators"},
	{"paused", 0, NULL, "it starts nothing before 'jobctl resume'"},
	{"yes", 'y', NULL, "with --template: approve the job without asking, where a warrant is needed"},
	{"dry-run", 0, NULL, "add nothing; show the schedule in words, its next slots and what is doubtful"},
	{"wait", 'w', NULL, "wait for its first run to end, exit as 'jobctl wait' does"},
	{"follow", 'f', NULL, "show the output of its first run as it comes, then exit as with --wait"},
	{},
};
#define APPROVE_OPT {"yes", 'y', NULL, "approve it without asking, where a warrant is needed"}
static const struct opt set_opts[] = {
	{"dry-run", 0, NULL, "change nothing; show what would be different, and the next slots"},
	{"revision", 0, "N", "only if this is still its revision"},
	APPROVE_OPT,
	{},
};
static const struct opt edit_opts[] = {
	APPROVE_OPT,
	{},
};
static const struct opt history_opts[] = {
	{"diff", 0, "N", "what revision N took away and brought, line by line"},
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{},
};
static const struct opt undo_opts[] = {
	{"to", 0, "N", "as in revision N, instead of the one before"},
	{},
};
static const struct opt template_add_opts[] = {
	WHEN_OPTS,
	{"env-file", 0, "FILE", "NAME=VALUE lines for the environment; '#' starts a comment line"},
	{},
};
static const struct opt template_show_opts[] = {
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{},
};
static const struct opt list_opts[] = {
	{"state", 's', "STATE", "only jobs in this state; repeatable, or a comma list"},
	{"tag", 't', "KEY=VALUE", "only jobs with this tag; repeatable"},
	{"owner", 0, "USER", "only jobs of this user"},
	{"since", 0, "TIME", "only jobs added at or after this time: 2h, yesterday, 2026-11-16"},
	{"until", 0, "TIME", "only jobs added before this time"},
	{"all", 'a', NULL, "also what is finished, cancelled or removed"},
	{"sort", 0, "KEY", "order by next, name or last run instead of number"},
	{"limit", 0, "N", "at most so many"},
	{"cursor", 0, "CURSOR", "go on where an earlier page ended"},
	{"watch", 0, NULL, "show it again every two seconds until interrupted"},
	{},
};
static const struct opt show_opts[] = {
	{"env", 0, NULL, "the environment its command gets, one NAME=VALUE a line"},
	{"sandbox", 0, NULL, "what its sandbox profile takes from it on this machine, in words"},
	{"as-command", 0, NULL, "the 'jobctl add' command that makes such a job"},
	{"reveal", 0, NULL, "show values of variables that look like secrets"},
	{},
};
static const struct opt cancel_opts[] = {
	{"running", 0, NULL, "of a job: end its running runs too"},
	{},
};
#define PAUSE_SCOPE_OPTS \
	{"all", 'a', NULL, "all jobs"}, \
	{"tag", 't', "KEY=VALUE", "the jobs with this tag"}, \
	{"queue", 'q', "QUEUE", "the jobs in this queue; for administrators"}, \
	{"owner", 0, "USER", "the jobs of this user, alone or with one of the above"}
#define PAUSE_REASON_OPT {"reason", 0, "TEXT", "why; 'jobctl why' and 'jobctl events' show it"}
#define PAUSE_TERM_OPTS \
	{"until", 0, "TIME", "it ends by itself then, or after a duration: 2h"}, \
	PAUSE_REASON_OPT
static const struct opt pause_opts[] = {
	PAUSE_SCOPE_OPTS,
	PAUSE_TERM_OPTS,
	{},
};
static const struct opt resume_opts[] = {
	PAUSE_SCOPE_OPTS,
	{"until", 0, "TIME", "the pause begins again then, or after a duration: 2h"},
	PAUSE_REASON_OPT,
	{},
};
static const struct opt thaw_opts[] = {
	PAUSE_REASON_OPT,
	{},
};
static const struct opt freeze_opts[] = {
	{"except", 0, "TAG", "jobs with this tag go on; KEY=VALUE, or KEY for any value"},
	PAUSE_TERM_OPTS,
	{},
};
static const struct opt run_opts[] = {
	{"param", 'p', "NAME=VALUE", "the value of a parameter for this run; repeatable"},
	{"force", 0, NULL, "although it is paused, and beside runs that go on"},
	{"wait", 'w', NULL, "wait for the end, exit as 'jobctl wait' does"},
	{"follow", 'f', NULL, "show the output as it comes, then exit as with --wait"},
	{"propagate", 0, NULL, "with --wait or --follow: exit with the command's own code"},
	{"yes", 'y', NULL, "with --param: approve it without asking, where a warrant is needed"},
	{},
};
static const struct opt rm_opts[] = {
	{"yes", 'y', NULL, "do not ask"},
	{},
};
static const struct opt runs_opts[] = {
	{"state", 's', "STATE", "only runs in this state; repeatable, or a comma list"},
	{"failed", 0, NULL, "only runs that failed, timed out or were lost"},
	{"owner", 0, "USER", "only runs of this user's jobs"},
	{"tag", 't', "KEY=VALUE", "only runs of jobs with this tag"},
	{"planned", 0, NULL, "also queued runs whose slot is yet to come"},
	{"since", 0, "TIME", "only slots at or after this time: 2h, yesterday, 2026-11-16"},
	{"until", 0, "TIME", "only slots before this time"},
	{"limit", 'n', "N", "at most so many (100); 0 means all"},
	{"cursor", 0, "CURSOR", "go on where an earlier page ended"},
	{},
};
static const struct opt log_opts[] = {
	{"follow", 'f', NULL, "go on as output comes, until the run is over"},
	{"lines", 'n', "N", "only the last N lines of what is there"},
	{"attempt", 0, "N", "of this attempt instead of the newest"},
	{"raw", 0, NULL, "control characters as they are, on a terminal too"},
	{},
};
static const struct opt why_opts[] = {
	{"at", 0, "TIME", "the slot at this time: 2026-11-16T09:00:00Z, 'yesterday 03:00', or 2h for two hours ago"},
	{"limit", 'n', "N", "so many of the last slots (10)"},
	{},
};
static const struct opt events_opts[] = {
	{"follow", 'f', NULL, "go on as things happen, with the ends of runs"},
	{"what", 0, "WORD", "only these events: job.cancel, or job for all of jobs; repeatable, or a comma list"},
	{"since", 0, "TIME", "only what happened at or after this time"},
	{"until", 0, "TIME", "only what happened before this time"},
	{"limit", 'n', "N", "the newest so many (100; with -f 10); 0 means all"},
	{},
};
static const struct opt next_opts[] = {
	WHEN_OPTS,
	{"tz", 0, "ZONE", "time zone of the schedule; yours if not given"},
	{"from", 0, "TIME", "slots after this time, as 'tomorrow 9am'; now if not given"},
	{"count", 'n', "N", "so many slots (10)"},
	{"id", 0, "NAME", "what H is hashed from: the job's name"},
	{"dst-gap", 0, "POLICY", "a fixed time that the clock leaves out: after or skip"},
	{"dst-fold", 0, "POLICY", "a fixed time that comes twice: first, last or both"},
	{"batch", 0, NULL, "read rows of schedule, zone, from, count, id with tabs; answer one line each"},
	{},
};
static const struct opt explain_opts[] = {
	WHEN_OPTS,
	{"tz", 0, "ZONE", "time zone of the schedule; yours if not given"},
	{"from", 0, "TIME", "as if it were submitted at this time; now if not given"},
	{"id", 0, "NAME", "what H is hashed from: the job's name"},
	{"dst-gap", 0, "POLICY", "a fixed time that the clock leaves out: after or skip"},
	{"dst-fold", 0, "POLICY", "a fixed time that comes twice: first, last or both"},
	{},
};
static const struct opt wait_opts[] = {
	{"timeout", 0, "DURATION", "give up after so long, with exit code 8"},
	{"propagate", 0, NULL, "exit with the exit code of the first command that failed"},
	{},
};

static const struct opt notices_opts[] = {
	{"failed", 0, NULL, "only those that were given up"},
	{"limit", 'n', "N", "at most so many (50); 0 means all"},
	{},
};
static const struct opt queue_opts[] = {
	{"running", 0, "N", "runs of the queue at a time; 'none' is any number"},
	{"weight", 0, "W", "its share beside the other queues while all have work (100)"},
	{"rate", 0, "N/DURATION[:BURST]", "starts in a time, as 10/1m; 'none' is no limit"},
	{},
};
static const struct opt limit_opts[] = {
	{"running", 0, "N", "runs of the owner at a time; 'none' is any number"},
	{"rate", 0, "N/DURATION[:BURST]", "starts in a time, as 10/1m; 'none' is no limit"},
	{},
};

static const char dead_details[] =
	"A dead letter is a run whose retries are used up, or whose exit code says so (--on-exit).\n"
	"A job means all of its dead letters, --all those of every job; --since and --until choose\n"
	"by when they died. Tried again, a run has all its retries anew. Purged, it stays in the\n"
	"history as it ended.\n";
#define DEAD_TIMES                                                                                 \
	{"job", 'j', "JOB", "the dead letters of this job; repeatable"},                           \
	{"since", 0, "TIME", "only those that died at or after this time"},                        \
	{"until", 0, "TIME", "only those that died before this time"}
static const struct opt dead_list_opts[] = {
	DEAD_TIMES,
	{"limit", 'n', "N", "at most so many (100); 0 means all"},
	{"cursor", 0, "CURSOR", "go on where an earlier page ended"},
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
	{"yes", 'y', NULL, "do not ask"},
	{},
};
static const char restore_details[] =
	"The daemon must be stopped. What went on when the backup was made is recorded as lost and\n"
	"not run again. Slots between then and now are made up for as each job's --catchup says, or\n"
	"not at all with --from-now. The store that was there is kept beside it.\n";
static const struct opt db_prune_opts[] = {
	{"older-than", 0, "DURATION", "delete what is older than this instead of keep-days"},
	{"keep-runs", 0, "N", "of a live job keep so many runs however old, instead of keep-runs"},
	{"dead-older-than", 0, "DURATION", "delete dead letters that are older than this instead of keep-dead-days"},
	{"yes", 'y', NULL, "do not ask"},
	{},
};
static const struct opt db_backup_opts[] = {
	{"force", 0, NULL, "overwrite the file if it exists"},
	{},
};
static const struct opt db_restore_opts[] = {
	{"from-now", 0, NULL, "make up for no slot before now"},
	{"yes", 'y', NULL, "do not ask"},
	{},
};

const struct verb verbs[] = {
	{.name = "add", .operands = "[--] COMMAND [ARG…]", .help = "add a job", .details = add_details,
		.opts = add_opts, .job_fields = true, .command = true, .max = -1, .formats = FORMATS_ALL,
		.run = verb_add},
	{.name = "list", .operands = "[PATTERN…]", .help = "list jobs", .details = list_details,
		.opts = list_opts, .max = -1, .formats = FORMATS_ALL, .run = verb_list},
	{.name = "show", .operands = "JOB|RUN", .help = "show all about a job or a run", .opts = show_opts,
		.min = 1, .max = 1, .formats = FORMATS_ALL, .run = verb_show},
	{.name = "cancel", .operands = "JOB|RUN…", .help = "stop a job's schedule, or end a run",
		.details = cancel_details, .opts = cancel_opts, .min = 1, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_cancel},
	{.name = "rm", .operands = "JOB…", .help = "remove jobs; their history stays for a while",
		.opts = rm_opts, .min = 1, .max = -1, .formats = FORMATS_OBJECT, .run = verb_rm},
	{.name = "run", .operands = "JOB", .help = "run a job now", .details = run_details, .opts = run_opts, .min = 1,
		.max = 1, .formats = FORMATS_ALL, .run = verb_run},
	{.name = "pause", .operands = "[JOB…]", .help = "skip the slots of jobs until they are resumed",
		.details = pause_details, .opts = pause_opts, .max = -1, .formats = FORMATS_OBJECT, .run = verb_pause},
	{.name = "resume", .operands = "[JOB…]", .help = "end a pause, reactivate a cancelled job", .details = resume_details, .opts = resume_opts,
		.max = -1, .formats = FORMATS_OBJECT, .run = verb_resume},
	{.name = "freeze", .help = "start nothing until 'jobctl thaw'", .details = freeze_details, .opts = freeze_opts,
		.formats = FORMATS_OBJECT, .run = verb_freeze},
	{.name = "thaw", .help = "end the freeze", .opts = thaw_opts, .formats = FORMATS_OBJECT, .run = verb_thaw},
	{.name = "set", .operands = "JOB KEY=VALUE… [-- COMMAND [ARG…]]", .help = "change a job", .details = set_details,
		.opts = set_opts, .command = true, .min = 2, .max = -1, .formats = FORMATS_OBJECT, .run = verb_set},
	{.name = "edit", .operands = "JOB", .help = "change a job in an editor", .details = edit_details, .opts = edit_opts, .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_edit},
	{.name = "approve", .operands = "JOB…", .help = "approve what jobs start, as they are now", .details = approve_details,
		.opts = edit_opts, .min = 1, .max = -1, .formats = FORMATS_OBJECT, .run = verb_approve},
	{.name = "history", .operands = "JOB", .help = "what a job was, and who changed it", .opts = history_opts, .min = 1,
		.max = 1, .formats = FORMATS_ALL, .run = verb_history},
	{.name = "undo", .operands = "JOB", .help = "take back the last change of a job", .details = undo_details,
		.opts = undo_opts, .min = 1, .max = 1, .formats = FORMATS_OBJECT, .run = verb_undo},
	{.name = "runs", .operands = "[JOB|RUN…]", .help = "list runs, newest first", .opts = runs_opts,
		.max = -1, .formats = FORMATS_ALL, .run = verb_runs},
	{.name = "log", .operands = "JOB|RUN", .help = "show the output of a run", .details = log_details,
		.opts = log_opts, .min = 1, .max = 1, .formats = FORMATS_TEXT, .run = verb_log},
	{.name = "wait", .operands = "JOB|RUN…", .help = "wait until runs are over", .details = wait_details,
		.opts = wait_opts, .min = 1, .max = -1, .formats = FORMATS_ALL, .run = verb_wait},
	{.name = "why", .operands = "JOB|RUN", .help = "why it ran, did not run or will not run", .details = why_details,
		.opts = why_opts, .min = 1, .max = 1, .formats = FORMATS_OBJECT, .run = verb_why},
	{.name = "events", .operands = "[JOB|RUN…]", .help = "who did what, and what came of it",
		.details = events_details, .opts = events_opts, .max = -1, .formats = FORMATS_ALL, .run = verb_events},
	{.name = "next", .operands = "[JOB | -- SCHEDULE]", .help = "when a job or a schedule is due",
		.details = next_details, .opts = next_opts, .max = -1, .formats = FORMATS_ALL,
		.run = verb_next},
	{.name = "explain", .operands = "[SCHEDULE]", .help = "a schedule in plain words",
		.details = explain_details, .opts = explain_opts, .max = -1, .formats = FORMATS_OBJECT,
		.run = verb_explain},
	{.name = "dead list", .operands = "[JOB…]", .help = "list runs that failed for good", .details = dead_details,
		.opts = dead_list_opts, .bare = true, .max = -1, .formats = FORMATS_ALL, .run = verb_dead_list},
	{.name = "dead show", .operands = "RUN", .help = "show a dead letter", .opts = show_opts, .min = 1, .max = 1, .formats = FORMATS_ALL,
		.run = verb_dead_show},
	{.name = "dead retry", .operands = "[RUN|JOB…]", .help = "try dead letters again", .details = dead_details,
		.opts = dead_retry_opts, .max = -1, .formats = FORMATS_OBJECT, .run = verb_dead_retry},
	{.name = "dead purge", .operands = "[RUN|JOB…]", .help = "put dead letters aside", .details = dead_details,
		.opts = dead_purge_opts, .max = -1, .formats = FORMATS_OBJECT, .run = verb_dead_purge},
	{.name = "notices list", .operands = "[JOB]", .help = "what somebody was told, or could not be", .opts = notices_opts,
		.bare = true, .max = 1, .formats = FORMATS_ALL, .run = verb_notices_list},
	{.name = "notices test", .operands = "JOB", .help = "send a test notice to all channels of a job", .min = 1, .max = 1,
		.formats = FORMATS_ALL, .run = verb_notices_test},
	{.name = "queue list", .help = "list the queues and what they hold", .bare = true, .formats = FORMATS_ALL,
		.run = verb_queue_list},
	{.name = "queue add", .operands = "NAME", .help = "make a queue that jobs can name", .opts = queue_opts, .min = 1,
		.max = 1, .formats = FORMATS_OBJECT, .run = verb_queue_add},
	{.name = "queue set", .operands = "NAME", .help = "change the limits of a queue", .opts = queue_opts, .min = 1,
		.max = 1, .formats = FORMATS_OBJECT, .run = verb_queue_set},
	{.name = "queue rm", .operands = "NAME…", .help = "remove queues that nobody uses", .min = 1, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_queue_rm},
	{.name = "limit list", .help = "list the owners with limits of their own", .bare = true, .formats = FORMATS_ALL,
		.run = verb_limit_list},
	{.name = "limit set", .operands = "OWNER", .help = "limit what one owner has running", .opts = limit_opts, .min = 1,
		.max = 1, .formats = FORMATS_OBJECT, .run = verb_limit_set},
	{.name = "limit rm", .operands = "OWNER…", .help = "remove the limits of owners", .min = 1, .max = -1,
		.formats = FORMATS_OBJECT, .run = verb_limit_rm},
	{.name = "db prune", .help = "delete old history now", .opts = db_prune_opts, .formats = FORMATS_OBJECT,
		.run = verb_db_prune},
	{.name = "db backup", .operands = "FILE", .help = "write a whole copy of the store to a file", .opts = db_backup_opts,
		.min = 1, .max = 1, .formats = FORMATS_TEXT, .run = verb_db_backup},
	{.name = "db check", .help = "look whether everything in the store is sound", .formats = FORMATS_OBJECT,
		.run = verb_db_check},
	{.name = "db restore", .operands = "FILE", .help = "put a backup in the store's place", .details = restore_details,
		.opts = db_restore_opts, .min = 1, .max = 1, .formats = FORMATS_TEXT, .run = verb_db_restore},
	{.name = "template list", .help = "list templates: yours, and those that root shares", .bare = true,
		.formats = FORMATS_ALL, .run = verb_template_list},
	{.name = "template add", .operands = "NAME -- COMMAND [ARG…]", .help = "make or replace a template for jobs",
		.details = template_add_details, .opts = template_add_opts, .job_fields = true, .min = 1,
		.max = -1, .formats = FORMATS_OBJECT, .run = verb_template_add},
	{.name = "template show", .operands = "NAME", .help = "show a template", .opts = template_show_opts, .min = 1,
		.max = 1, .formats = FORMATS_OBJECT, .run = verb_template_show},
	{.name = "template rm", .operands = "NAME…", .help = "remove templates; jobs made from them stay", .min = 1,
		.max = -1, .formats = FORMATS_OBJECT, .run = verb_template_rm},
	{.name = "nodes", .help = "the nodes that share the store, and who leads", .formats = FORMATS_ALL, .run = verb_nodes},
	{.name = "node drain", .operands = "NODE", .help = "start nothing new on a node; what it runs goes on", .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_node_drain},
	{.name = "node undrain", .operands = "NODE", .help = "let a node take new work again", .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_node_undrain},
	{.name = "node resign", .operands = "NODE", .help = "have the leader hand over to another node", .min = 1, .max = 1,
		.formats = FORMATS_OBJECT, .run = verb_node_resign},
	{.name = "status", .help = "what the daemon is doing", .formats = FORMATS_OBJECT, .run = verb_status},
	{.name = "version", .help = "versions of jobctl and of the daemon", .formats = FORMATS_OBJECT,
		.run = verb_version},
	{.name = "help", .operands = "[VERB]", .help = "show help", .max = 2, .formats = FORMATS_TEXT,
		.run = verb_help},
	{},
};
