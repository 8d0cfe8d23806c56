/* SPDX-License-Identifier: Apache-2.0 */
/* Reads credentials from the environment, from files, and from the JSON text of an endpoint. */
#include "net/aws/aws_sources.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "net/aws/aws_credentials.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX ((size_t)256 << 10)
#define TOKEN_MAX ((size_t)16 << 10)
#define CONTAINER_HOST "http://169.254.170.2"
#define INSTANCE_URL "http://169.254.169.254"

/* An empty variable counts as unset. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* Keys become parts of HTTP headers. */
static bool key_printable(const char *s)
{
	for (; *s; s++)
		if (!isgraph((unsigned char)*s))
			return false;
	return true;
}

static bool keys_check(const struct aws_keys *k, const char *where, struct err *e)
{
	if (!k->id || !k->secret || !*k->id || !*k->secret)
		return err_set(e, ERR_INVALID, "%s has no access key with its secret", where);
	if (!key_printable(k->id) || !key_printable(k->secret) || (k->token && !key_printable(k->token)))
		return err_set(e, ERR_INVALID, "%s has a key with blanks or control characters", where);
	return true;
}

bool aws_sources_environment(struct aws_keys *ret, struct err *e)
{
	struct aws_keys k = {.expires_at = USEC_NEVER};

	if (!variable("AWS_ACCESS_KEY_ID"))
		return false;
	k.id = xstrdup(variable("AWS_ACCESS_KEY_ID"));
	k.secret = xstrdup(variable("AWS_SECRET_ACCESS_KEY"));
	k.token = xstrdup(variable("AWS_SESSION_TOKEN"));
	if (!keys_check(&k, "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)", e)) {
		aws_keys_done(&k);
		return false;
	}
	*ret = k;
	return true;
}

/* ---- the file ---- */

static size_t trimmed(const char **s, size_t len)
{
	while (len > 0 && isspace((unsigned char)**s)) {
		++*s;
		len--;
	}
	while (len > 0 && isspace((unsigned char)(*s)[len - 1]))
		len--;
	return len;
}

static bool section_is(const char *line, size_t len, const char *profile)
{
	const char *name = line + 1;
	size_t n = len >= 2 && line[len - 1] == ']' ? trimmed(&name, len - 2) : 0;

	return n == strlen(profile) && strncmp(name, profile, n) == 0;
}

static void profile_pair(const char *line, size_t len, struct aws_keys *k)
{
	const char *eq = memchr(line, '=', len), *value = eq + 1, *name = line;
	size_t name_len, value_len;
	char **to = NULL;

	if (!eq)
		return;
	name_len = trimmed(&name, (size_t)(eq - line));
	value_len = trimmed(&value, len - (size_t)(eq + 1 - line));
	if (name_len == 17 && strncasecmp(name, "aws_access_key_id", 17) == 0)
		to = &k->id;
	else if (name_len == 21 && strncasecmp(name, "aws_secret_access_key", 21) == 0)
		to = &k->secret;
	else if (name_len == 17 && strncasecmp(name, "aws_session_token", 17) == 0)
		to = &k->token;
	if (!to)
		return;
	free(*to);
	*to = xstrndup(value, value_len);
}

bool aws_sources_profile(const char *text, const char *profile, struct aws_keys *ret, struct err *e)
{
	struct aws_keys k = {.expires_at = USEC_NEVER};
	AUTO_TEXT where = xprintf("section '%.80s' of the credentials file", profile);
	bool inside = false, found = false;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		const char *line = text;
		size_t n;

		len = strcspn(text, "\n");
		n = trimmed(&line, len);
		if (n == 0 || *line == '#' || *line == ';')
			continue;
		if (*line == '[')
			found |= inside = section_is(line, n, profile);
		else if (inside)
			profile_pair(line, n, &k);
	}
	if (found ? keys_check(&k, where, e) : err_set(e, ERR_NOT_FOUND, "there is no %s", where)) {
		*ret = k;
		return true;
	}
	aws_keys_done(&k);
	return false;
}

bool aws_sources_file(struct aws_keys *ret, struct err *e)
{
	const char *named = variable("AWS_SHARED_CREDENTIALS_FILE"), *home = variable("HOME");
	const char *profile = variable("AWS_PROFILE");
	AUTO_TEXT usual = home ? xprintf("%s/.aws/credentials", home) : NULL;
	const char *path = named ? named : usual;
	AUTO_DONE(buf) text = {};
	bool ok;
	int r;

	if (!path)
		return false;
	r = io_read_file(path, &text, FILE_MAX);
	if (r < 0 && !named && !profile)
		return false;
	if (r < 0)
		return err_errno(e, -r, "could not read the credentials file '%s'", path);
	ok = aws_sources_profile(text.data ? text.data : "", profile ? profile : "default", ret, e);
	explicit_bzero(text.data ? text.data : (char[1]){0}, text.len);
	if (!ok && e->kind == ERR_NOT_FOUND && !named && !profile) /* other programs use the file */
		*e = (struct err){};
	return ok;
}

/* ---- the answers of endpoints ---- */

static const char *json_space(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

/* Reads the string at its opening quote; returns what follows it; NULL: it is not one. */
static const char *json_string(const char *s, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (*s++ != '"')
		return NULL;
	for (; *s && *s != '"'; s++) {
		const char *at;

		if (*s != '\\') {
			buf_char(out, *s);
			continue;
		}
		s++;
		at = *s ? strchr(from, *s) : NULL;
		if (!at) /* \u is not used by keys, tokens and times */
			return NULL;
		buf_char(out, to[at - from]);
	}
	return *s == '"' ? s + 1 : NULL;
}

/* A member that is no string: a number, true, false or null. Nested values do not occur. */
static const char *json_word(const char *s)
{
	size_t n = strcspn(s, ",}{[\" \t\r\n");

	return n > 0 ? s + n : NULL;
}

static void json_member(const char *name, struct buf *value, struct aws_keys *k, struct buf *code, struct err *e)
{
	char **to = strcmp(name, "AccessKeyId") == 0	     ? &k->id
		    : strcmp(name, "SecretAccessKey") == 0 ? &k->secret
		    : strcmp(name, "Token") == 0	     ? &k->token
							     : NULL;

	if (to) {
		free(*to);
		*to = buf_steal(value);
	} else if (strcmp(name, "Expiration") == 0) {
		rfc3339_parse(value->data ? value->data : "", &k->expires_at, e);
	} else if (strcmp(name, "Code") == 0) {
		buf_str(code, value->data ? value->data : "");
	}
}

static bool json_members(const char *s, struct aws_keys *k, struct buf *code, struct err *e)
{
	s = json_space(s);
	if (*s != '{')
		return false;
	do {
		AUTO_DONE(buf) name = {};
		AUTO_DONE(buf) value = {};
		bool text;

		s = json_string(json_space(s + 1), &name);
		s = s ? json_space(s) : NULL;
		if (!s || *s != ':')
			return false;
		s = json_space(s + 1);
		text = *s == '"';
		s = text ? json_string(s, &value) : json_word(s);
		if (!s)
			return false;
		if (text)
			json_member(name.data ? name.data : "", &value, k, code, e);
		explicit_bzero(value.data ? value.data : (char[1]){0}, value.len);
		s = json_space(s);
	} while (*s == ',');
	return *s == '}' && *json_space(s + 1) == '\0';
}

bool aws_sources_json(const char *text, struct aws_keys *ret, struct err *e)
{
	struct aws_keys k = {.expires_at = USEC_NEVER};
	AUTO_DONE(buf) code = {};
	bool ok = json_members(text, &k, &code, e) ||
		err_set(e, ERR_INVALID, "the credentials endpoint did not answer with a JSON object");

	if (ok && e->kind)
		ok = false;
	if (ok && code.len && strcmp(code.data, "Success") != 0)
		ok = err_set(e, ERR_INVALID, "the credentials endpoint answered '%.80s'", code.data);
	if (ok && keys_check(&k, "the answer of the credentials endpoint", e)) {
		*ret = k;
		return true;
	}
	aws_keys_done(&k);
	return false;
}

char *aws_sources_container_url(void)
{
	const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");

	if (relative)
		return xprintf("%s%s", CONTAINER_HOST, relative);
	return xstrdup(full);
}

char *aws_sources_container_token(struct err *e)
{
	const char *token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	const char *path = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	AUTO_DONE(buf) text = {};
	AUTO_TEXT found = NULL;
	int r;

	if (!path) {
		found = xstrdup(token);
	} else {
		r = io_read_file(path, &text, TOKEN_MAX);
		if (r < 0) {
			err_errno(e, -r, "could not read AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE '%s'", path);
			return NULL;
		}
		found = buf_steal(&text);
		found[strcspn(found, "\r\n")] = '\0';
	}
	for (const char *s = found; s && *s; s++)
		if (!isprint((unsigned char)*s)) {
			err_set(e, ERR_INVALID, "the authorization token of the container has control characters");
			return NULL;
		}
	return STEAL(found);
}

char *aws_sources_instance_url(void)
{
	const char *off = variable("AWS_EC2_METADATA_DISABLED"), *url = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	char *copy;

	if (off && strcasecmp(off, "true") == 0)
		return NULL;
	copy = xstrdup(url ? url : INSTANCE_URL);
	for (size_t n = strlen(copy); n > 0 && copy[n - 1] == '/';)
		copy[--n] = '\0';
	return copy;
}
