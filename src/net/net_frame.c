/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: layout, checks. */
#include "net/net_frame.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DURATION_MAX (INT64_C(36525) * USEC_DAY)
#define BYTES_MAX (INT64_C(1) << 50)

struct range {
	size_t offset;
	int64_t min, max;
	const char *name;
};

struct layout {
	const char *name;
	size_t body;
	enum net_frame_from from;
	bool handshake;
	size_t text, text_size; /* offset and size of its text; size 0: none */
	struct range ranges[9];
};

#define BODY(member) sizeof(((struct net_frame *)0)->member)
#define NUMBER(body, member, lo, hi) {offsetof(struct net_frame, body.member), lo, hi, #member}
#define ID(at) NUMBER(at, kind, 1, NET_KIND_MAX - 1), NUMBER(at, id, 1, INT64_MAX), NUMBER(at, attempt, 0, INT64_MAX)
#define TEXT(body, member) offsetof(struct net_frame, body.member), sizeof(((struct net_frame *)0)->body.member)

static const struct layout layouts[NET_FRAME_TYPE_MAX] = {
	[NET_HELLO] = {"hello", BODY(hello), NET_FROM_DAEMON, true, TEXT(hello, node), {}},
	[NET_SETTINGS] = {"settings", BODY(settings), NET_FROM_DAEMON, false, 0, 0,
		{NUMBER(settings, budget, 0, BYTES_MAX)}},
	[NET_HOLD] = {"hold", BODY(hold), NET_FROM_DAEMON, false, TEXT(hold, key),
		{ID(hold.id), NUMBER(hold, uid, 0, UINT32_MAX)}},
	[NET_REQUEST] = {"request", BODY(request), NET_FROM_DAEMON, false, 0, 0,
		{ID(request.id), NUMBER(request, uid, 0, UINT32_MAX),
			NUMBER(request, limit, 0, BYTES_MAX),
			NUMBER(request, timeout, 1, DURATION_MAX)}},
	[NET_SYNC] = {"sync", 0, NET_FROM_DAEMON, false, 0, 0, {}},
	[NET_CANCEL] = {"cancel", BODY(id), NET_FROM_DAEMON, false, 0, 0, {ID(id)}},
	[NET_ACK] = {"ack", BODY(id), NET_FROM_DAEMON, false, 0, 0, {ID(id)}},
	[NET_WELCOME] = {"welcome", BODY(welcome), NET_FROM_NET, true, 0, 0, {}},
	[NET_REFUSED] = {"refused", BODY(refused), NET_FROM_NET, true, TEXT(refused, error), {}},
	[NET_RESULT] = {"result", BODY(result), NET_FROM_NET, false, TEXT(result, error),
		{ID(result.id), NUMBER(result, outcome, 0, NET_OUTCOME_MAX - 1)}},
	[NET_HAS] = {"has", BODY(id), NET_FROM_NET, false, 0, 0, {ID(id)}},
	[NET_SYNCED] = {"synced", 0, NET_FROM_NET, false, 0, 0, {}},
	[NET_NEED_FILE] = {"need_file", BODY(id), NET_FROM_NET, false, 0, 0, {ID(id)}},
	[NET_SUPERSEDED] = {"superseded", 0, NET_FROM_NET, false, 0, 0, {}},
	[NET_DEADLINE] = {"deadline", BODY(deadline), NET_FROM_DAEMON, false, 0, 0,
		{NUMBER(deadline, end_at, 0, USEC_NEVER)}},
	[NET_NEED_SECRET] = {"need_secret", BODY(need_secret), NET_FROM_NET, false, 0, 0,
		{ID(need_secret.id), NUMBER(need_secret, index, 0, NET_SECRETS_MAX - 1)}},
	[NET_CALL_RESULT] = {"call_result", BODY(call), NET_FROM_NET, false, TEXT(call, error),
		{ID(call.id), NUMBER(call, number, 0, INT64_MAX), NUMBER(call, outcome, 0, NET_CALL_OUTCOME_MAX - 1),
			NUMBER(call, status, 0, 999), NUMBER(call, retry_after, 0, DURATION_MAX),
			NUMBER(call, bytes, 0, BYTES_MAX), NUMBER(call, kept, 0, NET_KEPT_MAX)}},
};
_Static_assert(NET_FRAME_HEAD == 8, "frames have no padding");

void net_frame_init(struct net_frame *f, enum net_frame_type type, uint32_t version)
{
	memset(f, 0, sizeof(*f));
	f->type = (uint16_t)type;
	f->version = layouts[type].handshake ? 0 : (uint16_t)version;
	f->size = (uint32_t)(NET_FRAME_HEAD + layouts[type].body);
}

void net_frame_text(char *to, size_t size, const char *text)
{
	memset(to, 0, size);
	if (text)
		memcpy(to, text, strnlen(text, size - 1));
}

bool net_frame_id_equal(const struct net_id *a, const struct net_id *b)
{
	return a->kind == b->kind && a->id == b->id && a->attempt == b->attempt;
}

int64_t net_frame_id_hash(const struct net_id *id)
{
	return (int64_t)((uint64_t)id->id << 3 ^ (uint64_t)id->kind);
}

/* The padding must be zero, so that no stale memory of the sender is transferred. */
static bool net_text_valid(const char *s, size_t size)
{
	size_t len = strnlen(s, size);

	for (size_t i = len; i < size; i++)
		if (s[i])
			return false;
	return len < size;
}

static bool net_body_check(const struct net_frame *f, const struct layout *l, struct err *e)
{
	const char *base = (const char *)f;

	for (const struct range *r = l->ranges; r < l->ranges + ELEMENTS(l->ranges) && r->name;
		r++) {
		int64_t n;

		memcpy(&n, base + r->offset, sizeof(n));
		if (n < r->min || n > r->max)
			return err_set(e, ERR_INVALID, "frame '%s': %s %" PRId64 " is out of range",
				l->name, r->name, n);
	}
	if (l->text_size && !net_text_valid(base + l->text, l->text_size))
		return err_set(e, ERR_INVALID, "frame '%s': its text is not terminated", l->name);
	if (f->type == NET_HELLO && (f->hello.oldest < 1 || f->hello.newest < f->hello.oldest))
		return err_set(e, ERR_INVALID, "frame 'hello': versions %u to %u", f->hello.oldest,
			f->hello.newest);
	return true;
}

size_t net_frame_bytes(const struct net_frame *f)
{
	return f->size - NET_FRAME_HEAD - layouts[f->type].body;
}

/* The bytes after the fields of the frame are a payload, or the whole response. */
static bool net_bytes_fit(const struct net_frame *f, size_t n)
{
	return n == 0 || (f->version >= NET_FRAME_VERSION_BATCH && n <= NET_INLINE_MAX &&
		(f->type == NET_REQUEST || (f->type == NET_CALL_RESULT && (size_t)f->call.kept == n)));
}

static size_t net_fds_expected(const struct net_frame *f)
{
	if (net_frame_bytes(f) > 0)
		return 0;
	if (f->type == NET_RESULT)
		return (f->result.id.kind == NET_KIND_ARTIFACT || f->result.id.kind == NET_KIND_S3) &&
			f->result.outcome == NET_DONE;
	if (f->type == NET_CALL_RESULT)
		return f->call.kept > 0;
	return f->type == NET_REQUEST || f->type == NET_NEED_FILE || f->type == NET_NEED_SECRET;
}

/* Calls exist since version 2, storage requests since version 3. */
static bool net_version_fits(const struct net_frame *f)
{
	int64_t newest = f->version < NET_FRAME_VERSION_CALLS ? NET_KIND_OTLP
		: f->version < NET_FRAME_VERSION_S3	      ? NET_KIND_CALL
							      : NET_KIND_MAX - 1;

	return (f->version != 1 || f->type < NET_DEADLINE) && (f->type != NET_REQUEST || f->request.id.kind <= newest);
}

bool net_frame_check(const struct net_frame *f, size_t len, size_t fds, enum net_frame_from from,
	uint32_t version, struct err *e)
{
	const struct layout *l =
		len >= NET_FRAME_HEAD && f->type < NET_FRAME_TYPE_MAX ? &layouts[f->type] : NULL;

	if (!l || !l->name || l->from != from)
		return err_set(e, ERR_INVALID,
			"a packet of %zu bytes is not a valid frame from that side", len);
	if (len != f->size || len < NET_FRAME_HEAD + l->body || !net_bytes_fit(f, len - NET_FRAME_HEAD - l->body))
		return err_set(e, ERR_INVALID, "frame '%s' of %zu bytes instead of %zu", l->name,
			len, NET_FRAME_HEAD + l->body);
	if (l->handshake != (version == 0) || f->version != version)
		return err_set(e, ERR_INVALID, "frame '%s' of version %u where %u was agreed",
			l->name, f->version, version);
	if (!net_body_check(f, l, e))
		return false;
	if (!net_version_fits(f))
		return err_set(e, ERR_INVALID, "frame '%s' does not exist in version %u", l->name, f->version);
	if (fds != net_fds_expected(f))
		return err_set(e, ERR_INVALID, "frame '%s' with %zu descriptors", l->name, fds);
	return true;
}

char *net_frame_artifact_key(
	const char *url, const char *sha256, int64_t uid, char out[NET_KEY_MAX])
{
	AUTO_TEXT place =
		text_starts(url, "file:") ? xprintf("%" PRId64 " %s", uid, url) : xstrdup(url);
	unsigned char sum[SHA256_LEN];
	char hex[SHA256_HEX];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, place, strlen(place));
	sha256_end(&s, sum);
	snprintf(out, NET_KEY_MAX, "%.64s-%.16s", sha256, sha256_hex(sum, hex));
	return out;
}
