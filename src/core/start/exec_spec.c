/* SPDX-License-Identifier: Apache-2.0 */
/* Field table, encoding and strict decoding of execution specifications. */
#include "core/start/exec_spec.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/job/limits.h"
#include "core/job/sandbox_profile.h"
#include "core/job/warrant.h"
#include <string.h>

#define UID_MAX INT64_C(4294967294) /* (uid_t)-1 is no user */
#define WORD_MAX (1 << 20)          /* bytes of one argument; the kernel's own limit is lower */
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool owner_name_valid(const char *s)
{
	return !strpbrk(s, ":/\n\r\t ") && s[0] != '-';
}

static bool tz_text_valid(const char *s)
{
	return strspn(s, LOWER UPPER DIGITS "_+-/") == strlen(s) && s[0] != '/' && !strstr(s, "..");
}

static bool pair_valid(const char *s)
{
	size_t len = strspn(s, LOWER UPPER DIGITS "_");

	return len > 0 && s[len] == '=' && !strchr(DIGITS, s[0]);
}

static bool variable_valid(const char *s)
{
	return pair_valid(s) && strncmp(s, "JOBSCHED_", 9) != 0;
}

static bool path_is_absolute(const char *s)
{
	return s[0] == '/';
}

static bool secret_valid(const char *s)
{
	return pair_valid(s) && strncmp(strchr(s, '=') + 1, "file:/", 6) == 0;
}

static bool url_valid(const char *s)
{
	for (const char *c = s; *c; c++)
		if (*c <= ' ' || *c == 0x7f)
			return false;
	return true;
}

static bool sha256_text_valid(const char *s)
{
	return strspn(s, "abcdef" DIGITS) == strlen(s);
}

static bool job_name_valid(const char *s)
{
	return job_name_check(s, NULL);
}

static bool sandbox_name_valid(const char *s)
{
	return sandbox_profile_name_check(s, NULL);
}

#define AT(member) offsetof(struct exec_spec, member)

/*
 * A new field gets a new tag at the end. If it is a number, its preset must mean the behaviour
 * before the field existed.
 */
const struct exec_spec_field exec_spec_fields[] = {
	{.tag = 1, .type = EXEC_SPEC_INT, .name = "uid", .offset = AT(uid), .max = UID_MAX, .preset = -1},
	{.tag = 2, .type = EXEC_SPEC_TEXT, .name = "owner", .offset = AT(owner), .min = 1, .max = 255, .required = true,
		.check = owner_name_valid},
	{.tag = 3, .type = EXEC_SPEC_LIST, .name = "argv", .offset = AT(argv), .max = WORD_MAX, .count = 4096,
		.required = true},
	{.tag = 4, .type = EXEC_SPEC_TEXT, .name = "tz", .offset = AT(tz), .min = 1, .max = 64, .check = tz_text_valid},
	{.tag = 5, .type = EXEC_SPEC_LIST, .name = "env", .offset = AT(env), .min = 2, .max = WORD_MAX, .count = 128,
		.check = variable_valid},
	{.tag = 6, .type = EXEC_SPEC_LIST, .name = "params", .offset = AT(params), .min = 2, .max = WORD_MAX, .count = 64,
		.check = pair_valid},
	{.tag = 7, .type = EXEC_SPEC_TEXT, .name = "cwd", .offset = AT(cwd), .min = 1, .max = 4095, .check = path_is_absolute},
	{.tag = 8, .type = EXEC_SPEC_INT, .name = "umask", .offset = AT(umask), .max = 0777, .preset = 077}, /* no longer the default of jobs */
	{.tag = 9, .type = EXEC_SPEC_BLOB, .name = "stdin_hash", .offset = AT(stdin_hash), .min = 32, .max = 32},
	{.tag = 10, .type = EXEC_SPEC_LIST, .name = "notices", .offset = AT(notices), .min = 1, .max = WORD_MAX, .count = 8},
	{.tag = 11, .type = EXEC_SPEC_TEXT, .name = "sandbox", .offset = AT(sandbox), .min = 1, .max = SANDBOX_NAME_MAX - 1,
		.check = sandbox_name_valid},
	{.tag = 20, .type = EXEC_SPEC_INT, .name = "mem", .offset = AT(mem), .max = LIMIT_MEMORY_MAX},
	{.tag = 21, .type = EXEC_SPEC_INT, .name = "cpu", .offset = AT(cpu), .max = LIMIT_CPU_MAX},
	{.tag = 22, .type = EXEC_SPEC_INT, .name = "pids", .offset = AT(pids), .max = LIMIT_PIDS_MAX},
	{.tag = 23, .type = EXEC_SPEC_INT, .name = "nice", .offset = AT(nice), .max = LIMIT_NICE_MAX},
	{.tag = 24, .type = EXEC_SPEC_INT, .name = "ionice", .offset = AT(ionice), .max = LIMIT_IONICE_IDLE},
	{.tag = 25, .type = EXEC_SPEC_LIST, .name = "limits", .offset = AT(limits), .min = 3, .max = 64, .count = 16,
		.check = limit_resource_plain},
	{.tag = 40, .type = EXEC_SPEC_LIST, .name = "secrets", .offset = AT(secrets), .min = 8, .max = 4200, .count = 16,
		.check = secret_valid},
	{.tag = 41, .type = EXEC_SPEC_TEXT, .name = "artifact", .offset = AT(artifact), .min = 1, .max = 2048, .check = url_valid},
	{.tag = 42, .type = EXEC_SPEC_TEXT, .name = "sha256", .offset = AT(sha256), .min = 64, .max = 64, .check = sha256_text_valid},
	{.tag = 43, .type = EXEC_SPEC_TEXT, .name = "name", .offset = AT(name), .min = 1, .max = 128, .check = job_name_valid},
	{.tag = 44, .type = EXEC_SPEC_BLOB, .name = "job", .offset = AT(job), .min = WARRANT_JOB_LEN, .max = WARRANT_JOB_LEN},
	{.tag = 45, .type = EXEC_SPEC_INT, .name = "cron", .offset = AT(cron), .max = 1},
	{.tag = 46, .type = EXEC_SPEC_INT, .name = "leaves", .offset = AT(leaves), .max = 1},
	{.tag = 50, .type = EXEC_SPEC_INT, .name = "heartbeat", .offset = AT(heartbeat), .max = 366 * USEC_DAY},
	{.tag = 51, .type = EXEC_SPEC_INT, .name = "heartbeat_on_output", .offset = AT(heartbeat_on_output), .max = 1},
	{.tag = 52, .type = EXEC_SPEC_INT, .name = "results", .offset = AT(results), .max = 1},
	{.tag = 53, .type = EXEC_SPEC_INT, .name = "gate", .offset = AT(gate), .max = 1},
	{.tag = 54, .type = EXEC_SPEC_INT, .name = "checkpoint", .offset = AT(checkpoint), .max = 1},
};
const size_t exec_spec_fields_count = ELEMENTS(exec_spec_fields);

static void *spec_field_at(const struct exec_spec *o, const struct exec_spec_field *f)
{
	return (char *)o + f->offset;
}

void exec_spec_init(struct exec_spec *o)
{
	*o = (struct exec_spec){};
	for (size_t i = 0; i < ELEMENTS(exec_spec_fields); i++)
		if (exec_spec_fields[i].type == EXEC_SPEC_INT)
			*(int64_t *)spec_field_at(o, &exec_spec_fields[i]) = exec_spec_fields[i].preset;
}

void exec_spec_done(struct exec_spec *o)
{
	for (size_t i = 0; i < ELEMENTS(exec_spec_fields); i++) {
		void *at = spec_field_at(o, &exec_spec_fields[i]);

		switch (exec_spec_fields[i].type) {
		case EXEC_SPEC_TEXT:
			free(*(char **)at);
			break;
		case EXEC_SPEC_LIST:
			strv_done(at);
			break;
		case EXEC_SPEC_BLOB:
			blob_done(at);
			break;
		default:
			break;
		}
	}
	*o = (struct exec_spec){};
}

static bool field_invalid(struct err *e, const struct exec_spec_field *f, const char *what)
{
	return err_set(e, ERR_INVALID, "an execution specification whose '%s' %s", f->name, what);
}

static bool bytes_check(const struct exec_spec_field *f, const char *data, size_t len, struct err *e)
{
	if (len < (size_t)f->min || len > (size_t)f->max)
		return field_invalid(e, f, "is too short or too long");
	if (f->type != EXEC_SPEC_BLOB && memchr(data, '\0', len))
		return field_invalid(e, f, "has a NUL inside");
	return true;
}

/* Checks ranges and required fields after all records are read. */
static bool spec_complete(const struct exec_spec *o, struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(exec_spec_fields); i++) {
		const struct exec_spec_field *f = &exec_spec_fields[i];
		const void *at = spec_field_at(o, f);

		if (f->type == EXEC_SPEC_INT && (*(const int64_t *)at < f->min || *(const int64_t *)at > f->max))
			return field_invalid(e, f, "is out of range");
		if (f->required && (f->type == EXEC_SPEC_LIST ? ((const struct strv *)at)->n == 0 : !*(char *const *)at))
			return field_invalid(e, f, "is missing");
	}
	if (o->name && !o->job.data)
		return err_set(e, ERR_INVALID, "an execution specification that names a job without its identity");
	return o->argv.v[0][0] || err_set(e, ERR_INVALID, "an execution specification with an empty command");
}

/* ---- encoding ---- */

static void number_encode(struct buf *out, uint64_t n, size_t bytes)
{
	for (; bytes > 0; bytes--, n >>= 8)
		buf_char(out, (char)(n & 0xff));
}

static bool bytes_encode(struct buf *out, const struct exec_spec_field *f, const char *data, size_t len, struct err *e)
{
	if (!bytes_check(f, data, len, e))
		return false;
	if (f->check && !f->check(data))
		return field_invalid(e, f, "is not of the right form");
	number_encode(out, f->tag, 2);
	number_encode(out, len, 4);
	buf_add(out, data, len);
	return true;
}

static bool list_encode(struct buf *out, const struct exec_spec_field *f, const struct strv *v, struct err *e)
{
	if (v->n > f->count)
		return field_invalid(e, f, "has too many members");
	for (size_t i = 0; i < v->n; i++)
		if (!bytes_encode(out, f, v->v[i], strlen(v->v[i]), e))
			return false;
	return true;
}

static bool field_encode(struct buf *out, const struct exec_spec_field *f, const void *at, struct err *e)
{
	const struct blob *blob = at;
	const char *text;
	int64_t n;

	switch (f->type) {
	case EXEC_SPEC_INT:
		n = *(const int64_t *)at;
		if (n == f->preset)
			return true;
		number_encode(out, f->tag, 2);
		number_encode(out, 8, 4);
		number_encode(out, (uint64_t)n, 8);
		return true;
	case EXEC_SPEC_TEXT:
		text = *(char *const *)at;
		return !text || bytes_encode(out, f, text, strlen(text), e);
	case EXEC_SPEC_LIST:
		return list_encode(out, f, at, e);
	default:
		return !blob->data || bytes_encode(out, f, blob->data, blob->len, e);
	}
}

bool exec_spec_encode(const struct exec_spec *o, struct buf *out, struct err *e)
{
	size_t before = out->len;

	if (!spec_complete(o, e))
		return false;
	for (size_t i = 0; i < ELEMENTS(exec_spec_fields); i++)
		if (!field_encode(out, &exec_spec_fields[i], spec_field_at(o, &exec_spec_fields[i]), e))
			return false;
	return out->len - before <= EXEC_SPEC_MAX || err_set(e, ERR_TOO_LARGE, "an execution specification of more than %d bytes", EXEC_SPEC_MAX);
}

/* ---- decoding ---- */

struct cursor {
	const unsigned char *at, *end;
};

static bool number_decode(struct cursor *c, size_t bytes, uint64_t *ret)
{
	if ((size_t)(c->end - c->at) < bytes)
		return false;
	*ret = 0;
	for (size_t i = bytes; i > 0; i--)
		*ret = *ret << 8 | c->at[i - 1];
	c->at += bytes;
	return true;
}

static bool int_decode(int64_t *at, const struct exec_spec_field *f, const char *data, size_t len, struct err *e)
{
	struct cursor c = {(const unsigned char *)data, (const unsigned char *)data + len};
	uint64_t n;

	if (len != 8 || !number_decode(&c, 8, &n))
		return field_invalid(e, f, "is not a number");
	if (*at != f->preset || (int64_t)n == f->preset)
		return field_invalid(e, f, "is there twice, or for nothing");
	*at = (int64_t)n;
	return true;
}

static bool bytes_decode(void *at, const struct exec_spec_field *f, const char *data, size_t len, struct err *e)
{
	AUTO_TEXT copy = NULL;

	if (!bytes_check(f, data, len, e))
		return false;
	copy = xcalloc(1, len + 1);
	memcpy(copy, data, len);
	if (f->check && !f->check(copy))
		return field_invalid(e, f, "is not of the right form");
	if (f->type == EXEC_SPEC_LIST) {
		struct strv *v = at;

		if (v->n >= f->count)
			return field_invalid(e, f, "has too many members");
		strv_take(v, STEAL(copy));
		return true;
	}
	if (*(char **)at)
		return field_invalid(e, f, "is there twice");
	if (f->type == EXEC_SPEC_BLOB)
		((struct blob *)at)->len = len;
	*(char **)at = STEAL(copy); /* the data is also the first member of a blob */
	return true;
}
_Static_assert(offsetof(struct blob, data) == 0, "a blob begins with its data");

static bool record_decode(struct exec_spec *o, struct cursor *c, size_t *row, struct err *e)
{
	const struct exec_spec_field *f;
	uint64_t tag, len;

	if (!number_decode(c, 2, &tag) || !number_decode(c, 4, &len) || len > (uint64_t)(c->end - c->at))
		return err_set(e, ERR_INVALID, "an incomplete execution specification");
	while (*row < ELEMENTS(exec_spec_fields) && exec_spec_fields[*row].tag < tag)
		(*row)++;
	if (*row == ELEMENTS(exec_spec_fields) || exec_spec_fields[*row].tag != tag)
		return err_set(e, ERR_INVALID, "an execution specification with tag %u, which is unknown or out of order", (unsigned)tag);
	f = &exec_spec_fields[*row];
	if (f->type == EXEC_SPEC_INT ? !int_decode(spec_field_at(o, f), f, (const char *)c->at, len, e)
				 : !bytes_decode(spec_field_at(o, f), f, (const char *)c->at, len, e))
		return false;
	c->at += len;
	return true;
}

bool exec_spec_parse(struct exec_spec *ret, const void *data, size_t len, struct err *e)
{
	struct cursor c = {data, (const unsigned char *)data + len};
	AUTO_DONE(exec_spec) o;
	size_t row = 0;

	exec_spec_init(&o);
	if (len > EXEC_SPEC_MAX)
		return err_set(e, ERR_TOO_LARGE, "an execution specification of more than %d bytes", EXEC_SPEC_MAX);
	while (c.at < c.end)
		if (!record_decode(&o, &c, &row, e))
			return false;
	if (!spec_complete(&o, e))
		return false;
	*ret = o;
	o = (struct exec_spec){};
	return true;
}
