/* SPDX-License-Identifier: Apache-2.0 */
/* Field table of job definitions: types, defaults, checks and help. */
#include "base/duration.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "core/job/call.h"
#include "core/job/chain.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/target/kafka.h"
#include "core/target/lambda.h"
#include "core/job/limits.h"
#include "core/job/params.h"
#include "core/job/policy.h"
#include "core/target/s3_url.h"
#include "core/job/sandbox_profile.h"
#include "core/time/schedule.h"
#include "core/job/trace.h"
#include "core/job/warrant.h"
#include "core/time/slots.h"
#include <inttypes.h>
#include <string.h>

bool job_name_check(const char *name, struct err *e)
{
	size_t len = strlen(name);

	if (len == 0 || len > 128 || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
						  "0123456789._-") != len)
		return err_field(e, "name", "a name has 1 to 128 letters, digits, '.', '_' and '-'");
	if (strspn(name, "0123456789") == len)
		return err_field(e, "name", "the name '%s' is all digits, which would mean job number %s", name,
			name);
	return true;
}

static bool check_env(const char *pair, struct err *e)
{
	const char *eq = strchr(pair, '=');

	if (!eq || !text_is_name(pair, (size_t)(eq - pair)))
		return err_field(e, "env", "'%.64s' is not NAME=VALUE with a name of letters, digits and '_'", pair);
	if (text_starts(pair, "JOBSCHED_"))
		return err_field(e, "env", "'%.*s' is ours: names with JOBSCHED_ are set by the scheduler",
			(int)(eq - pair > 64 ? 64 : eq - pair), pair);
	if (strlen(eq + 1) > 32768)
		return err_field(e, "env", "the value of '%.*s' is longer than 32768 bytes",
			(int)(eq - pair > 64 ? 64 : eq - pair), pair);
	return true;
}

static bool check_tag(const char *pair, struct err *e)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
	const char *eq = strchr(pair, '=');
	size_t len = eq ? (size_t)(eq - pair) : 0;

	if (len == 0 || len > 64 || strspn(pair, allowed) != len)
		return err_field(e, "tags", "'%.64s' is not KEY=VALUE with a key of letters, digits and '._-/'", pair);
	if (strlen(eq + 1) > 256)
		return err_field(e, "tags", "the value of '%.*s' is longer than 256 bytes", (int)len, pair);
	return true;
}

static bool check_cwd(const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_field(e, "cwd", "the directory '%.200s' must be an absolute path", path);
	return true;
}

static bool check_catchup(const char *text, struct err *e)
{
	return slot_catchup_parse(text, &(struct catchup){}, e);
}

static bool check_overlap(const char *text, struct err *e)
{
	return policy_overlap_parse(text, &(struct overlap){}, e);
}

static bool check_rate(const char *text, struct err *e)
{
	return policy_rate_parse(text, &(struct rate){}, e);
}

static bool check_when(const char *text, struct err *e)
{
	return policy_condition_parse(text, &(struct gate){}, e);
}

static bool check_node_label(const char *text, struct err *e)
{
	return policy_node_label_check(text, e);
}

static bool check_backoff(const char *text, struct err *e)
{
	return policy_backoff_parse(text, &(struct backoff){}, e);
}

static bool check_on_exit(const char *text, struct err *e)
{
	return policy_exit_rules_parse(text, &(struct exit_rules){}, e);
}

static bool check_notify(const char *text, struct err *e)
{
	enum notify_channel channel;
	const char *target;

	return policy_notify_parse(text, &channel, &target, e);
}

/* Names of queues and templates have the same syntax as job names. */
static bool check_queue(const char *name, struct err *e)
{
	return job_name_check(name, e) || err_field(e, "queue", "the queue '%.128s' has no valid name", name);
}

static bool check_template(const char *name, struct err *e)
{
	return job_name_check(name, e) || err_field(e, "template", "the template '%.128s' has no valid name", name);
}

static bool check_cpu(const char *text, struct err *e)
{
	int64_t percent;

	return limit_cpu_parse(text, &percent, e);
}

static bool check_ionice(const char *text, struct err *e)
{
	int64_t level;

	return limit_ionice_parse(text, &level, e);
}

static bool check_resource_limit(const char *pair, struct err *e)
{
	int64_t value;
	int resource;

	return limit_resource_parse(pair, &resource, &value, e);
}

static bool check_warrant(const char *text, struct err *e)
{
	unsigned char bytes[WARRANT_LEN];

	return warrant_parse(text, bytes) ||
	       err_field(e, "warrant", "'%.100s' is not a warrant: it must have 96 lower-case hexadecimal digits", text);
}

static bool check_traceparent(const char *text, struct err *e)
{
	return trace_parent_valid(text) ||
	       err_field(e, "traceparent", "'%.100s' is not a trace parent: it must be 00-TRACE-SPAN-FLAGS with 32, 16 and 2 "
		"lower-case hexadecimal digits", text);
}

static bool check_tracestate(const char *text, struct err *e)
{
	return trace_text_valid(text, TRACE_STATE_MAX) ||
	       err_field(e, "tracestate", "'tracestate' must be at most %d printable ASCII characters", TRACE_STATE_MAX);
}

static bool check_baggage(const char *text, struct err *e)
{
	return trace_text_valid(text, TRACE_BAGGAGE_MAX) ||
	       err_field(e, "baggage", "'baggage' must be at most %d printable ASCII characters", TRACE_BAGGAGE_MAX);
}

static bool check_after(const char *text, struct err *e)
{
	return chain_link_parse(text, &(struct chain_link){}, e);
}

static bool check_param(const char *pair, struct err *e)
{
	const char *eq = strchr(pair, '=');

	if (!eq || !param_name_valid(pair, (size_t)(eq - pair)))
		return err_field(e, "params", "'%.64s' is not NAME=VALUE with a name of up to 64 letters, digits and '_'", pair);
	if (strlen(eq + 1) > 32768)
		return err_field(e, "params", "the value of '%.*s' is longer than 32768 bytes", (int)(eq - pair), pair);
	return true;
}

static bool check_secret_source(const char *pair, struct err *e)
{
	const char *eq = strchr(pair, '=');

	if (!eq || eq - pair > 64 || !text_is_name(pair, (size_t)(eq - pair)))
		return err_field(e, "secrets", "'%.64s' is not NAME=file:PATH with a name of up to 64 letters, digits and '_'", pair);
	if (!text_starts(eq + 1, "file:/") || strlen(eq + 1) > 4095)
		return err_field(e, "secrets", "the secret '%.*s' is a file that is read when the job starts: write "
					       "file: and its absolute path",
			(int)(eq - pair), pair);
	return true;
}

/* The URL is stored and displayed, so it must not contain a password. */
static bool check_artifact(const char *url, struct err *e)
{
	static const char *const schemes[] = {"https://", "http://"};

	for (const char *c = url; *c; c++)
		if (*c <= ' ' || *c == 0x7f)
			return err_field(e, "artifact", "a URL has no blanks or control characters");
	for (size_t i = 0; i < ELEMENTS(schemes); i++) {
		const char *host = url + strlen(schemes[i]);

		if (!text_starts(url, schemes[i]))
			continue;
		if (strcspn(host, "/?#") == 0)
			return err_field(e, "artifact", "'%.200s' has no host", url);
		if (memchr(host, '@', strcspn(host, "/?#")))
			return err_field(e, "artifact", "a name or password does not belong in a URL that is stored and shown");
		return true;
	}
	if (text_starts(url, "file:///") || (text_starts(url, "file:/") && url[6] != '/'))
		return true;
	if (text_starts(url, "s3://")) {
		struct s3_name name;

		if (!s3_url_parse(url, &name, e))
			return err_field(e, "artifact", "%s", e->msg);
		return *name.key || err_field(e, "artifact", "'%.200s' names no object", url);
	}
	return err_field(e, "artifact", "'%.200s' is not https://…, http://…, s3://BUCKET/… or file:/…", url);
}

static bool check_artifact_sum(const char *text, struct err *e)
{
	return (strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64) ||
	       err_field(e, "sha256", "'%.80s' is not a SHA-256 in 64 small hex digits; sha256sum(1) prints it", text);
}

static const char *const on_lost_names[ON_LOST_MAX] = {[LOST_RERUN] = "rerun", [LOST_FAIL] = "fail"};
static const char *const on_410_names[ON_410_MAX] = {[ON_410_FAIL] = "fail", [ON_410_SUSPEND] = "suspend"};
static const char *const after_mode_names[CHAIN_MODE_MAX] = {[CHAIN_ALL_OF] = "all", [CHAIN_ANY_OF] = "any"};
static const char *const no_yes_names[NO_YES_MAX] = {[SAY_NO] = "no", [SAY_YES] = "yes"};
static const char *const leftovers_names[LEFTOVERS_MAX] = {[LEFTOVERS_END] = "end", [LEFTOVERS_KEEP] = "keep"};

#define AT(member) offsetof(struct job_spec, member)

const struct job_field job_fields[] = {
	{.name = "name", .type = FIELD_TEXT, .offset = AT(name), .min = 1, .max = 128, .flag = "name",
		.short_flag = 'n', .arg = "NAME", .check = job_name_check,
		.help = "name of the job, unique among your jobs"},
	{.name = "command", .type = FIELD_LIST, .offset = AT(command), .max = 4096, .bytes = true,
		.help = "program and arguments, run without a shell"},
	{.name = "script", .type = FIELD_TEXT, .offset = AT(script), .min = 1, .max = JOB_WORD_MAX,
		.bytes = true, .help = "text for /bin/sh -c or for the program in its #! line, instead of a command"},
	{.name = "schedule", .type = FIELD_LIST, .offset = AT(schedule), .max = 64,
		.help = "when the job is due; without a schedule it runs now"},
	{.name = "after", .type = FIELD_LIST, .offset = AT(after), .max = CHAIN_LINKS_MAX, .flag = "after",
		.arg = "JOB[:success|failure|any|exit=N]", .check = check_after,
		.help = "run after a run of this job has ended so (success), with the same slot; repeatable"},
	{.name = "after_mode", .type = FIELD_CHOICE, .offset = AT(after_mode), .max = CHAIN_MODE_MAX - 1,
		.choices = after_mode_names, .flag = "after-mode", .arg = "all|any",
		.help = "with several --after: run when all of them or any of them hold (all)"},
	{.name = "tz", .type = FIELD_TEXT, .offset = AT(tz), .min = 1, .max = 64, .flag = "tz",
		.arg = "ZONE", .help = "time zone of the schedule, as Europe/Berlin"},
	{.name = "dst_gap", .type = FIELD_CHOICE, .offset = AT(dst_gap), .max = DST_GAP_MAX - 1,
		.choices = dst_gap_names, .flag = "dst-gap", .arg = "after|skip",
		.help = "fixed times that the clock skips: run after the gap, or skip"},
	{.name = "dst_fold", .type = FIELD_CHOICE, .offset = AT(dst_fold), .max = DST_FOLD_MAX - 1,
		.choices = dst_fold_names, .flag = "dst-fold", .arg = "first|last|both",
		.help = "fixed times that occur twice: when to run"},
	{.name = "from", .type = FIELD_TIME, .offset = AT(from), .max = USEC_LAST, .flag = "from",
		.arg = "TIME", .help = "no slots before this time"},
	{.name = "until", .type = FIELD_TIME, .offset = AT(until), .max = USEC_LAST, .flag = "until",
		.arg = "TIME", .help = "no slots after this time"},
	{.name = "jitter", .type = FIELD_DURATION, .offset = AT(jitter), .max = USEC_DAY,
		.flag = "jitter", .arg = "DURATION",
		.help = "delay each start by a random time up to this, chosen once per slot"},
	{.name = "env", .type = FIELD_MAP, .offset = AT(env), .max = 128, .bytes = true, .flag = "env",
		.short_flag = 'e', .arg = "NAME=VALUE", .check = check_env,
		.help = "environment variable of the command; repeatable"},
	{.name = "tags", .type = FIELD_MAP, .offset = AT(tags), .max = 32, .flag = "tag",
		.short_flag = 't', .arg = "KEY=VALUE", .check = check_tag,
		.help = "label to filter by; repeatable"},
	{.name = "cwd", .type = FIELD_TEXT, .offset = AT(cwd), .min = 1, .max = 4095, .bytes = true,
		.flag = "cwd", .short_flag = 'C', .arg = "DIR", .check = check_cwd,
		.help = "working directory of the command"},
	{.name = "stdin", .type = FIELD_BLOB, .offset = AT(stdin_data), .max = 16 * 1024 * 1024,
		.bytes = true, .flag = "stdin", .arg = "FILE",
		.help = "file with the standard input of the command; '-': that of jobctl"},
	{.name = "umask", .type = FIELD_OCTAL, .offset = AT(umask), .max = 0777, .preset = 022,
		.flag = "umask", .arg = "MODE", .help = "file mode creation mask, octal"},
	{.name = "sandbox", .type = FIELD_TEXT, .offset = AT(sandbox), .min = 1, .max = SANDBOX_NAME_MAX - 1,
		.flag = "sandbox", .arg = "PROFILE", .check = sandbox_profile_name_check,
		.help = "restrictions of the command: compat, standard, strict or a local profile (standard)"},
	{.name = "priority", .type = FIELD_INT, .offset = AT(priority), .min = -100, .max = 100,
		.flag = "priority", .short_flag = 'p', .arg = "N",
		.help = "-100 to 100; of the due runs, those with a higher priority start first"},
	{.name = "timeout", .type = FIELD_DURATION, .offset = AT(timeout), .min = 0, .max = 366 * USEC_DAY,
		.flag = "timeout", .arg = "DURATION", .help = "end an attempt that takes longer"},
	{.name = "heartbeat", .type = FIELD_DURATION, .offset = AT(heartbeat), .min = 0, .max = 366 * USEC_DAY,
		.flag = "heartbeat", .arg = "DURATION",
		.help = "end and retry an attempt that gives no sign for this long, see 'jobctl progress'"},
	{.name = "heartbeat_on_output", .type = FIELD_CHOICE, .offset = AT(heartbeat_on_output), .max = NO_YES_MAX - 1,
		.choices = no_yes_names, .flag = "heartbeat-on-output", .bare = true, .arg = "no|yes",
		.help = "with --heartbeat: output of the command is a sign as well"},
	{.name = "results", .type = FIELD_CHOICE, .offset = AT(results), .max = NO_YES_MAX - 1,
		.choices = no_yes_names, .flag = "results", .bare = true, .arg = "no|yes",
		.help = "keep lines KEY=VALUE that the command writes to $JOBSCHED_RESULT, or 'results' of a JSON response"},
	{.name = "checkpoint", .type = FIELD_CHOICE, .offset = AT(checkpoint), .max = NO_YES_MAX - 1,
		.choices = no_yes_names, .flag = "checkpoint", .bare = true, .arg = "no|yes",
		.help = "give the command a directory, $JOBSCHED_STATE, that its later attempts find again"},
	{.name = "state_size", .type = FIELD_SIZE, .offset = AT(state_size), .max = JOB_STATE_SIZE_MAX, .flag = "state-size", .arg = "SIZE",
		.help = "with --checkpoint: keep up to this much of the directory in the store, for attempts on other nodes"},
	{.name = "gate", .type = FIELD_TEXT, .offset = AT(gate), .min = 1, .max = 4096, .bytes = true, .flag = "gate", .arg = "COMMAND",
		.help = "shell command before each attempt: exit 0 starts it, 75 delays it, 77 skips the run"},
	{.name = "gate_timeout", .type = FIELD_DURATION, .offset = AT(gate_timeout), .min = USEC_SEC, .max = USEC_HOUR,
		.preset = USEC_MIN, .flag = "gate-timeout", .arg = "DURATION", .help = "end a gate that takes longer (1m)"},
	{.name = "grace", .type = FIELD_DURATION, .offset = AT(grace), .min = 0, .max = USEC_HOUR,
		.preset = 10 * USEC_SEC, .flag = "grace", .arg = "DURATION",
		.help = "time between SIGTERM and SIGKILL"},
	{.name = "mem", .type = FIELD_SIZE, .offset = AT(mem), .max = LIMIT_MEMORY_MAX, .flag = "mem", .arg = "SIZE",
		.help = "memory limit of a run, for all its processes together"},
	{.name = "cpu", .type = FIELD_TEXT, .offset = AT(cpu), .min = 1, .max = 16, .flag = "cpu", .arg = "SHARE",
		.check = check_cpu, .help = "CPU limit of a run: 50% of one processor, or 1.5 processors"},
	{.name = "pids", .type = FIELD_INT, .offset = AT(pids), .max = LIMIT_PIDS_MAX, .flag = "pids", .arg = "N",
		.help = "limit of processes and threads of a run"},
	{.name = "nice", .type = FIELD_INT, .offset = AT(nice), .max = LIMIT_NICE_MAX, .flag = "nice", .arg = "N",
		.help = "nice value, 0 to 19; a higher value gives other processes precedence"},
	{.name = "ionice", .type = FIELD_TEXT, .offset = AT(ionice), .min = 1, .max = 16, .flag = "ionice",
		.arg = "idle|best-effort[:N]", .check = check_ionice, .help = "I/O scheduling class, see ionice(1)"},
	{.name = "limits", .type = FIELD_MAP, .offset = AT(limits), .max = 16, .flag = "limit", .arg = "NAME=N",
		.check = check_resource_limit, .help = "resource limit of each process, as nofile=1024 or fsize=1G; repeatable"},
	{.name = "output_limit", .type = FIELD_SIZE, .offset = AT(output_limit), .min = 0,
		.max = INT64_C(1) << 40, .preset = 10 * 1024 * 1024, .flag = "output-limit", .arg = "SIZE",
		.help = "bytes of output to keep: a tenth from the start, the rest from the end"},
	{.name = "catchup", .type = FIELD_TEXT, .offset = AT(catchup), .min = 1, .max = 16, .flag = "catchup",
		.arg = "none|latest|all[:N]", .check = check_catchup,
		.help = "which slots missed while the scheduler was down still run (latest)"},
	{.name = "deadline", .type = FIELD_DURATION, .offset = AT(deadline), .max = 366 * USEC_DAY,
		.flag = "deadline", .arg = "DURATION",
		.help = "do not start a run later than this after its slot"},
	{.name = "expires", .type = FIELD_DURATION, .offset = AT(expires), .max = 366 * USEC_DAY,
		.flag = "expires", .arg = "DURATION",
		.help = "do not start any attempt or retry later than this after the slot"},
	{.name = "overlap", .type = FIELD_TEXT, .offset = AT(overlap), .min = 1, .max = 16, .flag = "overlap",
		.arg = "skip|queue[:N]|replace|allow", .check = check_overlap,
		.help = "what to do with a slot while an earlier run is running (skip)"},
	{.name = "max_running", .type = FIELD_INT, .offset = AT(max_running), .max = 10000,
		.flag = "max-running", .arg = "N", .help = "with --overlap allow: running runs of this job; 0: no limit"},
	{.name = "rate", .type = FIELD_TEXT, .offset = AT(rate), .min = 1, .max = 64, .flag = "rate",
		.arg = "N/DURATION[:BURST]", .check = check_rate, .help = "limit of starts of this job, as 10/1h"},
	{.name = "queue", .type = FIELD_TEXT, .offset = AT(queue), .min = 1, .max = 128, .flag = "queue",
		.short_flag = 'q', .arg = "NAME", .check = check_queue, .help = "queue of the job (default)"},
	{.name = "when", .type = FIELD_LIST, .offset = AT(when), .max = 8, .flag = "when", .arg = "CONDITION",
		.check = check_when, .help = "start only while load<N, cpu<N, memory<N or io<N; repeatable"},
	{.name = "node_labels", .type = FIELD_LIST, .offset = AT(node_labels), .max = 8, .flag = "node-label", .arg = "KEY=VALUE",
		.check = check_node_label, .help = "start only on nodes with this label; repeatable"},
	{.name = "retries", .type = FIELD_INT, .offset = AT(retries), .max = 1000, .flag = "retries", .arg = "N",
		.help = "further attempts after a failure or timeout (0)"},
	{.name = "backoff", .type = FIELD_TEXT, .offset = AT(backoff), .min = 1, .max = 64, .flag = "backoff",
		.arg = "exp:BASE..CAP|fixed:D", .check = check_backoff,
		.help = "delay before a retry; exp: random within a range that doubles (exp:10s..10m)"},
	{.name = "on_exit", .type = FIELD_TEXT, .offset = AT(on_exit), .min = 1, .max = 1024, .flag = "on-exit",
		.arg = "CODE=ACTION,…", .check = check_on_exit,
		.help = "meaning of exit codes: ok, fail, retry, dead or pause, as 75=retry,0|2=ok"},
	{.name = "run_timeout", .type = FIELD_DURATION, .offset = AT(run_timeout), .max = 366 * USEC_DAY,
		.flag = "run-timeout", .arg = "DURATION", .help = "end a run whose attempts together take longer"},
	{.name = "on_lost", .type = FIELD_CHOICE, .offset = AT(on_lost), .max = ON_LOST_MAX - 1,
		.choices = on_lost_names, .flag = "on-lost", .arg = "rerun|fail",
		.help = "what to do if the machine or the spawner failed during the run (rerun)"},
	{.name = "leftovers", .type = FIELD_CHOICE, .offset = AT(leftovers), .max = LEFTOVERS_MAX - 1,
		.choices = leftovers_names, .flag = "leftovers", .arg = "end|keep",
		.help = "what to do with processes that the command left in the background (end)"},
	{.name = "notify", .type = FIELD_LIST, .offset = AT(notify), .max = 8, .flag = "notify", .arg = "CHANNEL",
		.check = check_notify,
		.help = "send notices of failure and recovery to mail:ADDRESS, webhook:URL or exec:COMMAND; repeatable"},
	{.name = "secrets", .type = FIELD_MAP, .offset = AT(secrets), .max = 16, .flag = "secret",
		.arg = "NAME=file:PATH", .check = check_secret_source,
		.help = "file of yours, read at the start; a copy is at $JOBSCHED_SECRET_NAME; repeatable"},
	{.name = "http", .type = FIELD_TEXT, .offset = AT(http), .min = 1, .max = 16, .flag = "http", .arg = "METHOD",
		.check = call_method_check, .help = "send an HTTP request with this method instead of running a command; a URL follows"},
	{.name = "url", .type = FIELD_TEXT, .offset = AT(url), .min = 8, .max = CALL_URL_MAX, .flag = "http-url", .arg = "URL",
		.check = call_url_check, .help = "URL of the request, also as second argument of --http; {secret:NAME} is replaced by a secret"},
	{.name = "headers", .type = FIELD_LIST, .offset = AT(headers), .max = CALL_HEADERS_MAX, .flag = "header",
		.arg = "'NAME: VALUE'", .check = call_header_check,
		.help = "header of the request; {secret:NAME} is replaced by a secret; repeatable"},
	{.name = "body", .type = FIELD_BLOB, .offset = AT(body), .max = CALL_BODY_MAX, .bytes = true, .flag = "body",
		.arg = "TEXT|@FILE", .help = "body of the request: the text, or the content of a file ('@-': standard input)"},
	{.name = "expect_status", .type = FIELD_TEXT, .offset = AT(expect_status), .min = 3, .max = 128, .flag = "expect-status",
		.arg = "LIST", .check = call_statuses_check, .help = "status codes that mean success (200-299)"},
	{.name = "expect_body", .type = FIELD_TEXT, .offset = AT(expect_body), .min = 1, .max = 256, .flag = "expect-body",
		.arg = "REGEX", .check = call_pattern_check,
		.help = "the response must match this extended regular expression"},
	{.name = "expect_size", .type = FIELD_SIZE, .offset = AT(expect_size), .max = 16 << 20, .flag = "expect-size",
		.arg = "SIZE", .help = "a larger response is a failure"},
	{.name = "on_410", .type = FIELD_CHOICE, .offset = AT(on_410), .max = ON_410_MAX - 1, .choices = on_410_names,
		.flag = "on-410", .arg = "fail|suspend", .help = "what to do if the server answers 410 Gone (fail)"},
	{.name = "http_async", .type = FIELD_CHOICE, .offset = AT(http_async), .max = 1, .choices = no_yes_names,
		.flag = "http-async", .arg = "no|yes",
		.help = "the target accepts the request with 202 and reports the end to a callback URL (no)"},
	{.name = "sign", .type = FIELD_LIST, .offset = AT(sign), .max = CALL_SIGN_MAX, .flag = "sign", .arg = "NAME",
		.check = call_secret_name_check,
		.help = "sign the request with this secret, as Standard Webhooks does; repeatable for key rotation"},
	{.name = "tls_ca", .type = FIELD_TEXT, .offset = AT(tls_ca), .min = 1, .max = 64, .flag = "tls-ca", .arg = "NAME",
		.check = call_secret_name_check, .help = "secret with the CA certificates that the server is verified with"},
	{.name = "tls_cert", .type = FIELD_TEXT, .offset = AT(tls_cert), .min = 1, .max = 64, .flag = "tls-cert", .arg = "NAME",
		.check = call_secret_name_check, .help = "secret with the client certificate"},
	{.name = "tls_key", .type = FIELD_TEXT, .offset = AT(tls_key), .min = 1, .max = 64, .flag = "tls-key", .arg = "NAME",
		.check = call_secret_name_check, .help = "secret with the key of the client certificate"},
	{.name = "kafka", .type = FIELD_TEXT, .offset = AT(kafka), .min = 3, .max = KAFKA_TARGET_MAX, .flag = "kafka",
		.arg = "BROKERS/TOPIC", .check = kafka_target_check,
		.help = "send a message to a Kafka topic instead of running a command, as kafka1:9092,kafka2:9092/orders"},
	{.name = "message_key", .type = FIELD_TEXT, .offset = AT(message_key), .min = 1, .max = KAFKA_KEY_MAX, .bytes = true,
		.flag = "message-key", .arg = "KEY", .help = "key of the Kafka message; it selects the partition"},
	{.name = "message", .type = FIELD_BLOB, .offset = AT(message), .max = CALL_BODY_MAX, .bytes = true, .flag = "message",
		.arg = "TEXT|@FILE", .help = "Kafka message: the text, or the content of a file ('@-': standard input)"},
	{.name = "kafka_tls", .type = FIELD_CHOICE, .offset = AT(kafka_tls), .max = 1, .choices = no_yes_names,
		.flag = "kafka-tls", .arg = "no|yes", .help = "connect to the brokers with TLS; --tls-ca and --tls-cert imply it (no)"},
	{.name = "sasl", .type = FIELD_TEXT, .offset = AT(sasl), .min = 1, .max = 32, .flag = "sasl",
		.arg = "PLAIN|SCRAM-SHA-256|SCRAM-SHA-512", .check = kafka_mechanism_check,
		.help = "how the Kafka brokers authenticate the producer; needs --sasl-user and --sasl-password"},
	{.name = "sasl_user", .type = FIELD_TEXT, .offset = AT(sasl_user), .min = 1, .max = 64, .flag = "sasl-user",
		.arg = "NAME", .check = call_secret_name_check, .help = "secret with the user name for --sasl"},
	{.name = "sasl_password", .type = FIELD_TEXT, .offset = AT(sasl_password), .min = 1, .max = 64, .flag = "sasl-password",
		.arg = "NAME", .check = call_secret_name_check, .help = "secret with the password for --sasl"},
	{.name = "lambda", .type = FIELD_TEXT, .offset = AT(lambda), .min = 1, .max = LAMBDA_TARGET_MAX, .flag = "lambda",
		.arg = "FUNCTION[:QUALIFIER]", .check = lambda_target_check,
		.help = "invoke an AWS Lambda function with --body instead of running a command; needs --region"},
	{.name = "region", .type = FIELD_TEXT, .offset = AT(region), .min = 1, .max = LAMBDA_REGION_MAX, .flag = "region",
		.arg = "REGION", .check = lambda_region_check, .help = "AWS region of the function, as eu-central-1"},
	{.name = "lambda_event", .type = FIELD_CHOICE, .offset = AT(lambda_event), .max = 1, .choices = no_yes_names,
		.flag = "lambda-event", .arg = "no|yes", .help = "let Lambda queue the invocation, and do not wait for the function (no)"},
	{.name = "artifact", .type = FIELD_TEXT, .offset = AT(artifact), .min = 1, .max = 2048, .flag = "artifact",
		.arg = "URL", .check = check_artifact,
		.help = "archive or program, fetched before the start to $JOBSCHED_ARTIFACT; needs --sha256"},
	{.name = "sha256", .type = FIELD_TEXT, .offset = AT(sha256), .min = 1, .max = 128, .flag = "sha256",
		.arg = "SUM", .check = check_artifact_sum, .help = "SHA-256 of the artifact"},
	{.name = "template", .type = FIELD_TEXT, .offset = AT(template), .min = 1, .max = 128, .flag = "template",
		.arg = "NAME", .check = check_template, .help = "create the job from this template"},
	{.name = "traceparent", .type = FIELD_TEXT, .offset = AT(traceparent), .min = TRACE_PARENT_LEN, .max = TRACE_PARENT_LEN,
		.check = check_traceparent, .quiet = true,
		.help = "W3C trace context of the submission; the header traceparent sets it as well"},
	{.name = "tracestate", .type = FIELD_TEXT, .offset = AT(tracestate), .min = 1, .max = TRACE_STATE_MAX,
		.check = check_tracestate, .quiet = true, .help = "the tracestate that belongs to traceparent"},
	{.name = "baggage", .type = FIELD_TEXT, .offset = AT(baggage), .min = 1, .max = TRACE_BAGGAGE_MAX,
		.check = check_baggage, .quiet = true, .help = "W3C baggage of the submission; passed on in $BAGGAGE"},
	{.name = "warrant", .type = FIELD_TEXT, .offset = AT(warrant), .min = WARRANT_TEXT_FIRST, .max = WARRANT_TEXT, .check = check_warrant,
		.quiet = true,
		.help = "approval of what the job starts, by root or the owner; jobctl requests it if required"},
	{.name = "origin", .type = FIELD_TEXT, .offset = AT(origin), .min = 1, .max = 4200, .bytes = true, .quiet = true,
		.help = "file and line of the crontab that the job comes from; set by the daemon"},
	{.name = "params", .type = FIELD_MAP, .offset = AT(params), .max = 64, .bytes = true, .flag = "param",
		.arg = "NAME=VALUE", .check = check_param,
		.help = "value of {NAME} in the command, also set in its environment; repeatable"},
};
const size_t job_fields_count = ELEMENTS(job_fields);

const struct job_field *job_field_find(const char *name)
{
	for (size_t i = 0; i < job_fields_count; i++)
		if (job_fields[i].name[0] == name[0] && strcmp(job_fields[i].name, name) == 0)
			return &job_fields[i];
	return NULL;
}

static bool parse_octal(const char *text, int64_t *ret)
{
	size_t len = strlen(text);

	if (len == 0 || len > 8 || strspn(text, "01234567") != len)
		return false;
	for (*ret = 0; *text; text++)
		*ret = *ret * 8 + (*text - '0');
	return true;
}

static bool parse_choice(const struct job_field *f, const char *text, int64_t *ret, struct err *e)
{
	for (int64_t i = 0; i <= f->max; i++)
		if (strcmp(f->choices[i], text) == 0) {
			*ret = i;
			return true;
		}
	return err_field(e, f->name, "'%.40s' is not one of %s", text, f->arg);
}

static bool parse_number(const struct job_field *f, const char *text, int64_t *ret, struct err *e)
{
	struct err why = {};

	switch (f->type) {
	case FIELD_OCTAL:
		return parse_octal(text, ret) ||
		       err_field(e, f->name, "'%.40s' is not an octal number like 022", text);
	case FIELD_SIZE:
		return text_parse_size(text, ret) ||
		       err_field(e, f->name, "'%.40s' is not a size; write 4096, 64K, 10M or 1G", text);
	case FIELD_DURATION:
		if (f->min == 0 && (!strcmp(text, "0") || !strcmp(text, "0s"))) {
			*ret = 0;
			return true;
		}
		return duration_parse(text, ret, &why) || err_field(e, f->name, "%s", why.msg);
	case FIELD_TIME:
		return rfc3339_parse(text, ret, &why) || err_field(e, f->name, "%s", why.msg);
	case FIELD_CHOICE:
		return parse_choice(f, text, ret, e);
	default:
		return text_parse_int(text, INT64_MIN, INT64_MAX, ret) ||
		       err_field(e, f->name, "'%.40s' is not a whole number", text);
	}
}

bool job_field_parse(const struct job_field *f, const char *text, int64_t *ret, struct err *e)
{
	int64_t n = 0;

	if (!parse_number(f, text, &n, e))
		return false;
	if (n < f->min || n > f->max) {
		AUTO_TEXT min = job_field_print(f, f->min);
		AUTO_TEXT max = job_field_print(f, f->max);

		return err_field(e, f->name, "'%.40s' is out of range: %s to %s", text, min, max);
	}
	*ret = n;
	return true;
}

char *job_field_print(const struct job_field *f, int64_t n)
{
	char text[RFC3339_MAX];

	switch (f->type) {
	case FIELD_OCTAL:
		return xprintf("%03" PRIo64, (uint64_t)n);
	case FIELD_DURATION:
		return xstrdup(duration_format(n, text));
	case FIELD_TIME:
		return xstrdup(rfc3339_format(n, text));
	case FIELD_CHOICE:
		return xstrdup(n >= 0 && n <= f->max ? f->choices[n] : "unknown");
	default:
		return xprintf("%" PRId64, n);
	}
}
