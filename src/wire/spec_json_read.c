/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a job definition from JSON using the field table. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "wire/json_read.h"
#include "wire/spec_json.h"
#include <math.h>
#include <string.h>

#define KEY_MAX 200 /* bytes of an idempotency key */
#define B64 "_b64"

/* The member that is being read. */
struct member {
	const struct job_field *field;
	const char *name; /* as written, with the _b64 suffix */
	const json_t *value;
	bool b64;
	void *at;         /* in the spec */
};

static bool wrong_type(const struct member *m, const char *wanted, struct err *e)
{
	return err_field(e, m->name, "'%s' must be %s", m->name, wanted);
}

static bool check_text(const struct member *m, const char *text, struct err *e)
{
	struct err why = {};

	if (!m->field->check || m->field->check(text, &why))
		return true;
	return err_field(e, m->name, "%s", why.msg);
}

static bool check_count(const struct member *m, int64_t n, const char *unit, struct err *e)
{
	if (n < m->field->min)
		return err_field(e, m->name, "'%s' is too short: at least %lld %s", m->name,
			(long long)m->field->min, unit);
	if (n > m->field->max)
		return err_field(e, m->name, "'%s' is too long: at most %lld %s", m->name,
			(long long)m->field->max, unit);
	return true;
}

static bool check_range(const struct member *m, int64_t n, struct err *e)
{
	if (n >= m->field->min && n <= m->field->max)
		return true;
	if (m->field->type == FIELD_DURATION)
		return err_field(e, m->name, "'%s' is out of range: %g to %g seconds", m->name,
			(double)m->field->min / USEC_SEC, (double)m->field->max / USEC_SEC);
	return err_field(e, m->name, "'%s' is out of range: %lld to %lld", m->name,
		(long long)m->field->min, (long long)m->field->max);
}

/* The bytes of a JSON string, decoded for a _b64 member. */
static bool read_bytes(const struct member *m, const json_t *v, struct buf *out, struct err *e)
{
	if (!json_is_string(v))
		return wrong_type(m, m->b64 ? "a base64 string" : "a string", e);
	if (!m->b64)
		buf_add(out, json_string_value(v), json_string_length(v));
	else if (!buf_base64_decode(json_string_value(v), json_string_length(v), out))
		return err_field(e, m->name, "'%s' is not base64 with padding", m->name);
	return true;
}

/* The same for a value that is stored as a C string. */
static bool read_c_text(const struct member *m, const json_t *v, struct buf *out, struct err *e)
{
	if (!read_bytes(m, v, out, e))
		return false;
	if (out->len > 0 && memchr(out->data, '\0', out->len))
		return err_field(e, m->name, "'%s' contains a NUL", m->name);
	return true;
}

static bool read_text_field(const struct member *m, struct err *e)
{
	AUTO_DONE(buf) b = {};
	char **at = m->at;

	if (!read_c_text(m, m->value, &b, e) || !check_count(m, (int64_t)b.len, "bytes", e) ||
	    !check_text(m, b.data ? b.data : "", e))
		return false;
	free(*at);
	*at = buf_steal(&b);
	return true;
}

static bool read_element(const struct member *m, const json_t *v, const char *key, struct strv *to,
	struct err *e)
{
	AUTO_DONE(buf) b = {};
	AUTO_TEXT text = NULL;

	if (key)
		buf_printf(&b, "%s=", key);
	if (!read_c_text(m, v, &b, e))
		return false;
	text = buf_steal(&b);
	if (!check_text(m, text, e))
		return false;
	strv_take(to, STEAL(text));
	return true;
}

static bool read_list_field(const struct member *m, struct err *e)
{
	AUTO_DONE(strv) list = {};
	const json_t *v;
	size_t i;

	if (!json_is_array(m->value) && !json_is_string(m->value))
		return wrong_type(m, "a list of strings", e);
	if (!check_count(m, json_is_array(m->value) ? (int64_t)json_array_size(m->value) : 1,
		    "members", e))
		return false;
	if (json_is_string(m->value) && !read_element(m, m->value, NULL, &list, e))
		return false;
	json_array_foreach(m->value, i, v) {
		if (!read_element(m, v, NULL, &list, e))
			return false;
	}
	strv_done(m->at);
	*(struct strv *)m->at = list;
	list = (struct strv){};
	return true;
}

static bool read_map_field(const struct member *m, struct err *e)
{
	AUTO_DONE(strv) list = {};
	const char *key;
	json_t *v;

	if (!json_is_object(m->value))
		return wrong_type(m, "an object of strings", e);
	if (!check_count(m, (int64_t)json_object_size(m->value), "members", e))
		return false;
	json_object_foreach((json_t *)m->value, key, v) {
		if (!*key || strchr(key, '='))
			return err_field(e, m->name,
				"'%s' has a name that is empty or contains '='", m->name);
		if (!read_element(m, v, key, &list, e))
			return false;
	}
	strv_done(m->at);
	*(struct strv *)m->at = list;
	list = (struct strv){};
	return true;
}

static bool read_blob_field(const struct member *m, struct err *e)
{
	AUTO_DONE(buf) b = {};
	struct blob *at = m->at;

	if (!read_bytes(m, m->value, &b, e) || !check_count(m, (int64_t)b.len, "bytes", e))
		return false;
	blob_done(at);
	at->len = b.len;
	at->data = buf_steal(&b);
	return true;
}

static bool read_int_field(const struct member *m, struct err *e)
{
	int64_t n;

	if (!json_is_integer(m->value))
		return wrong_type(m, "a whole number", e);
	n = json_integer_value(m->value);
	if (!check_range(m, n, e))
		return false;
	*(int64_t *)m->at = n;
	return true;
}

/* Reads a number that is written as a string. */
static bool read_worded_field(const struct member *m, struct err *e)
{
	const char *text = json_string_value(m->value);

	if (!text)
		return wrong_type(m,
			m->field->type == FIELD_OCTAL ? "a string of octal digits, like \"022\""
			: m->field->type == FIELD_TIME
				? "a time as a string, like \"2026-11-16T09:00:00Z\""
				: m->field->arg,
			e);
	return job_field_parse(m->field, text, m->at, e);
}

static bool read_duration_field(const struct member *m, struct err *e)
{
	usec_t d;

	if (json_is_string(m->value)) {
		struct err why = {};

		if (!duration_parse(json_string_value(m->value), &d, &why))
			return err_field(e, m->name, "%s", why.msg);
	} else if (json_is_number(m->value)) {
		double s = json_number_value(m->value);

		/* values over 3e12 s are out of every range, and the product would overflow */
		d = isfinite(s) && fabs(s) < 3e12 ? llround(s * USEC_SEC) : INT64_MAX;
	} else {
		return wrong_type(m, "a number of seconds or a string like \"1h30m\"", e);
	}
	if (!check_range(m, d, e))
		return false;
	*(usec_t *)m->at = d;
	return true;
}

static bool (*const readers[FIELD_TYPE_MAX])(const struct member *m, struct err *e) = {
	[FIELD_TEXT] = read_text_field,
	[FIELD_LIST] = read_list_field,
	[FIELD_MAP] = read_map_field,
	[FIELD_BLOB] = read_blob_field,
	[FIELD_INT] = read_int_field,
	[FIELD_OCTAL] = read_worded_field,
	[FIELD_SIZE] = read_int_field,
	[FIELD_DURATION] = read_duration_field,
	[FIELD_TIME] = read_worded_field,
	[FIELD_CHOICE] = read_worded_field,
};

/*
 * The field of a member name. The _b64 form exists only for fields that may have other bytes than
 * UTF-8.
 */
static const struct job_field *find_member_field(const char *name, bool *ret_b64)
{
	const struct job_field *f = job_field_find(name);
	size_t len = strlen(name);
	char plain[64];

	*ret_b64 = false;
	if (f || len <= strlen(B64) || len >= sizeof(plain) ||
		strcmp(name + len - strlen(B64), B64))
		return f;
	memcpy(plain, name, len - strlen(B64));
	plain[len - strlen(B64)] = '\0';
	f = job_field_find(plain);
	*ret_b64 = true;
	return f && f->bytes ? f : NULL;
}

static bool read_idempotency_key(const json_t *v, char **ret, struct err *e)
{
	const char *s = json_string_value(v);
	size_t len = json_string_length(v);

	if (!s)
		return err_field(e, "key", "'key' must be a string");
	if (len == 0 || len > KEY_MAX || strlen(s) != len)
		return err_field(e, "key", "'key' must have 1 to %d bytes and no NUL", KEY_MAX);
	free(*ret);
	*ret = xstrdup(s);
	return true;
}

static bool read_spec_member(const json_t *o, const char *name, const json_t *value,
	struct job_spec *s, struct err *e)
{
	struct member m = { .name = name, .value = value };

	m.field = find_member_field(name, &m.b64);
	if (!m.field)
		return err_field(e, name, "unknown member '%.60s'", name);
	if (m.b64 && json_object_get(o, m.field->name))
		return err_field(e, name, "'%s' and '%s' exclude each other", m.field->name, name);
	m.at = (char *)s + m.field->offset;
	return readers[m.field->type](&m, e);
}

bool spec_json_read(const json_t *o, struct job_spec *s, char **ret_key, struct err *e)
{
	AUTO_TEXT key = NULL;
	const char *name;
	json_t *v;

	if (!json_is_object(o))
		return err_set(e, ERR_INVALID, "a job must be a JSON object");
	json_object_foreach((json_t *)o, name, v) {
		if (ret_key && !strcmp(name, "key")) {
			if (!read_idempotency_key(v, &key, e))
				return false;
		} else if (!read_spec_member(o, name, v, s, e)) {
			return false;
		}
	}
	if (ret_key)
		*ret_key = STEAL(key);
	return true;
}

bool spec_json_from_text(const char *text, struct job_spec *s, struct err *e)
{
	size_t len = strlen(text);
	json_t *o = json_read(text, len, len, e);
	bool ok = o && spec_json_read(o, s, NULL, e);

	if (ok && !json_object_get(o, "umask"))
		s->umask = JOB_UMASK_UNSAID;
	json_decref(o);
	return ok;
}
