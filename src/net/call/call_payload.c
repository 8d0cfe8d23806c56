/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the keys of a call. */
#include "net/call/call_payload.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "net/net_payload.h"
#include <string.h>

#define AT(member) offsetof(struct call_payload, member)
#define LIST(member, count) AT(member), AT(count), ELEMENTS(((struct call_payload *)0)->member)

static const struct key {
	const char *name;
	enum { KEY_TEXT, KEY_LIST, KEY_NUMBER } type;
	size_t offset, count, max; /* 'count' and 'max' of a list */
} keys[] = {
	{"method", KEY_TEXT, AT(method), 0, 0},
	{"url", KEY_TEXT, AT(url), 0, 0},
	{"brokers", KEY_TEXT, AT(brokers), 0, 0},
	{"topic", KEY_TEXT, AT(topic), 0, 0},
	{"message-key", KEY_TEXT, AT(message_key), 0, 0},
	{"lambda", KEY_TEXT, AT(lambda), 0, 0},
	{"region", KEY_TEXT, AT(region), 0, 0},
	{"endpoint", KEY_TEXT, AT(endpoint), 0, 0},
	{"event", KEY_NUMBER, AT(event), 0, 0},
	{"tls", KEY_NUMBER, AT(tls), 0, 0},
	{"sasl", KEY_TEXT, AT(sasl), 0, 0},
	{"sasl-user", KEY_TEXT, AT(sasl_user), 0, 0},
	{"sasl-password", KEY_TEXT, AT(sasl_password), 0, 0},
	{"header", KEY_LIST, LIST(headers, headers_n)},
	{"secret", KEY_LIST, LIST(secrets, secrets_n)},
	{"sign", KEY_LIST, LIST(sign, sign_n)},
	{"key", KEY_TEXT, AT(key), 0, 0},
	{"tls-ca", KEY_TEXT, AT(tls_ca), 0, 0},
	{"tls-cert", KEY_TEXT, AT(tls_cert), 0, 0},
	{"tls-key", KEY_TEXT, AT(tls_key), 0, 0},
	{"expect-status", KEY_TEXT, AT(expect_status), 0, 0},
	{"expect-body", KEY_TEXT, AT(expect_body), 0, 0},
	{"expect-size", KEY_NUMBER, AT(expect_size), 0, 0},
	{"allow", KEY_TEXT, AT(allow), 0, 0},
	{"proxy", KEY_TEXT, AT(proxy), 0, 0},
	{"start-by", KEY_NUMBER, AT(start_by), 0, 0},
	{"async", KEY_NUMBER, AT(async), 0, 0},
	{"suspend-on-410", KEY_NUMBER, AT(suspend_on_410), 0, 0},
	{"ends-with-lease", KEY_NUMBER, AT(ends_with_lease), 0, 0},
};

static bool key_set(struct call_payload *p, const struct key *k, const char *value, struct err *e)
{
	char *at = (char *)p + k->offset;
	size_t *n = (size_t *)((char *)p + k->count);

	switch (k->type) {
	case KEY_TEXT:
		*(const char **)at = value;
		return true;
	case KEY_NUMBER:
		return text_parse_int(value, 0, INT64_MAX, (int64_t *)at) ||
			err_set(e, ERR_INVALID, "the payload has '%s' without a number", k->name);
	default:
		if (*n == k->max)
			return err_set(e, ERR_INVALID, "the payload has too many '%s'", k->name);
		((const char **)at)[(*n)++] = value;
		return true;
	}
}

static bool text_take(struct call_payload *p, const char *text, struct err *e)
{
	size_t len = strcspn(text, "=");

	for (size_t i = 0; text[len] && i < ELEMENTS(keys); i++)
		if (strlen(keys[i].name) == len && strncmp(keys[i].name, text, len) == 0)
			return key_set(p, &keys[i], text + len + 1, e);
	return err_set(e, ERR_INVALID, "the payload has the unknown key '%.*s'",
		(int)(len > 40 ? 40 : len), text);
}

bool call_payload_parse(const struct net_payload *p, struct call_payload *ret, struct err *e)
{
	*ret = (struct call_payload){};
	for (size_t i = 0; i < p->n; i++)
		if (!text_take(ret, p->texts[i], e))
			return false;
	ret->kind = ret->method && ret->url ? CALL_HTTP
		: ret->brokers && ret->topic ? CALL_KAFKA
		: ret->lambda && ret->region ? CALL_LAMBDA
					      : CALL_NONE;
	return (ret->kind != CALL_NONE && ret->key) || err_set(e, ERR_INVALID, "a call without a target or key");
}
