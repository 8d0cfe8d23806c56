/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the ids of spans from the number of the run. */
#include "core/job/trace.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/sha256.h"
#include "base/text.h"
#include <string.h>

#define HEX "0123456789abcdef"
#define ID_AT 3
#define SPAN_AT (ID_AT + TRACE_ID_LEN + 1)
#define FLAGS_AT (SPAN_AT + SPAN_ID_LEN + 1)

static bool hex_valid(const char *text, size_t len, bool zeros)
{
	return strspn(text, HEX) >= len && (zeros || strspn(text, "0") < len);
}

bool trace_parent_valid(const char *text)
{
	return strlen(text) == TRACE_PARENT_LEN && text[2] == '-' && text[SPAN_AT - 1] == '-' && text[FLAGS_AT - 1] == '-' &&
	       hex_valid(text, 2, true) && strncmp(text, "ff", 2) != 0 && hex_valid(text + ID_AT, TRACE_ID_LEN, false) &&
	       hex_valid(text + SPAN_AT, SPAN_ID_LEN, false) && hex_valid(text + FLAGS_AT, 2, true);
}

bool trace_text_valid(const char *text, int64_t max)
{
	size_t len = strlen(text);

	if (len == 0 || (int64_t)len > max)
		return false;
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

bool trace_var_valid(const char *var)
{
	if (text_starts(var, "TRACEPARENT="))
		return trace_parent_valid(var + strlen("TRACEPARENT="));
	if (text_starts(var, "TRACESTATE="))
		return trace_text_valid(var + strlen("TRACESTATE="), TRACE_STATE_MAX);
	return text_starts(var, "BAGGAGE=") && trace_text_valid(var + strlen("BAGGAGE="), TRACE_BAGGAGE_MAX);
}

/* The first digits of the hash of what identifies a span or a trace. */
static void derive(const char *what, const char *store_id, int64_t run, int64_t fence, size_t len, char *ret)
{
	AUTO_DONE(buf) from = {};
	unsigned char hash[SHA256_LEN];
	struct sha256 s;

	buf_str(&from, "jobsched ");
	buf_str(&from, what);
	buf_char(&from, ' ');
	buf_str(&from, store_id);
	buf_char(&from, ' ');
	buf_json_int(&from, run);
	buf_char(&from, ' ');
	buf_json_int(&from, fence);
	sha256_init(&s);
	sha256_add(&s, from.data, from.len);
	sha256_end(&s, hash);
	for (size_t i = 0; i < len; i++)
		ret[i] = HEX[i % 2 ? hash[i / 2] & 15 : hash[i / 2] >> 4];
	ret[len] = '\0';
}

static void copy_id(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
	to[len] = '\0';
}

void trace_of_run(struct trace *ret, const char *store_id, int64_t run, const char *traceparent, bool continues,
	bool sampled)
{
	*ret = (struct trace){.sampled = sampled};
	if (traceparent && !trace_parent_valid(traceparent))
		traceparent = NULL;
	if (traceparent && continues) {
		copy_id(ret->id, traceparent + ID_AT, TRACE_ID_LEN);
		copy_id(ret->parent, traceparent + SPAN_AT, SPAN_ID_LEN);
		ret->sampled = strchr("13579bdf", traceparent[FLAGS_AT + 1]) != NULL;
	} else {
		derive("trace", store_id, run, 0, TRACE_ID_LEN, ret->id);
	}
	if (traceparent && !continues) {
		copy_id(ret->link_id, traceparent + ID_AT, TRACE_ID_LEN);
		copy_id(ret->link_span, traceparent + SPAN_AT, SPAN_ID_LEN);
	}
	if (ret->sampled)
		derive("run", store_id, run, 0, SPAN_ID_LEN, ret->run);
}

void trace_attempt_span(const char *store_id, int64_t run, int64_t fence,
	char ret[SPAN_ID_LEN + 1])
{
	derive("attempt", store_id, run, fence, SPAN_ID_LEN, ret);
}
