/* SPDX-License-Identifier: Apache-2.0 */
/* The paragraphs below the options in the help of each verb. */
#include "jobctl/verbs/verb_details.h"

const char verb_details_add[] =
	"Without a time the job runs now. A command of several words is run directly, without\n"
	"a shell. A single word with blanks, pipes or other shell syntax is run by /bin/sh.\n"
	"Without a command, standard input is read as a script for /bin/sh, or for the program\n"
	"in its first line '#!PROGRAM'.\n"
	"The command starts in the current directory with a clean environment, which\n"
	"'jobctl show --env JOB' prints.\n";
const char verb_details_token[] =
	"The token is printed once; the daemon keeps only its hash. A viewer sees the jobs of its\n"
	"owner, an operator also submits and controls them, an admin has the rights of an\n"
	"administrator. A scope limits the token to these verbs: submit, submit-as, see, cancel,\n"
	"remove, change, template, status, pause, resume, trigger, freeze, queues, dead, limit,\n"
	"database, nodes, notify, token.\n";
const char verb_details_web[] =
	"The daemon serves its page on a loopback port until the command ends. The URL contains a\n"
	"one-time token. The page shows; --role operator lets it change your jobs.\n";
const char verb_details_set[] =
	"KEY is an option of 'jobctl add' without its dashes: priority=5, timeout=1h,\n"
	"cron='0 2 * * *', every=15m. 'KEY=' restores the default. env.NAME=, tag.KEY= and\n"
	"param.NAME= change single members. A new command follows '--'. Options stand before\n"
	"JOB. Running runs keep their definition; waiting runs use the new one. A new schedule\n"
	"starts no run by itself.\n";
const char verb_details_edit[] =
	"The definition is opened in $VISUAL, $EDITOR or vi as lines 'key = value'. If it is not\n"
	"valid, it is opened again with the error at its top.\n";
const char verb_details_approve[] =
	"Jobs of root, and with 'require-warrant = all' the jobs of all users, start only if root\n"
	"or the owner has approved them at the spawner. 'add', 'set', 'edit' and 'run --param'\n"
	"request the approval themselves. 'approve' is for a job without a valid approval: after a\n"
	"change of warrant.key, after a restore of the store, or after an upgrade from a version\n"
	"whose approvals do not include the name. It shows the job and asks for confirmation.\n";
const char verb_details_undo[] =
	"Each undo goes back one more step and creates a revision of its own. 'undo --to N' goes\n"
	"back to revision N.\n";
const char verb_details_template_add[] =
	"--param NAME is required for each job that uses the template; --param NAME=VALUE has a\n"
	"default. {NAME} in a word of the command is replaced by the value; {{ is a literal\n"
	"brace. A script gets the value only as $JOBSCHED_PARAM_NAME.\n";
const char verb_details_list[] =
	"PATTERN is a number, a name, or a name with '*' and '?', quoted for the shell. Finished\n"
	"and cancelled jobs are listed only with a pattern, --state or --all.\n";
const char verb_details_cancel[] =
	"A cancelled job has no more slots, and its queued runs are cancelled. Running runs\n"
	"continue unless --running is given. A run that is cancelled gets SIGTERM, and SIGKILL\n"
	"after its grace period. 'jobctl resume JOB' reactivates a cancelled job.\n";
const char verb_details_pause[] =
	"The slots of a paused job are recorded as skipped. A run that cannot be skipped (of a job\n"
	"without further slots, a retry, a boot) waits for 'jobctl resume'. Running runs are not\n"
	"affected. --all and --tag apply to your own jobs. Those of an administrator apply to the\n"
	"jobs of all users unless --owner is given. TIME is as for 'jobctl add --at', or a\n"
	"duration.\n";
const char verb_details_resume[] =
	"Ends the pause that 'jobctl pause' set with the same jobs or options. A job that was\n"
	"paused by name must be resumed by name. A suspended job is checked again and becomes\n"
	"active if the cause is gone. A cancelled job becomes active. Only administrators can end\n"
	"a pause that an administrator set.\n"
	"With --until the pause begins again at TIME, without an end; slots before TIME run. It\n"
	"keeps its reason unless --reason is given.\n";
const char verb_details_freeze[] =
	"For administrators. No run of any user starts, except runs of jobs with the tag given by\n"
	"--except.\n";
const char verb_details_run[] =
	"The run follows the overlap policy of the job. A paused job is not run without --force.\n"
	"--force also starts the run beside other runs of the job. During a freeze, or a pause\n"
	"that an administrator set, only administrators can use --force.\n"
	"The exit codes are those of 'jobctl wait'.\n";
const char verb_details_log[] =
	"For a job, shows the newest run that has started. With -f, waits for a run that has not\n"
	"started yet.\n";
const char verb_details_wait[] =
	"For a job, waits for its unfinished runs; if there are none, for its next run; if there\n"
	"is no next run, its last run counts. The exit code is that of the first run that did not\n"
	"succeed: 10 failed, 11 cancelled, 12 skipped or never ran, 13 timed out. It is 8 if\n"
	"--timeout has passed.\n";
const char verb_details_why[] =
	"For a job: the reason why it waits, its next slots, and the results of its last slots.\n"
	"For a run: its result. Each reason is followed by the command to type next. With --at:\n"
	"the result of the slot at that time, or the slots before and after it.\n";
const char verb_details_events[] =
	"Who did what to which object, from where and with which result. Users see the events of\n"
	"their own jobs and their own actions; administrators see all. With -f the list continues\n"
	"until interrupted and includes the ends of runs, as run.end.\n";
const char verb_details_next[] =
	"JOB is a number or a name. A schedule is given by an option or after '--', and needs no\n"
	"daemon. On a terminal the local time is shown first; otherwise there is one RFC 3339 time\n"
	"per line. -o wide shows the days on which the clock changes. See jobsched-time(7) for the\n"
	"syntax of schedules.\n";
const char verb_details_explain[] =
	"Probable mistakes in the schedule are reported on standard error, each with a code.\n";
const char verb_details_import_crontab[] =
	"FILE is a crontab; '-' is standard input. The jobs behave as under cron: same times, shell\n"
	"and environment, runs may overlap, missed slots are not caught up, no sandbox. The output\n"
	"is mailed to MAILTO, or to the user. A second import changes only jobs whose line has\n"
	"changed. cron refuses a table with one bad line; then nothing is added. Global options that\n"
	"select a daemon stand before 'import'. See jobsched-crontab(5) for the modes.\n";
const char verb_details_top[] =
	"'?' shows the keys. The screen is updated when the daemon reports a change, and every two\n"
	"seconds. Only the page on the screen is read, so it is quick with any number of jobs.\n";
const char verb_details_progress[] =
	"For the command of a job with --heartbeat. PERCENT is 0 to 100. Without arguments it is only\n"
	"a sign that the command is alive. The command can also write a line like\n"
	"'jobsched:progress=40 copying' to descriptor $JOBSCHED_NOTIFY_FD, or use sd_notify(3).\n";
const char verb_details_shell[] =
	"The command runs here, not through the daemon, as the owner of the job: with the\n"
	"environment, directory, umask, priorities and 'limits' of the job. Without a command an\n"
	"interactive shell is started that reads no start-up files. The sandbox, control groups,\n"
	"secrets, artifact and time limits are not applied; what the job has of these is reported\n"
	"on standard error.\n";
const char verb_details_env_diff[] =
	"A line begins with '+' for a variable that only the job has, with '-' for one that only\n"
	"the shell has, and with '~' for one that differs.\n";
const char verb_details_simulate[] =
	"Computes the slots of active jobs and starts runs as the daemon would, each with the\n"
	"median duration of its job's last successful runs. Overlap policies, deadlines, and the\n"
	"limits of nodes, queues and owners are applied. Failures, retries, jitter, rates and\n"
	"conditions are not simulated. PATTERN is a name with '*' and '?'.\n";
const char verb_details_cron_compare[] =
	"Lists the starts that only one of the two has: cron according to its log, jobschedd by\n"
	"the slots of the lines. Exits with 1 if there are any. Lines of anacrontab and @reboot\n"
	"are not compared, nor are the last two minutes.\n";
const char verb_details_cron_takeover[] =
	"Sets 'crontabs = on' in jobschedd.conf(5), masks and stops the units of cron and anacron,\n"
	"and waits until the jobs run. @reboot lines are not started. A step that was done is not\n"
	"repeated, so the verb can be run again after a failure or a reboot. Needs root.\n";
const char verb_details_dead[] =
	"A dead letter is a run whose retries are used up, or whose exit code is declared 'dead'\n"
	"by --on-exit. A job selects all its dead letters, --all those of every job. --since and\n"
	"--until select by the time at which a run became a dead letter. A run that is retried has\n"
	"all its retries again. A run that is purged stays in the history with its result.\n";
const char verb_details_restore[] =
	"The daemon must be stopped. Runs that were running when the backup was made are recorded\n"
	"as lost and are not run again. Slots between the backup and now are caught up according\n"
	"to --catchup of each job, or skipped with --from-now. The present store is kept beside\n"
	"the restored one.\n";
const char verb_details_export[] =
	"Writes the definitions of your jobs, sorted by name, for 'jobctl apply'. PATTERN is a number,\n"
	"a name, or a name with '*' and '?'. Jobs without a name are left out, because 'jobctl apply'\n"
	"finds a job by its name. The value of a variable that looks like a secret is null.\n";
const char verb_details_apply[] =
	"Adds, changes and, with --prune, removes jobs in one transaction, so that the store matches\n"
	"the files. If one definition is refused, nothing is applied. Jobs that are equal to their\n"
	"definition get no new revision; pauses are kept. FILE is .json or .jsonl, or '-' for standard\n"
	"input; all such files of a directory are one set. --prune removes only jobs that an earlier\n"
	"'apply' of the same set added or adopted. The set is named by --set, by 'set' in the file, or\n"
	"by the absolute path.\n";
const char verb_details_completion[] =
	"'make install' and the packages install the scripts. Without them:\n"
	"  bash: source <(jobctl completion bash)\n"
	"  zsh:  source <(jobctl completion zsh), after compinit\n"
	"  fish: jobctl completion fish | source\n";
const char verb_details_doctor[] =
	"Works without a daemon. -o wide lists all checks with their results; CHECK runs only these. The\n"
	"exit code is 0 without errors and warnings, and 1 otherwise; notes do not count.\n";
const char verb_details_diff[] =
	"Shows what 'jobctl apply' would change. The exit code is 0 if nothing differs and 1 if\n"
	"something does.\n";
