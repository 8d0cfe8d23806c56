/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the spawner for warrants that the daemon requires. */
#include "jobctl/warrant_supply.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "core/start/exec_spec.h"
#include "core/start/exec_spec_build.h"
#include "core/job/job.h"
#include "core/job/params.h"
#include "exec/proto/warrant_client.h"
#include "jobctl/api.h"
#include "jobctl/approval.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/ref.h"
#include "jobctl/spec/job_object.h"
#include "wire/json_value.h"
#include "wire/params_json.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define MEMBER "warrant"

bool warrant_supply_needed(const struct err *e)
{
	return e->kind == ERR_DENIED && strcmp(e->field, MEMBER) == 0;
}

/* ---- spawner ---- */

/*
 * In the directory of the daemon's socket. Root uses the spawner's main socket, other users the one
 * for warrants only.
 */
static char *spawner_socket(const struct ctl *c)
{
	const char *slash = c->socket ? strrchr(c->socket, '/') : NULL;
	const char *name = geteuid() == 0 ? "spawner.sock" : "warrant.sock";

	return slash ? xprintf("%.*s/%s", (int)(slash - c->socket), c->socket, name) : NULL;
}

/*
 * Requests a new warrant for these bytes. With 'check': asks whether that warrant is valid for
 * them; 'ret' may be NULL.
 */
static bool request_from_spawner(const struct ctl *c, const struct warrant_subject *t,
	const char *check, unsigned char ret[WARRANT_LEN], struct err *e)
{
	AUTO_TEXT socket = spawner_socket(c);
	unsigned char old[WARRANT_LEN], new[WARRANT_LEN];

	if (!socket)
		return err_set(e, ERR_INTERNAL, "cannot find the socket of the spawner");
	if (check && !warrant_parse(check, old))
		return err_set(e, ERR_DENIED, "it has no warrant");
	if (!warrant_client_request(&(struct warrant_query){.socket = socket,
					    .subject = *t,
					    .check = check ? old : NULL},
		    new, e))
		return false;
	if (ret)
		memcpy(ret, new, WARRANT_LEN);
	return true;
}

/* ---- what is approved ---- */

/* The subject of an approval: the definition of a job, its owner, and the parameters of a run. */
struct subject {
	const struct job_spec *spec;
	int64_t uid;
	const char *owner;
	const struct strv *params;          /* NULL: those of the job */
	unsigned char job[WARRANT_JOB_LEN]; /* identity of the job */
	bool confirm;                       /* a part of it came from the daemon */
};

/*
 * The identity of a job at its first approval. It follows from the owner and the name, which no two
 * jobs share, or from the idempotency key, so that a repeated submission has the same warrant; a
 * job with neither has a random one.
 */
static void identity_new(struct subject *s, const char *key)
{
	const char *kind = s->spec->name ? "name" : "key",
		   *text = s->spec->name ? s->spec->name : key;
	AUTO_TEXT owner = xprintf("%" PRId64, s->uid);
	unsigned char sum[SHA256_LEN];
	struct sha256 h;

	if (!text) {
		io_random(s->job, sizeof(s->job));
		return;
	}
	sha256_init(&h);
	sha256_add(&h, kind, strlen(kind) + 1);
	sha256_add(&h, owner, strlen(owner) + 1);
	sha256_add(&h, text, strlen(text));
	sha256_end(&h, sum);
	memcpy(s->job, sum, sizeof(s->job));
}

/*
 * Brings the definition into the daemon's form: sorted map members, and a time zone that is always
 * set.
 */
static bool normalise(const struct job_spec *s, struct job_spec *ret, struct err *e)
{
	AUTO_TEXT text = spec_json_to_text(s);

	if (!spec_json_from_text(text, ret, e))
		return false;
	if (!ret->tz)
		ret->tz = xstrdup("UTC");
	return true;
}

static bool exec_spec_make(const struct subject *s, struct exec_spec *ret, struct err *e)
{
	const unsigned char none[WARRANT_LEN] = {};
	AUTO_DONE(job_spec) spec;
	char text[WARRANT_HEX];

	job_spec_init(&spec);
	if (!normalise(s->spec, &spec, e))
		return false;
	free(spec.warrant);
	/* The identity is part of what is approved. */
	spec.warrant = xstrdup(warrant_print(s->job, none, text));
	exec_spec_build(ret, &(struct exec_spec_source){.spec = &spec,
				     .uid = s->uid,
				     .owner = s->owner,
				     .params = s->params});
	return true;
}

static bool request_warrant(const struct ctl *c, const struct subject *s, json_t *to, struct err *e)
{
	unsigned char warrant[WARRANT_LEN];
	AUTO_DONE(buf) bytes = {};
	AUTO_DONE(exec_spec) o = {};
	char text[WARRANT_HEX];

	if (!exec_spec_make(s, &o, e) || !exec_spec_encode(&o, &bytes, e) ||
		(s->confirm && !approval_confirm(c, &o, e)) ||
		!request_from_spawner(c,
			&(struct warrant_subject){.kind = WARRANT_OF_ORDER,
				.data = bytes.data,
				.len = bytes.len},
			NULL, warrant, e))
		return false;
	json_object_set_new(to, MEMBER, json_string(warrant_print(s->job, warrant, text)));
	return true;
}

/* ---- a new job ---- */

/* The text of a template that is approved: definition without warrant, parameters and name. */
static void template_text(const char *name, const json_t *definition, const json_t *params,
	struct buf *out)
{
	json_auto_t *o = json_copy((json_t *)definition);

	json_object_del(o, MEMBER);
	json_object_set(o, "params", json_is_object(params) ? (json_t *)params : json_object());
	json_object_set_new(o, "name", json_string(name)); /* a definition contains no name */
	json_value_write(o, out);
}

/*
 * {"host": null, "days": "7"} becomes host and days=7: a required parameter and one with a default.
 */
static void declared_params(const json_t *params, struct strv *ret)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)params, name, v)
		strv_take(ret, json_is_string(v) ? xprintf("%s=%s", name, json_string_value(v))
						 : xstrdup(name));
}

static bool merge_with_template(struct ctl *c, const json_t *submission, struct job_spec *s,
	struct err *e)
{
	const char *name = member_text(submission, "template");
	AUTO_TEXT path = xprintf("/v1/templates/%s", name);
	AUTO_DONE(strv) declared = {};
	AUTO_DONE(strv) values = {};
	AUTO_DONE(buf) text = {};
	json_auto_t *t = NULL;
	const json_t *definition;

	if (!api_call(c, "GET", path, NULL, &t, e))
		return false;
	definition = json_object_get(t, "definition");
	template_text(name, definition, json_object_get(t, "params"), &text);
	if (!request_from_spawner(c,
		    &(struct warrant_subject){.kind = WARRANT_OF_TEXT,
			    .data = text.data,
			    .len = text.len},
		    member_text(definition, MEMBER) ? member_text(definition, MEMBER) : "", NULL,
		    e))
		return err_wrap(e,
			"the stored template '%s' is not approved (check it with 'jobctl template show %s', then add it "
			"again with 'jobctl template add %s'; approvals of earlier versions do not include the name)",
			name, name, name);
	declared_params(json_object_get(t, "params"), &declared);
	if (!spec_json_read(definition, s, NULL, e) || !spec_json_merge(submission, s, e) ||
	    !params_overlay(&declared, &s->params, &values, e))
		return false;
	strv_done(&s->params);
	s->params = values;
	values = (struct strv){};
	return true;
}

/* The user named by "as=" in the path, else the caller. User names need no percent-encoding. */
static const struct passwd *owner_of(const char *path)
{
	const char *as = strstr(path, "as=");
	AUTO_TEXT name = as && (as[-1] == '?' || as[-1] == '&')
				 ? xstrndup(as + 3, strcspn(as + 3, "&"))
				 : NULL;

	return name ? getpwnam(name) : getpwuid(geteuid());
}

static bool supply_new(struct ctl *c, const char *path, json_t *body, struct err *e)
{
	const struct passwd *pw = owner_of(path);
	json_auto_t *submission = json_copy(body);
	AUTO_DONE(job_spec) spec;
	struct subject s = {.spec = &spec, .confirm = json_object_get(body, "template") != NULL};

	job_spec_init(&spec);
	json_object_del(submission, "key");
	json_object_del(submission, "if_exists");
	if (!pw)
		return err_set(e, ERR_DENIED,
			"the owner of the new job is not in the user database");
	if (s.confirm ? !merge_with_template(c, submission, &spec, e)
		      : !spec_json_read(submission, &spec, NULL, e))
		return false;
	s.uid = (int64_t)pw->pw_uid;
	s.owner = pw->pw_name;
	identity_new(&s, member_text(body, "key"));
	return request_warrant(c, &s, body, e);
}

/* A null stands for a value that only the daemon knows. */
static bool definition_is_complete(const json_t *definition, struct err *e)
{
	static const char *const maps[] = {"env", "env_b64", "params", "params_b64"};
	const char *name;
	json_t *v;

	for (size_t i = 0; i < ELEMENTS(maps); i++)
		json_object_foreach(json_object_get(definition, maps[i]), name, v)
			if (json_is_null(v))
				return err_set(e, ERR_DENIED,
					"'%s.%.60s' has no value, and a definition that needs a warrant must be "
					"complete; write the value ('jobctl export --reveal' does)",
					maps[i], name);
	return true;
}

bool warrant_supply_definition(struct ctl *c, const char *owner, json_t *definition, struct err *e)
{
	const struct passwd *pw = owner ? getpwnam(owner) : getpwuid(geteuid());
	AUTO_DONE(job_spec) spec;
	struct subject s = {.spec = &spec};

	job_spec_init(&spec);
	if (!pw)
		return err_set(e, ERR_DENIED, "the owner of the jobs is not in the user database");
	if (!definition_is_complete(definition, e) || !spec_json_read(definition, &spec, NULL, e))
		return false;
	s.uid = (int64_t)pw->pw_uid;
	s.owner = pw->pw_name;
	identity_new(&s, NULL);
	return request_warrant(c, &s, definition, e);
}

static bool supply_template(struct ctl *c, const char *path, json_t *body, struct err *e)
{
	unsigned char warrant[WARRANT_LEN];
	AUTO_DONE(buf) text = {};
	char hex[WARRANT_HEX];

	template_text(strrchr(path, '/') + 1, body, json_object_get(body, "params"), &text);
	if (!request_from_spawner(c,
		    &(struct warrant_subject){.kind = WARRANT_OF_TEXT,
			    .data = text.data,
			    .len = text.len},
		    NULL, warrant, e))
		return false;
	json_object_set_new(body, MEMBER, json_string(warrant_print(NULL, warrant, hex)));
	return true;
}

/* ---- an existing job ---- */

static bool fail_not_approved(const json_t *job, const char *why, struct err *e)
{
	return err_set(e, ERR_DENIED,
		"job %" PRId64 " as stored is not approved: %s; check it with 'jobctl show %" PRId64
		"', then approve it with 'jobctl approve %" PRId64 "'",
		member_int(job, "id"), why, member_int(job, "id"), member_int(job, "id"));
}

/*
 * Checks that the daemon answered with the job that the user typed. This detects a wrong job only
 * if a name was typed: numbers are assigned by the daemon.
 */
static bool check_typed_job(const struct ref *typed, const json_t *job, struct err *e)
{
	const char *name = member_text(job, "name");

	if (ref_job_matches(typed, member_int(job, "id"), name))
		return true;
	return err_set(e, ERR_DENIED,
		"the daemon answered with job %" PRId64
		" '%s' to a request for '%s'; nothing was approved",
		member_int(job, "id"), name ? name : "", typed->text);
}

/*
 * Reads the stored job. Fails unless the spawner confirms that its warrant covers the definition,
 * the owner and the name.
 */
static bool approved_job(struct ctl *c, const char *path, json_t **ret_job, struct job_spec *spec,
	struct subject *ret, struct err *e)
{
	AUTO_DONE(buf) bytes = {};
	AUTO_DONE(exec_spec) o = {};
	struct err why = {};
	struct ref typed;

	if (!api_call(c, "GET", path, NULL, ret_job, e) ||
		!job_object_read_spec(*ret_job, spec, e) ||
		(c->job_typed && (!ref_parse(c->job_typed, &typed, e) ||
					 !check_typed_job(&typed, *ret_job, e))))
		return false;
	*ret = (struct subject){.spec = spec,
		.uid = member_int(*ret_job, "uid"),
		.owner = member_text(*ret_job, "owner"),
		.confirm = true};
	if (!spec->warrant)
		return fail_not_approved(*ret_job, "it was never approved", e);
	if (!warrant_job(spec->warrant, ret->job))
		return fail_not_approved(*ret_job,
			"its approval was made by an earlier version and does not include its name",
			e);
	if (!exec_spec_make(ret, &o, e) || !exec_spec_encode(&o, &bytes, e))
		return false;
	if (request_from_spawner(c,
		    &(struct warrant_subject){.kind = WARRANT_OF_ORDER,
			    .data = bytes.data,
			    .len = bytes.len},
		    spec->warrant, NULL, &why))
		return true;
	return why.kind == ERR_DENIED ? fail_not_approved(*ret_job, why.msg, e)
				      : err_set(e, why.kind, "%s", why.msg);
}

static bool supply_change(struct ctl *c, const char *path, json_t *body, struct err *e)
{
	json_auto_t *job = NULL, *patch = json_copy(body);
	AUTO_DONE(job_spec) spec;
	struct subject s;

	job_spec_init(&spec);
	json_object_del(patch, "revision");
	if (!approved_job(c, path, &job, &spec, &s, e) || !spec_json_merge(patch, &spec, e))
		return false;
	if (!json_object_get(body, "revision"))
		json_object_set_new(body, "revision", json_integer(member_int(job, "revision")));
	return request_warrant(c, &s, body, e);
}

static bool supply_run(struct ctl *c, const char *path, json_t *body, struct err *e)
{
	AUTO_TEXT of_job = xstrndup(path, strlen(path) - strlen("/run"));
	json_auto_t *job = NULL;
	AUTO_DONE(strv) params = {};
	AUTO_DONE(job_spec) spec;
	struct subject s;

	job_spec_init(&spec);
	if (!approved_job(c, of_job, &job, &spec, &s, e) ||
		!params_json_read(json_object_get(body, "params"), &params, e))
		return false;
	s.params = &params;
	return request_warrant(c, &s, body, e);
}

bool warrant_supply_approve(struct ctl *c, const struct ref *typed, const json_t *job,
	json_t *patch, struct err *e)
{
	AUTO_DONE(job_spec) spec;
	struct subject s = {.spec = &spec,
		.uid = member_int(job, "uid"),
		.owner = member_text(job, "owner"),
		.confirm = true};

	job_spec_init(&spec);
	if (!check_typed_job(typed, job, e) || !job_object_read_spec(job, &spec, e))
		return false;
	if (!s.owner)
		return err_set(e, ERR_INTERNAL, "the answer of the daemon has no owner");
	if (!warrant_job(spec.warrant, s.job))
		identity_new(&s, NULL);
	return request_warrant(c, &s, patch, e);
}

bool warrant_supply(struct ctl *c, const struct warrant_supply_request *w, json_t **ret,
	struct err *e)
{
	AUTO_TEXT path = xstrndup(w->path, strcspn(w->path, "?"));
	json_auto_t *body = w->body ? json_deep_copy(w->body) : json_object();
	size_t len = strlen(path);
	bool ok;

	if (strcmp(w->method, "PATCH") == 0)
		ok = supply_change(c, path, body, e);
	else if (strcmp(w->method, "PUT") == 0)
		ok = supply_template(c, path, body, e);
	else if (strcmp(path, "/v1/jobs") == 0)
		ok = supply_new(c, w->path, body, e);
	else if (len > 4 && strcmp(path + len - 4, "/run") == 0)
		ok = supply_run(c, path, body, e);
	else
		ok = err_set(e, ERR_DENIED,
			"a warrant is required, and this request cannot contain one");
	if (ok)
		*ret = json_incref(body);
	return ok;
}
