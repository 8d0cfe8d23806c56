/* SPDX-License-Identifier: Apache-2.0 */
/* Warrant policies and the text form of a warrant. */
#include "core/job/warrant.h"
#include "base/sha256.h"
#include <string.h>

static const char digits[] = "0123456789abcdef";

bool warrant_needed(enum warrant_policy p, int64_t uid)
{
	return p == WARRANT_ALL || (p == WARRANT_ROOT && uid == 0);
}

static void from_hex(const char *hex, unsigned char *ret, size_t len)
{
	for (size_t i = 0; i < len; i++)
		ret[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) << 4 | (strchr(digits, hex[2 * i + 1]) - digits));
}

bool warrant_parse(const char *text, unsigned char ret[WARRANT_LEN])
{
	size_t n = strspn(text, digits);

	if ((n != WARRANT_TEXT && n != WARRANT_TEXT_FIRST) || text[n])
		return false;
	from_hex(text + n - 2 * (size_t)WARRANT_LEN, ret, WARRANT_LEN);
	return true;
}

bool warrant_job(const char *text, unsigned char ret[WARRANT_JOB_LEN])
{
	if (!text || strspn(text, digits) != WARRANT_TEXT || text[WARRANT_TEXT])
		return false;
	from_hex(text, ret, WARRANT_JOB_LEN);
	return true;
}

char *warrant_print(const unsigned char job[WARRANT_JOB_LEN], const unsigned char warrant[WARRANT_LEN], char out[WARRANT_HEX])
{
	size_t n = 0;

	for (size_t i = 0; job && i < WARRANT_JOB_LEN; i++) {
		out[n++] = digits[job[i] >> 4];
		out[n++] = digits[job[i] & 15];
	}
	sha256_hex(warrant, out + n);
	return out;
}
