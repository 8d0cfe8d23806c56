/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the fields of calls. */
#include "core/job/call.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/target/address_guard.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/target/kafka.h"
#include "core/target/lambda.h"
#include <regex.h>
#include <string.h>
#include <strings.h>

#define SECRET_BEFORE "{secret:"
#define STATUS_MIN 100
#define STATUS_MAX 599

enum call_kind call_kind_of(const struct job_spec *s)
{
	return s->http ? CALL_HTTP : s->kafka ? CALL_KAFKA : s->lambda ? CALL_LAMBDA : CALL_NONE;
}

/* ---- single fields ---- */

bool call_method_check(const char *text, struct err *e)
{
	static const char *const methods[] = {
		"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"};

	for (size_t i = 0; i < ELEMENTS(methods); i++)
		if (strcmp(text, methods[i]) == 0)
			return true;
	return err_field(e, "http",
		"'%.40s' is not GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS", text);
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

/* The URL is stored and displayed, so it must not contain a password. */
bool call_url_check(const char *url, struct err *e)
{
	size_t scheme = text_starts(url, "https://") ? 8 : text_starts(url, "http://") ? 7 : 0, host;

	if (!scheme)
		return err_field(e, "url", "'%.200s' is not https://… or http://…", url);
	if (has_control(url) || strchr(url, ' '))
		return err_field(e, "url", "a URL has no blanks or control characters");
	host = strcspn(url + scheme, "/?#");
	if (host == 0 || url[scheme] == ':')
		return err_field(e, "url", "'%.200s' has no host", url);
	if (memchr(url + scheme, '@', host))
		return err_field(e, "url",
			"a name or password does not belong in a URL that is stored and shown; use --secret and "
			"--header 'Authorization: Bearer {secret:NAME}'");
	return true;
}

bool call_url_host(const char *url, char *ret, size_t size)
{
	const char *from = url + (text_starts(url, "https://") ? 8 : 7);
	size_t len = strcspn(from, "/?#");

	if (memchr(from, '{', len))
		return false;
	if (from[0] == '[') {
		from++;
		len = strcspn(from, "]/?#");
	} else {
		len = strcspn(from, ":/?#");
	}
	if (len == 0 || len >= size)
		return false;
	memcpy(ret, from, len);
	ret[len] = '\0';
	return true;
}

/* Names of headers that the scheduler or libcurl sets. */
static bool header_is_reserved(const char *name, size_t len)
{
	static const char *const reserved[] = {"Host", "Content-Length", "Transfer-Encoding",
		"Connection", "Expect", "Idempotency-Key", "webhook-id", "webhook-timestamp",
		"webhook-signature", "traceparent", "tracestate"};

	for (size_t i = 0; i < ELEMENTS(reserved); i++)
		if (strlen(reserved[i]) == len && strncasecmp(name, reserved[i], len) == 0)
			return true;
	return len > 9 && strncasecmp(name, "Jobsched-", 9) == 0;
}

bool call_header_check(const char *text, struct err *e)
{
	static const char token[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
	size_t name = strspn(text, token);

	if (name == 0 || name > 128 || text[name] != ':' || strlen(text) > 8192 || has_control(text))
		return err_field(e, "headers", "'%.80s' is not 'Name: value' in one line", text);
	if (header_is_reserved(text, name))
		return err_field(e, "headers", "the header '%.*s' is set by the scheduler", (int)name, text);
	return true;
}

/* Reads N or N-M at *at; false: there is no valid range. */
static bool status_range(const char **at, int *ret_from, int *ret_to)
{
	int n[2] = {0, 0};
	size_t i = 0;

	for (; i < 2; i++) {
		size_t digits = strspn(*at, "0123456789");

		if (digits != 3)
			return false;
		n[i] = ((*at)[0] - '0') * 100 + ((*at)[1] - '0') * 10 + ((*at)[2] - '0');
		*at += digits;
		if (i == 1 || **at != '-')
			break;
		(*at)++;
	}
	*ret_from = n[0];
	*ret_to = i == 0 ? n[0] : n[1];
	return *ret_from >= STATUS_MIN && *ret_to <= STATUS_MAX && *ret_from <= *ret_to;
}

bool call_statuses_check(const char *text, struct err *e)
{
	const char *at = text;
	int from, to;

	for (;;) {
		if (!status_range(&at, &from, &to))
			break;
		if (!*at)
			return true;
		if (*at++ != ',')
			break;
	}
	return err_field(e, "expect_status", "'%.60s' is not a list of status codes, as 200-299,404", text);
}

static bool status_listed(const char *list, int status)
{
	const char *at = list;
	int from, to;

	while (status_range(&at, &from, &to)) {
		if (status >= from && status <= to)
			return true;
		if (*at++ != ',')
			break;
	}
	return false;
}

enum call_verdict call_status_judge(const char *expected, int status)
{
	if (expected ? status_listed(expected, status) : status >= 200 && status <= 299)
		return CALL_SUCCEEDED;
	if (status == 408 || status == 425 || status == 429 || status >= 500)
		return CALL_TEMPORARY;
	return CALL_FINAL;
}

/*
 * Back references and intervals are refused, because the time and memory of their evaluation are
 * not bounded by the length of the text.
 */
bool call_pattern_check(const char *text, struct err *e)
{
	regex_t r;

	for (const char *c = text; *c; c++) {
		if (*c == '{' || (*c == '\\' && c[1] >= '1' && c[1] <= '9'))
			return err_field(e, "expect_body",
				"back references and intervals ('{') are not allowed in the pattern");
		if (*c == '\\' && c[1])
			c++;
	}
	if (regcomp(&r, text, REG_EXTENDED | REG_NOSUB) != 0)
		return err_field(e, "expect_body", "'%.80s' is not an extended regular expression", text);
	regfree(&r);
	return true;
}

bool call_secret_name_check(const char *text, struct err *e)
{
	return text_is_name(text, strlen(text)) ||
		err_field(e, "secrets", "'%.64s' is not the name of a secret; write --secret NAME=file:PATH and use NAME", text);
}

/* ---- references to secrets ---- */

bool call_secret_next(const char *text, size_t *at, size_t *ret_from, const char **ret_name,
	size_t *ret_len)
{
	const char *from = text + *at;

	while ((from = strstr(from, SECRET_BEFORE))) {
		const char *name = from + strlen(SECRET_BEFORE);
		size_t len = strcspn(name, "}");

		if (name[len] == '}' && text_is_name(name, len)) {
			*ret_from = (size_t)(from - text);
			*ret_name = name;
			*ret_len = len;
			*at = (size_t)(name + len + 1 - text);
			return true;
		}
		from = name;
	}
	return false;
}

static bool secret_declared(const struct job_spec *s, const char *name, size_t len, struct err *e)
{
	for (size_t i = 0; i < s->secrets.n; i++)
		if (strncmp(s->secrets.v[i], name, len) == 0 && s->secrets.v[i][len] == '=')
			return true;
	return err_field(e, "secrets", "the secret '%.*s' is not declared; add --secret %.*s=file:PATH",
		(int)len, name, (int)len, name);
}

static bool references_declared(const struct job_spec *s, const char *text, struct err *e)
{
	size_t at = 0, from, len;
	const char *name;

	while (call_secret_next(text, &at, &from, &name, &len))
		if (!secret_declared(s, name, len, e))
			return false;
	return true;
}

static bool secrets_declared(const struct job_spec *s, struct err *e)
{
	const char *const named[] = {s->tls_ca, s->tls_cert, s->tls_key, s->sasl_user, s->sasl_password};

	if (s->url && !references_declared(s, s->url, e))
		return false;
	for (size_t i = 0; i < s->headers.n; i++)
		if (!references_declared(s, s->headers.v[i], e))
			return false;
	for (size_t i = 0; i < s->sign.n; i++)
		if (!secret_declared(s, s->sign.v[i], strlen(s->sign.v[i]), e))
			return false;
	for (size_t i = 0; i < ELEMENTS(named); i++)
		if (named[i] && !secret_declared(s, named[i], strlen(named[i]), e))
			return false;
	return true;
}

/* ---- several fields ---- */

#define OF(kind) (1U << CALL_##kind)

/* The fields that only calls have, and the kinds of calls that have them. */
static const struct {
	const char *name;
	unsigned kinds;
} call_fields[] = {
	{"http", OF(HTTP)},
	{"url", OF(HTTP)},
	{"headers", OF(HTTP) | OF(KAFKA)},
	{"body", OF(HTTP) | OF(LAMBDA)},
	{"expect_status", OF(HTTP)},
	{"expect_body", OF(HTTP)},
	{"expect_size", OF(HTTP)},
	{"on_410", OF(HTTP)},
	{"http_async", OF(HTTP)},
	{"sign", OF(HTTP)},
	{"tls_ca", OF(HTTP) | OF(KAFKA)},
	{"tls_cert", OF(HTTP) | OF(KAFKA)},
	{"tls_key", OF(HTTP) | OF(KAFKA)},
	{"kafka", OF(KAFKA)},
	{"message_key", OF(KAFKA)},
	{"message", OF(KAFKA)},
	{"kafka_tls", OF(KAFKA)},
	{"sasl", OF(KAFKA)},
	{"sasl_user", OF(KAFKA)},
	{"sasl_password", OF(KAFKA)},
	{"lambda", OF(LAMBDA)},
	{"region", OF(LAMBDA)},
	{"lambda_event", OF(LAMBDA)},
};

/* The field that selects each kind. */
static const char *const kind_fields[CALL_KIND_MAX] = {[CALL_HTTP] = "http", [CALL_KAFKA] = "kafka", [CALL_LAMBDA] = "lambda"};

static bool field_is_set(const struct job_spec *s, const struct job_field *f)
{
	const void *at = (const char *)s + f->offset;

	switch (f->type) {
	case FIELD_TEXT:
		return *(char *const *)at != NULL;
	case FIELD_LIST:
	case FIELD_MAP:
		return ((const struct strv *)at)->n > 0;
	case FIELD_BLOB:
		return ((const struct blob *)at)->data != NULL;
	default:
		return *(const int64_t *)at != f->preset;
	}
}

/* A field that this kind does not have; 'kinds' have it. */
static bool field_refuse(const char *name, unsigned kinds, enum call_kind kind, struct err *e)
{
	AUTO_DONE(buf) of = {};

	for (int k = 0; k < CALL_KIND_MAX; k++) {
		if (kind != CALL_NONE && kind_fields[k] && strcmp(kind_fields[k], name) == 0)
			return err_field(e, name, "a job has either '%s' or '%s', not both", kind_fields[kind], name);
		if (kinds & (1U << k))
			buf_printf(&of, "%s'%s'", of.len ? " or " : "", kind_fields[k]);
	}
	return err_field(e, name, "'%s' is a field of jobs with %s", name, of.data);
}

/* The kinds of calls that have this field; 0: it is not a field of calls. */
static unsigned kinds_of(const char *name)
{
	for (size_t i = 0; i < ELEMENTS(call_fields); i++)
		if (call_fields[i].name[0] == name[0] && strcmp(call_fields[i].name, name) == 0)
			return call_fields[i].kinds;
	return 0;
}

/* Called for every job. Few fields are set, and only these are looked up. */
static bool fields_fit(const struct job_spec *s, enum call_kind kind, struct err *e)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		const char *name = job_fields[i].name;
		unsigned kinds = field_is_set(s, &job_fields[i]) ? kinds_of(name) : 0;

		if (kinds && !(kinds & (1U << kind)))
			return field_refuse(name, kinds, kind, e);
	}
	return true;
}

static bool check_no_command(const struct job_spec *s, const char *kind, struct err *e)
{
	if (s->http && !s->url && s->command.n == 1)
		return err_field(e, kind, "'%.100s' is not a URL that begins with http:// or https://", s->command.v[0]);
	if (s->command.n > 0 || s->script)
		return err_field(e, kind, "a job has either a command or '%s', not both", kind);
	if (s->stdin_data.data)
		return err_field(e, "stdin", "a call has no standard input; use 'body' or 'message'");
	if (s->artifact)
		return err_field(e, "artifact", "a call has no artifact");
	if (!s->tls_cert != !s->tls_key)
		return err_field(e, s->tls_cert ? "tls_key" : "tls_cert", "a client certificate needs both tls_cert and tls_key");
	return true;
}

static bool check_http(const struct job_spec *s, struct err *e)
{
	return s->url || err_field(e, "url", "'http' needs a URL: --http %s URL", s->http);
}

static bool check_kafka(const struct job_spec *s, struct err *e)
{
	bool tls = s->kafka_tls || s->tls_ca || s->tls_cert;

	if (!s->message.data)
		return err_field(e, "message", "'kafka' needs a message: --message TEXT or --message @FILE");
	if ((s->sasl_user || s->sasl_password) && !s->sasl)
		return err_field(e, "sasl", "a user and a password need a mechanism: --sasl SCRAM-SHA-512");
	if (s->sasl && (!s->sasl_user || !s->sasl_password))
		return err_field(e, s->sasl_user ? "sasl_password" : "sasl_user",
			"'sasl' needs the secrets of the user and the password: --sasl-user NAME --sasl-password NAME");
	if (s->sasl && strcmp(s->sasl, "PLAIN") == 0 && !tls)
		return err_field(e, "sasl", "PLAIN sends the password as it is; add --kafka-tls yes");
	return true;
}

static bool check_lambda(const struct job_spec *s, struct err *e)
{
	return s->region || err_field(e, "region", "'lambda' needs the region of the function: --region eu-central-1");
}

static bool address_allowed(const char *field, const char *host, const struct call_rules *r, struct err *e)
{
	struct address address;
	const char *why;

	return !address_guard_parse(host, &address) || address_guard_allows(&address, r->allow, &why) ||
		err_field(e, field,
			"the address of '%.100s' is refused (%s): jobs may not call it; list the address in http-allow in jobschedd.conf(5)",
			host, why);
}

static bool brokers_allowed(const struct job_spec *s, const struct call_rules *r, struct err *e)
{
	char host[KAFKA_BROKER_MAX];
	size_t at = 0;

	while (kafka_broker_next(s->kafka, &at, host, sizeof(host)))
		if (!address_allowed("kafka", host, r, e))
			return false;
	return true;
}

static bool function_allowed(const struct job_spec *s, const struct call_rules *r, const char *owner, struct err *e)
{
	return lambda_functions_allow(r->functions, owner, s->lambda) ||
		err_set(e, ERR_DENIED, "the function '%.100s' is not listed in lambda-functions in jobschedd.conf(5)", s->lambda);
}

bool call_submission_check(const struct job_spec *s, const struct call_rules *r, const char *owner, struct err *e)
{
	char host[256];

	if (call_kind_of(s) == CALL_NONE)
		return true;
	if (s->http_async && !r->callbacks)
		return err_field(e, "http_async", "an asynchronous call needs http-callback-url in jobschedd.conf(5)");
	if (r->of_root && s->secrets.n)
		return err_field(e, "secrets", "a call of root cannot have secrets; let another user own the job");
	if (s->kafka)
		return brokers_allowed(s, r, e);
	if (s->lambda)
		return function_allowed(s, r, owner, e);
	return r->proxy || !call_url_host(s->url, host, sizeof(host)) || address_allowed("url", host, r, e);
}

bool call_check(const struct job_spec *s, struct err *e)
{
	static bool (*const checks[CALL_KIND_MAX])(const struct job_spec *s, struct err *e) = {
		[CALL_HTTP] = check_http, [CALL_KAFKA] = check_kafka, [CALL_LAMBDA] = check_lambda};
	enum call_kind kind = call_kind_of(s);

	if (!fields_fit(s, kind, e))
		return false;
	return kind == CALL_NONE ||
		(check_no_command(s, kind_fields[kind], e) && checks[kind](s, e) && secrets_declared(s, e));
}
