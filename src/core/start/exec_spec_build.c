/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the execution specification of a job from its definition. jobctl, which requests the
 * warrant, and the daemon, which starts the job, must get the same bytes.
 */
#include "base/sha256.h"
#include "core/start/exec_spec_build.h"
#include "core/job/job.h"
#include "core/job/limits.h"
#include "core/start/exec_spec.h"
#include "core/job/params.h"
#include "core/job/policy.h"
#include "core/job/warrant.h"
#include <inttypes.h>
#include <string.h>

static void hash_stdin(struct exec_spec *o, const struct blob *in)
{
	struct sha256 h;

	if (!in->data)
		return;
	o->stdin_hash = (struct blob){xcalloc(1, SHA256_LEN + 1), SHA256_LEN};
	sha256_init(&h);
	sha256_add(&h, in->data, in->len);
	sha256_end(&h, (unsigned char *)o->stdin_hash.data);
}

static void list_notices(struct exec_spec *o, const struct strv *channels)
{
	for (size_t i = 0; i < channels->n; i++) {
		enum notify_channel channel;
		const char *target;

		if (!policy_notify_parse(channels->v[i], &channel, &target, NULL))
			continue;
		if (channel == NOTIFY_EXEC)
			strv_add(&o->notices, target);
		else if (channel == NOTIFY_OUTPUT)
			strv_take(&o->notices, policy_output_command(target));
	}
}

/* The values were checked when the job was submitted, so parse errors cannot occur here. */
static void set_limits(struct exec_spec *o, const struct job_spec *s)
{
	o->mem = s->mem;
	o->pids = s->pids;
	o->nice = s->nice;
	if (s->cpu)
		(void)limit_cpu_parse(s->cpu, &o->cpu, NULL);
	if (s->ionice)
		(void)limit_ionice_parse(s->ionice, &o->ionice, NULL);
	for (size_t i = 0; i < s->limits.n; i++) {
		char *plain = limit_resource_print(s->limits.v[i]);

		if (plain)
			strv_take(&o->limits, plain);
	}
}

/*
 * The identity and the name are included only if the job was approved, so that other encodings stay
 * unchanged.
 */
static void set_identity(struct exec_spec *o, const struct job_spec *s)
{
	unsigned char job[WARRANT_JOB_LEN];

	if (!warrant_job(s->warrant, job))
		return;
	o->job = (struct blob){xcalloc(1, WARRANT_JOB_LEN + 1), WARRANT_JOB_LEN};
	memcpy(o->job.data, job, WARRANT_JOB_LEN);
	o->name = xstrdup(s->name);
}

/*
 * The kernel evaluates a '#!' line only in a file. So a small shell program writes the script to an
 * unlinked temporary file, which the interpreter opens as descriptor JOB_SCRIPT_FD, the highest one
 * that every shell supports. The secrets of the job use the descriptors from 3 on.
 */
static const char interpreted[] =
	"_jobsched_script=$(mktemp) && printf %s \"$1\" >\"$_jobsched_script\" && exec 9<\"$_jobsched_script\" &&\n"
	"rm -f \"$_jobsched_script\" || { echo 'jobsched: could not write the script to a temporary file' >&2; exit 126; }\n"
	"unset _jobsched_script; shift; exec \"$@\" /dev/fd/9\n";

/*
 * A warrant of the first version covers the script as an argument of /bin/sh -c, even if it has a
 * '#!' line.
 */
static void set_script(struct strv *argv, const char *script, const char *approval)
{
	unsigned char job[WARRANT_JOB_LEN];
	AUTO_TEXT program = NULL;
	AUTO_TEXT arg = NULL;

	strv_add(argv, "/bin/sh");
	strv_add(argv, "-c");
	if ((approval && !warrant_job(approval, job)) || !job_script_program(script, &program, &arg)) {
		strv_add(argv, script);
		return;
	}
	strv_add(argv, interpreted);
	strv_add(argv, "jobsched");
	strv_add(argv, script);
	strv_take(argv, STEAL(program));
	if (arg)
		strv_take(argv, STEAL(arg));
}

/* The gate has no standard input, which is for the command. */
static const char gated[] =
	"command -p timeout \"$2\" /bin/sh -c \"$1\" jobsched </dev/null; _jobsched_gate=$?\n"
	"[ $_jobsched_gate = 0 ] || { echo $_jobsched_gate >\"$JOBSCHED_GATE\"; exit $_jobsched_gate; }\n"
	"unset JOBSCHED_GATE _jobsched_gate; shift 2; exec \"$@\"\n";

/* Puts the gate before the command. */
static void set_gate(struct exec_spec *o, const struct job_spec *s)
{
	struct strv argv = {};

	if (!s->gate)
		return;
	o->gate = 1;
	strv_add(&argv, "/bin/sh");
	strv_add(&argv, "-c");
	strv_add(&argv, gated);
	strv_add(&argv, "jobsched");
	strv_add(&argv, s->gate);
	strv_take(&argv, xprintf("%" PRId64 ".%06" PRId64, s->gate_timeout / USEC_SEC, s->gate_timeout % USEC_SEC));
	for (size_t i = 0; i < o->argv.n; i++)
		strv_add(&argv, o->argv.v[i]);
	strv_done(&o->argv);
	o->argv = argv;
}

void exec_spec_build(struct exec_spec *o, const struct exec_spec_source *from)
{
	const struct job_spec *s = from->spec;

	exec_spec_init(o);
	o->uid = from->uid;
	o->owner = xstrdup(from->owner);
	o->tz = s->origin ? NULL : xstrdup(s->tz); /* cron does not set TZ */
	o->cwd = xstrdup(s->cwd);
	o->umask = s->umask;
	o->sandbox = xstrdup(s->sandbox);
	set_limits(o, s);
	params_merge(&s->params, from->params, &o->params);
	if (s->script)
		set_script(&o->argv, s->script, s->warrant);
	else
		params_expand(&s->command, &o->params, &o->argv);
	strv_copy(&o->env, &s->env);
	o->cron = s->origin != NULL;
	o->heartbeat = s->heartbeat;
	o->heartbeat_on_output = s->heartbeat && s->heartbeat_on_output;
	o->results = s->results;
	o->checkpoint = s->checkpoint;
	set_gate(o, s);
	o->leaves = s->leftovers == LEFTOVERS_KEEP;
	hash_stdin(o, &s->stdin_data);
	strv_copy(&o->secrets, &s->secrets);
	o->artifact = xstrdup(s->artifact);
	o->sha256 = xstrdup(s->sha256);
	list_notices(o, &s->notify);
	set_identity(o, s);
}
