/* SPDX-License-Identifier: Apache-2.0 */
/* Who needs a warrant, and how one is written down. */
#include "core/warrant.h"
#include "base/sha256.h"
#include <string.h>

bool warrant_needed(enum warrant_policy p, int64_t uid)
{
	return p == WARRANT_ALL || (p == WARRANT_ROOT && uid == 0);
}

bool warrant_parse(const char *hex, unsigned char ret[WARRANT_LEN])
{
	static const char digits[] = "0123456789abcdef";

	if (strspn(hex, digits) != 2 * WARRANT_LEN || hex[2 * WARRANT_LEN])
		return false;
	for (int i = 0; i < WARRANT_LEN; i++)
		ret[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) << 4 | (strchr(digits, hex[2 * i + 1]) - digits));
	return true;
}

char *warrant_print(const unsigned char warrant[WARRANT_LEN], char out[WARRANT_HEX])
{
	return sha256_hex(warrant, out);
}
