/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the content of a notice and formats it for each kind of channel. */
#include "daemon/notify/notice_message.h"
#include "base/auto.h"
#include "base/err.h"
#include "core/start/exec_spec_build.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/start/start_plan.h"
#include "daemon/notify/cron_mail.h"
#include "daemon/notify/mail.h"
#include "daemon/loop/warrants.h"
#include "exec/proto/output_file.h"
#include "store/lists.h"
#include "store/notice_row.h"
#include "store/read/single.h"
#include "store/store.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include "wire/spec_json.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SEND_TIMEOUT USEC_MIN
#define SEND_GRACE (5 * USEC_SEC)
#define OUTPUT_MAIL_MAX (10 << 20) /* bytes of output in a mail of NOTICE_KIND_OUTPUT */
#define SEND_OUTPUT 4096 /* bytes kept of the output of the command */

void notice_message_done(struct notice_message *l)
{
	job_free(l->job);
	run_free(l->run);
	run_free(l->last_success);
	free(l->node);
	free(l->error);
	strv_done(&l->changed);
	buf_done(&l->output);
	free(l->output_missing);
	free(l->id);
	buf_done(&l->subject);
	buf_done(&l->body);
	*l = (struct notice_message){};
}

/* ---- reading ---- */

/* Missing rows are no error: the notice contains what is known. */
static bool or_gone(bool found, struct err *e)
{
	if (!found && e->kind == ERR_NOT_FOUND) {
		*e = (struct err){};
		return true;
	}
	return found;
}

static bool read_run(struct store *s, int64_t id, struct run **ret, struct err *e)
{
	return id == 0 || or_gone(store_run_get(s, -1, id, ret, e), e);
}

static bool read_error(struct notice_message *l, struct store *s, struct err *e)
{
	AUTO_DONE(attempt_list) tries = {};

	if (!l->run)
		return true;
	if (!store_attempts(s, l->run->id, &tries, e))
		return false;
	if (tries.n > 0)
		l->error = xstrdup(tries.v[tries.n - 1]->error);
	return !l->run->node || store_node_name(s, l->run->node, &l->node, e);
}

static bool read_revision_spec(const struct notice_message *l, struct store *s, int64_t revision, struct job_spec *ret, bool *known,
	struct err *e)
{
	AUTO_TEXT old = NULL;

	if (revision != l->job->revision && !store_revision_spec(s, l->job->id, revision, &old, e))
		return false;
	*known = revision == l->job->revision ? spec_json_from_text(l->job->spec, ret, NULL)
					      : old && spec_json_from_text(old, ret, NULL);
	return true;
}

static bool read_changes(struct notice_message *l, struct store *s, struct err *e)
{
	AUTO_DONE(job_spec) before;
	AUTO_DONE(job_spec) after;
	bool known_before = false, known_after = false;

	job_spec_init(&before);
	job_spec_init(&after);
	if (!l->job || !l->run || !l->last_success || l->run->revision == l->last_success->revision)
		return true;
	if (!read_revision_spec(l, s, l->last_success->revision, &before, &known_before, e) ||
	    !read_revision_spec(l, s, l->run->revision, &after, &known_after, e))
		return false;
	l->changed_known = known_before && known_after;
	if (l->changed_known)
		notice_text_changed_fields(&before, &after, &l->changed);
	return true;
}

bool notice_message_read(struct notice_message *l, struct store *s, const struct notice *n, struct err *e)
{
	json_auto_t *detail = n->detail ? json_read(n->detail, strlen(n->detail), 4096, NULL) : NULL;
	int64_t last = json_integer_value(json_object_get(detail, "last_success"));

	l->notice = n;
	l->typical = json_integer_value(json_object_get(detail, "typical"));
	return or_gone(store_job_get(s, -1, n->job, &l->job, e), e) && read_run(s, n->run, &l->run, e) &&
	       read_run(s, last, &l->last_success, e) && read_error(l, s, e) && read_changes(l, s, e);
}

/* ---- the end of the output ---- */

static bool read_message_tail(struct notice_message *l, int fd, struct err *e)
{
	struct output_file_extent at;
	int64_t offset;

	const int64_t max = l->notice->kind == NOTICE_KIND_OUTPUT ? OUTPUT_MAIL_MAX : NOTICE_OUTPUT_MAX;

	if (!output_file_stat(fd, &at, e))
		return false;
	offset = at.total > max && l->notice->kind != NOTICE_KIND_OUTPUT ? at.total - max : 0;
	l->output_cut = offset > 0;
	while (offset < at.total && (int64_t)l->output.len < max) {
		const size_t room = (size_t)(max - (int64_t)l->output.len) < NOTICE_OUTPUT_MAX ? (size_t)(max - (int64_t)l->output.len)
										       : NOTICE_OUTPUT_MAX;
		char *to = buf_room(&l->output, room);
		size_t n = 0;

		if (!output_file_read(fd, offset, to, room, &offset, &n, e))
			return false;
		if (n == 0)
			break;
		l->output.len += n;
		offset += (int64_t)n;
	}
	return true;
}

static void read_output(struct notice_message *l, int output_dir)
{
	struct err e = {};
	AUTO_FD fd = -1;

	if (!l->run || l->run->attempt == 0)
		return;
	fd = output_file_open(output_dir, l->run->id, l->run->attempt);
	if (fd == -ENOENT)
		return; /* there is no output */
	if (fd < 0)
		err_errno(&e, -fd, "could not open it");
	else
		read_message_tail(l, fd, &e);
	if (e.kind != ERR_NONE)
		l->output_missing = xstrdup(e.msg);
}

static struct notice_facts facts_of(const struct notice_message *l)
{
	const struct notice *n = l->notice;

	return (struct notice_facts){
		.kind = n->kind,
		.job = n->job,
		.job_name = n->job_name,
		.owner = n->owner,
		.node = l->node,
		.run = l->run,
		.error = l->error,
		.at = n->created_at,
		.typical = l->typical,
		.job_paused = l->job && l->job->state == JOB_PAUSED && n->kind == NOTICE_KIND_FAILED,
		.job_reason = l->job ? l->job->reason : NULL,
		.last_success = l->last_success,
		.changed = l->changed_known ? &l->changed : NULL,
		.output = l->output.data,
		.output_len = l->output.len,
		.output_cut = l->output_cut,
		.output_missing = l->output_missing,
	};
}

void notice_message_write(struct notice_message *l, int output_dir, const char *store_id, const char *node_name)
{
	struct notice_facts f;

	read_output(l, output_dir);
	if (!l->node && l->notice->kind == NOTICE_KIND_TEST)
		l->node = xstrdup(node_name);
	l->id = xprintf("%s-%" PRId64, store_id, l->notice->id);
	f = facts_of(l);
	notice_text_subject(&f, &l->subject);
	notice_text_body(&f, &l->body);
}

/* ---- for each kind of channel ---- */

/* The last lines of the output. JSON does the escaping; bytes that are not UTF-8 become U+FFFD. */
static json_t *output_json(const struct notice_message *l)
{
	size_t from = l->output.len ? notice_text_last_lines(l->output.data, l->output.len, NOTICE_LINES) : 0;
	AUTO_DONE(buf) text = {};

	while (from < l->output.len) {
		const char *at = l->output.data + from;
		size_t n = 1;

		while (n < 4 && from + n < l->output.len && !text_utf8_valid(at, n))
			n++;
		if (!text_utf8_valid(at, n)) {
			buf_str(&text, "\xef\xbf\xbd");
			n = 1;
		} else {
			buf_add(&text, at, n);
		}
		from += n;
	}
	return text.len ? json_stringn(text.data, text.len) : json_null();
}

json_t *notice_message_json(const struct notice_message *l)
{
	const struct notice *n = l->notice;
	json_t *changed = json_array(), *o;

	for (size_t i = 0; i < l->changed.n; i++)
		json_array_append_new(changed, json_value_text(l->changed.v[i]));
	o = json_pack("{s:o, s:s, s:I, s:o, s:{s:I, s:o, s:o, s:I}, s:o, s:o, s:o, s:o, s:o, s:o}",
		"notice", json_value_text(l->id), "kind", notice_kind_name(n->kind), "try", (json_int_t)n->tries,
		"happened_at", json_value_time(n->created_at),
		"job", "id", (json_int_t)n->job, "name", json_value_text(n->job_name), "owner", json_value_text(n->owner),
		"uid", (json_int_t)owner_uid(n->uid),
		"run", l->run ? row_json_run(l->run) : json_null(),
		"node", json_value_text(l->node), "subject", json_value_text(l->subject.data), "text", json_value_text(l->body.data),
		"output", output_json(l), "changed", changed);
	json_object_set_new(o, "last_success", l->last_success ? json_integer((json_int_t)l->last_success->id) : json_null());
	return o;
}

/* One line NAME=value, the form that the spawner accepts. */
static char *text_line(const char *name, const char *value)
{
	AUTO_DONE(buf) b = {};

	buf_printf(&b, "%s=", name);
	text_escape(&b, value, strnlen(value, START_PLAN_VAR_MAX / 8));
	return buf_steal(&b);
}

static void put_env(struct start_plan *p, const char *name, const char *value)
{
	strv_take(&p->vars, text_line(name, value ? value : ""));
}

static void put_env_number(struct start_plan *p, const char *name, int64_t value)
{
	strv_take(&p->vars, xprintf("%s=%" PRId64, name, value));
}

static void put_all_env(const struct notice_message *l, struct start_plan *p)
{
	const struct notice *n = l->notice;

	put_env(p, "JOBSCHED_NOTICE", l->id);
	put_env(p, "JOBSCHED_NOTICE_KIND", notice_kind_name(n->kind));
	put_env(p, "JOBSCHED_NOTICE_SUBJECT", l->subject.data);
	put_env_number(p, "JOBSCHED_NOTICE_TRY", n->tries);
	put_env_number(p, "JOBSCHED_JOB", n->job);
	put_env(p, "JOBSCHED_NAME", n->job_name);
	put_env(p, "JOBSCHED_NODE", l->node);
	if (!l->run)
		return;
	put_env_number(p, "JOBSCHED_NOTICE_RUN", l->run->id);
	put_env(p, "JOBSCHED_NOTICE_STATE", run_state_name(l->run->state));
	put_env(p, "JOBSCHED_NOTICE_REASON", l->run->reason);
	put_env_number(p, "JOBSCHED_NOTICE_EXIT_CODE", l->run->exit_code);
	put_env_number(p, "JOBSCHED_NOTICE_SIGNAL", l->run->term_signal);
	put_env_number(p, "JOBSCHED_NOTICE_ATTEMPTS", l->run->attempt);
}

/* Builds the exec spec of the job for this notice command; false: the job does not have the command any more. */
static bool part_of_job(const struct notice_message *l, const char *command, struct start_plan *p)
{
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	job_spec_init(&spec);
	if (!l->job || !spec_json_from_text(l->job->spec, &spec, &e))
		return false;
	exec_spec_build(&p->spec, &(struct exec_spec_source){.spec = &spec, .uid = owner_uid(l->job->uid), .owner = l->job->owner});
	for (size_t i = 0; i < p->spec.notices.n; i++)
		if (strcmp(p->spec.notices.v[i], command) == 0)
			p->part = (int64_t)i + 1;
	if (!p->part)
		exec_spec_done(&p->spec);
	else
		warrants_put(p, spec.warrant);
	return p->part != 0;
}

/* A command that no job has: the mail program, or a command that the job had before a change. */
static void bare_exec_spec(struct exec_spec *o, int64_t uid, const char *owner)
{
	exec_spec_init(o);
	o->uid = uid;
	o->owner = xstrdup(owner);
	o->umask = 022;
}

static void plan_command(const struct notice_message *l, const char *command, struct start_plan *p)
{
	bare_exec_spec(&p->spec, owner_uid(l->notice->uid), l->notice->owner);
	strv_add(&p->spec.argv, "/bin/sh");
	strv_add(&p->spec.argv, "-c");
	strv_add(&p->spec.argv, command);
}

static void plan_exec(const struct notice_message *l, const char *command, struct start_plan *p)
{
	if (!part_of_job(l, command, p))
		plan_command(l, command, p);
}

static void plan_mail(const struct notice_message *l, const struct notice_message_target *how, struct start_plan *p)
{
	bare_exec_spec(&p->spec, how->as ? how->as_uid : owner_uid(l->notice->uid), how->as ? how->as : l->notice->owner);
	p->spec.sandbox = xstrdup("compat"); /* mail programs are set-group-ID to reach their queue */
	strv_add(&p->spec.argv, how->sendmail);
	strv_add(&p->spec.argv, "-oi");
	strv_add(&p->spec.argv, "--");
	strv_add(&p->spec.argv, how->to);
}

/*
 * The command of output: is part of the job, so a warrant of the job covers it. A job that needs no
 * warrant may have a sandbox in which mail programs do not work; its mail is sent without it.
 */
static void plan_output(const struct notice_message *l, const struct notice_message_target *how, struct start_plan *p, struct buf *in)
{
	AUTO_DONE(job_spec) spec;

	job_spec_init(&spec);
	if (l->job)
		(void)spec_json_from_text(l->job->spec, &spec, NULL);
	if (!spec.warrant || !part_of_job(l, how->command, p)) {
		plan_command(l, how->command, p);
		p->spec.sandbox = xstrdup("compat");
	}
	if (l->notice->kind == NOTICE_KIND_OUTPUT)
		cron_mail_write(&(struct cron_mail){.spec = &spec, .owner = l->notice->owner, .to = how->to, .host = how->host,
			.output = l->output.data, .output_len = l->output.len}, in);
	else
		mail_write(&(struct mail){.from_user = l->notice->owner, .from_host = how->host, .to = how->to,
			.subject = l->subject.data, .id = l->id, .text = l->body.data, .date = how->now}, in);
}

void notice_message_plan(const struct notice_message *l, const struct notice_message_target *how, struct start_plan *ret)
{
	AUTO_DONE(buf) in = {};

	*ret = (struct start_plan){.run = -l->notice->id, .fence = l->notice->tries, .attempt = l->notice->tries,
		.timeout = SEND_TIMEOUT, .grace = SEND_GRACE, .output_limit = SEND_OUTPUT};
	put_all_env(l, ret);
	if (how->command && how->mails_output) {
		plan_output(l, how, ret, &in);
	} else if (how->command) {
		plan_exec(l, how->command, ret);
		buf_add(&in, l->body.data, l->body.len);
	} else {
		plan_mail(l, how, ret);
		mail_write(&(struct mail){.from_user = l->notice->owner, .from_host = how->host, .to = how->to,
			.subject = l->subject.data, .id = l->id, .text = l->body.data, .date = how->now}, &in);
	}
	ret->stdin_data.len = in.len;
	ret->stdin_data.data = buf_steal(&in);
}
