/* SPDX-License-Identifier: Apache-2.0 */
/* Gets the warrant that a request needs. */
#include "warrant.h"
#include "api.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job.h"
#include "core/order.h"
#include "core/params.h"
#include "ctl.h"
#include "exec/warrant.h"
#include "spec_args.h"
#include "wire/codec.h"
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define MEMBER "warrant"

bool warrant_is_missing(const struct err *e)
{
	return e->kind == ERR_DENIED && strcmp(e->field, MEMBER) == 0;
}

/* ---- at the spawner ---- */

/* Beside the daemon's own socket; root has the way that the engine has, an owner one that leads nowhere else. */
static char *spawner_socket(const struct ctl *c)
{
	const char *slash = c->socket ? strrchr(c->socket, '/') : NULL;
	const char *name = geteuid() == 0 ? "spawner.sock" : "warrant.sock";

	return slash ? xprintf("%.*s/%s", (int)(slash - c->socket), c->socket, name) : NULL;
}

/* A new one, or whether 'check' holds. */
static bool ask(const struct ctl *c, const struct warrant_thing *t, const char *check, char ret[WARRANT_HEX],
	struct err *e)
{
	AUTO_TEXT socket = spawner_socket(c);
	unsigned char old[WARRANT_LEN], new[WARRANT_LEN];

	if (!socket)
		return err_set(e, ERR_INTERNAL, "cannot tell where the spawner listens");
	if (check && !warrant_parse(check, old))
		return err_set(e, ERR_DENIED, "it has no warrant");
	if (!warrant_request(&(struct warrant_ask){.socket = socket, .thing = *t, .check = check ? old : NULL}, new, e))
		return false;
	if (ret)
		warrant_print(new, ret);
	return true;
}

/* ---- what it is for ---- */

struct whose {
	int64_t uid;
	const char *owner;
};

/* As the daemon will read it: members of maps in their order, a zone in any case. */
static bool normalise(const struct job_spec *s, struct job_spec *ret, struct err *e)
{
	AUTO_TEXT text = spec_to_text(s);

	if (!spec_from_text(text, ret, e))
		return false;
	if (!ret->tz)
		ret->tz = xstrdup("UTC");
	return true;
}

static bool order_text(const struct job_spec *s, const struct whose *w, const struct strv *params, struct buf *out,
	struct err *e)
{
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(order) o = {};

	job_spec_init(&spec);
	if (!normalise(s, &spec, e))
		return false;
	order_from_spec(&o, &(struct order_source){.spec = &spec, .uid = w->uid, .owner = w->owner, .params = params});
	return order_encode(&o, out, e);
}

static bool approve(const struct ctl *c, const struct job_spec *s, const struct whose *w, const struct strv *params,
	json_t *to, struct err *e)
{
	AUTO_DONE(buf) order = {};
	char hex[WARRANT_HEX];

	if (!order_text(s, w, params, &order, e) ||
	    !ask(c, &(struct warrant_thing){.kind = WARRANT_OF_ORDER, .data = order.data, .len = order.len}, NULL, hex, e))
		return false;
	json_object_set_new(to, MEMBER, json_string(hex));
	return true;
}

/* ---- a new job ---- */

/* The text of a template that is approved: all of it but the approval itself. */
static bool template_text(const json_t *definition, const json_t *params, struct buf *out)
{
	json_auto_t *o = json_copy((json_t *)definition);

	json_object_del(o, MEMBER);
	json_object_set(o, "params", json_is_object(params) ? (json_t *)params : json_object());
	json_write(o, out);
	return true;
}

/* {"host": null, "days": "7"}: those that must and may be given. */
static void declared_params(const json_t *params, struct strv *ret)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)params, name, v)
		strv_take(ret, json_is_string(v) ? xprintf("%s=%s", name, json_string_value(v)) : xstrdup(name));
}

static bool lay_over_template(struct ctl *c, const json_t *submission, struct job_spec *s, struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/templates/%s", member_text(submission, "template"));
	AUTO_DONE(strv) declared = {};
	AUTO_DONE(strv) values = {};
	AUTO_DONE(buf) text = {};
	json_auto_t *t = NULL;
	const json_t *definition;

	if (!api_call(c, "GET", path, NULL, &t, e))
		return false;
	definition = json_object_get(t, "definition");
	template_text(definition, json_object_get(t, "params"), &text);
	if (!ask(c, &(struct warrant_thing){.kind = WARRANT_OF_TEXT, .data = text.data, .len = text.len},
		    member_text(definition, MEMBER), NULL, e))
		return err_wrap(e, "the template '%s' as the daemon has it is not taken", member_text(submission, "template"));
	declared_params(json_object_get(t, "params"), &declared);
	if (!spec_from_json(definition, s, NULL, e) || !spec_merge_json(submission, s, e) ||
	    !params_overlay(&declared, &s->params, &values, e))
		return false;
	strv_done(&s->params);
	s->params = values;
	values = (struct strv){};
	return true;
}

/* By its name, which is as harmless in a path as in the user database. */
static const struct passwd *owner_of(const char *path)
{
	const char *as = strstr(path, "as=");
	AUTO_TEXT name = as && (as[-1] == '?' || as[-1] == '&') ? xstrndup(as + 3, strcspn(as + 3, "&")) : NULL;

	return name ? getpwnam(name) : getpwuid(geteuid());
}

static bool supply_new(struct ctl *c, const char *path, json_t *body, struct err *e)
{
	const struct passwd *pw = owner_of(path);
	json_auto_t *submission = json_copy(body);
	AUTO_DONE(job_spec) s;

	job_spec_init(&s);
	json_object_del(submission, "key");
	json_object_del(submission, "if_exists");
	if (!pw)
		return err_set(e, ERR_DENIED, "whose job it will be is not in the user database");
	if (json_object_get(submission, "template") ? !lay_over_template(c, submission, &s, e)
						    : !spec_from_json(submission, &s, NULL, e))
		return false;
	return approve(c, &s, &(struct whose){(int64_t)pw->pw_uid, pw->pw_name}, NULL, body, e);
}

static bool supply_template(struct ctl *c, json_t *body, struct err *e)
{
	AUTO_DONE(buf) text = {};
	char hex[WARRANT_HEX];

	template_text(body, json_object_get(body, "params"), &text);
	if (!ask(c, &(struct warrant_thing){.kind = WARRANT_OF_TEXT, .data = text.data, .len = text.len}, NULL, hex, e))
		return false;
	json_object_set_new(body, MEMBER, json_string(hex));
	return true;
}

/* ---- a job that is there ---- */

/* The daemon's word for what it was is worth as much as the warrant that comes with it. */
static bool approved_job(struct ctl *c, const char *path, json_t **ret_job, struct job_spec *s, struct err *e)
{
	AUTO_DONE(buf) order = {};
	struct whose w;

	if (!api_call(c, "GET", path, NULL, ret_job, e) || !spec_of_job(*ret_job, s, e))
		return false;
	w = (struct whose){member_int(*ret_job, "uid"), member_text(*ret_job, "owner")};
	if (!order_text(s, &w, NULL, &order, e))
		return false;
	return ask(c, &(struct warrant_thing){.kind = WARRANT_OF_ORDER, .data = order.data, .len = order.len},
		       s->warrant ? s->warrant : "", NULL, e) ||
	       err_wrap(e, "job %" PRId64 " as the daemon has it is not taken (look at it, and add it anew)",
		       member_int(*ret_job, "id"));
}

static bool supply_change(struct ctl *c, const char *path, json_t *body, struct err *e)
{
	json_auto_t *job = NULL, *patch = json_copy(body);
	AUTO_DONE(job_spec) s;

	job_spec_init(&s);
	json_object_del(patch, "revision");
	if (!approved_job(c, path, &job, &s, e) || !spec_merge_json(patch, &s, e))
		return false;
	if (!json_object_get(body, "revision"))
		json_object_set_new(body, "revision", json_integer(member_int(job, "revision")));
	return approve(c, &s, &(struct whose){member_int(job, "uid"), member_text(job, "owner")}, NULL, body, e);
}

static bool supply_run(struct ctl *c, const char *path, json_t *body, struct err *e)
{
	AUTO_TEXT of_job = xstrndup(path, strlen(path) - strlen("/run"));
	json_auto_t *job = NULL;
	AUTO_DONE(strv) params = {};
	AUTO_DONE(job_spec) s;

	job_spec_init(&s);
	return approved_job(c, of_job, &job, &s, e) &&
	       params_from_json(json_object_get(body, "params"), &params, e) &&
	       approve(c, &s, &(struct whose){member_int(job, "uid"), member_text(job, "owner")}, &params, body, e);
}

bool warrant_supply(struct ctl *c, const struct warrant_case *w, json_t **ret, struct err *e)
{
	AUTO_TEXT path = xstrndup(w->path, strcspn(w->path, "?"));
	json_auto_t *body = w->body ? json_deep_copy(w->body) : json_object();
	size_t len = strlen(path);
	bool ok;

	if (strcmp(w->method, "PATCH") == 0)
		ok = supply_change(c, path, body, e);
	else if (strcmp(w->method, "PUT") == 0)
		ok = supply_template(c, body, e);
	else if (strcmp(path, "/v1/jobs") == 0)
		ok = supply_new(c, w->path, body, e);
	else if (len > 4 && strcmp(path + len - 4, "/run") == 0)
		ok = supply_run(c, path, body, e);
	else
		ok = err_set(e, ERR_DENIED, "a warrant is needed, and this request cannot carry one");
	if (ok)
		*ret = json_incref(body);
	return ok;
}
