/* SPDX-License-Identifier: Apache-2.0 */
/* Reads signs of life; estimates the end of a run from its progress. */
#include "core/job/sign.h"
#include "base/text.h"
#include <string.h>

#define EXTEND_MAX (366 * USEC_DAY)

/* The length of the UTF-8 character at s; 0: the bytes are not valid UTF-8. */
static size_t character_length(const char *s, size_t len)
{
	for (size_t n = 1; n <= 4 && n <= len; n++)
		if (text_utf8_valid(s, n))
			return n;
	return 0;
}

void sign_text(const char *from, size_t len, char to[SIGN_TEXT_MAX])
{
	size_t at = 0;

	while (len > 0) {
		size_t n = character_length(from, len);

		if (at + (n ? n : 1) >= SIGN_TEXT_MAX)
			break;
		if (n == 0)
			to[at++] = '?';
		else if (n == 1)
			to[at++] = (unsigned char)*from < ' ' || *from == 0x7f ? ' ' : *from;
		else if (n == 2 && (unsigned char)from[0] == 0xc2 && (unsigned char)from[1] < 0xa0)
			to[at++] = ' '; /* C1 control characters */
		else
			at = (size_t)((char *)memcpy(to + at, from, n) + n - to);
		from += n ? n : 1;
		len -= n ? n : 1;
	}
	while (at > 0 && to[at - 1] == ' ')
		at--;
	to[at] = '\0';
}

static bool starts_with(const char *line, size_t len, const char *prefix, const char **ret, size_t *ret_len)
{
	size_t n = strlen(prefix);

	if (len < n || memcmp(line, prefix, n) != 0)
		return false;
	*ret = line + n;
	*ret_len = len - n;
	return true;
}

/* Reads decimal digits up to 'max'. False: there is none, or the number is larger. */
static bool read_digits(const char **at, size_t *len, int64_t max, int64_t *ret)
{
	int64_t n = 0;
	size_t i = 0;

	for (; i < *len && (*at)[i] >= '0' && (*at)[i] <= '9'; i++) {
		n = n * 10 + ((*at)[i] - '0');
		if (n > max)
			return false;
	}
	*at += i;
	*len -= i;
	*ret = n;
	return i > 0;
}

static bool read_progress(const char *rest, size_t len, struct sign *ret)
{
	int64_t percent;

	if (len > 0 && *rest >= '0' && *rest <= '9') {
		if (!read_digits(&rest, &len, 100, &percent))
			return false;
		ret->percent = (int)percent;
		if (len > 0 && *rest == '%') {
			rest++;
			len--;
		}
		if (len > 0 && *rest != ' ')
			return false;
	}
	while (len > 0 && *rest == ' ') {
		rest++;
		len--;
	}
	ret->has_text = len > 0 || ret->percent == SIGN_PERCENT_NONE;
	sign_text(rest, len, ret->text);
	return true;
}

bool sign_parse(const char *line, size_t len, struct sign *ret)
{
	const char *rest;
	size_t left;
	int64_t n;

	*ret = (struct sign){.percent = SIGN_PERCENT_NONE};
	while (len > 0 && line[len - 1] == '\r')
		len--;
	if (starts_with(line, len, "jobsched:progress=", &rest, &left))
		return read_progress(rest, left, ret);
	if (starts_with(line, len, "WATCHDOG=1", &rest, &left))
		return left == 0;
	if (starts_with(line, len, "STATUS=", &rest, &left)) {
		ret->has_text = true;
		sign_text(rest, left, ret->text);
		return true;
	}
	if (!starts_with(line, len, "EXTEND_TIMEOUT_USEC=", &rest, &left))
		return false;
	if (!read_digits(&rest, &left, INT64_MAX / 16, &n) || left > 0)
		return false;
	ret->extend = n > EXTEND_MAX ? EXTEND_MAX : n;
	return true;
}

usec_t progress_estimate(const struct progress *p, usec_t started_at, usec_t usual, usec_t now)
{
	usec_t total = usual;

	if (started_at <= 0)
		return 0;
	if (p->at > started_at && p->percent > 0) {
		usec_t measured = (p->at - started_at) / p->percent * 100;

		total = usual ? measured / 100 * p->percent + usual / 100 * (100 - p->percent) : measured;
	}
	if (total <= 0 || total > USEC_LAST - started_at || started_at + total <= now)
		return 0;
	return started_at + total;
}
