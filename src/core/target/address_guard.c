/* SPDX-License-Identifier: Apache-2.0 */
/* The refused ranges, and the list of exceptions. */
#include "core/target/address_guard.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NETWORK_TEXT_MAX 64

struct network {
	struct address address;
	unsigned bits;
};

static const struct {
	const char *network, *name;
} refused[] = {
	{"0.0.0.0/8", "unspecified"},
	{"10.0.0.0/8", "private"},
	{"100.64.0.0/10", "shared"},
	{"127.0.0.0/8", "loopback"},
	{"169.254.0.0/16", "link-local"}, /* with the metadata service of cloud machines */
	{"172.16.0.0/12", "private"},
	{"192.0.0.0/24", "reserved"},
	{"192.168.0.0/16", "private"},
	{"198.18.0.0/15", "reserved"},
	{"224.0.0.0/4", "multicast"},
	{"240.0.0.0/4", "reserved"},
	{"::/128", "unspecified"},
	{"::1/128", "loopback"},
	{"fe80::/10", "link-local"},
	{"fec0::/10", "private"},
	{"fc00::/7", "private"},
	{"ff00::/8", "multicast"},
};

bool address_guard_parse(const char *host, struct address *ret)
{
	size_t len = strlen(host);

	*ret = (struct address){};
	if (strcasecmp(host, "localhost") == 0 ||
		(len > 10 && strcasecmp(host + len - 10, ".localhost") == 0))
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, ret->bytes) == 1)
		return true;
	ret->v6 = inet_pton(AF_INET6, host, ret->bytes) == 1;
	return ret->v6;
}

static bool network_parse(const char *text, size_t len, struct network *ret)
{
	char copy[NETWORK_TEXT_MAX], *slash;
	int64_t bits;

	if (len == 0 || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	slash = strchr(copy, '/');
	if (slash)
		*slash = '\0';
	if (!address_guard_parse(copy, &ret->address))
		return false;
	ret->bits = ret->address.v6 ? 128 : 32;
	if (!slash)
		return true;
	if (!text_parse_int(slash + 1, 0, ret->bits, &bits))
		return false;
	ret->bits = (unsigned)bits;
	return true;
}

static bool network_contains(const struct network *n, const struct address *a)
{
	unsigned bytes = n->bits / 8, rest = n->bits % 8;

	if (n->address.v6 != a->v6 || memcmp(n->address.bytes, a->bytes, bytes) != 0)
		return false;
	return rest == 0 || (n->address.bytes[bytes] ^ a->bytes[bytes]) >> (8 - rest) == 0;
}

/* The next word of the list; false: there is none. */
static bool list_next(const char **at, size_t *ret_len)
{
	*at += strspn(*at, ", \t");
	*ret_len = strcspn(*at, ", \t");
	return *ret_len > 0;
}

bool address_guard_list_check(const char *list, struct err *e)
{
	struct network n;
	size_t len;

	for (; list_next(&list, &len); list += len)
		if (!network_parse(list, len, &n))
			return err_set(e, ERR_INVALID,
				"'%.*s' is not an address or network, as 10.1.2.3, 10.0.0.0/8 or fd00::/8",
				(int)(len > 64 ? 64 : len), list);
	return true;
}

static bool list_contains(const char *list, const struct address *a)
{
	struct network n;
	size_t len;

	for (; list && list_next(&list, &len); list += len)
		if (network_parse(list, len, &n) && network_contains(&n, a))
			return true;
	return false;
}

/* IPv6 addresses that lead to an IPv4 address: mapped, NAT64, 6to4. */
static bool embedded(const struct address *a, struct address *ret)
{
	static const struct {
		uint8_t bytes[12];
		size_t len, at;
	} prefixes[] = {
		{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 12, 12},
		{{0, 0x64, 0xff, 0x9b}, 12, 12},
		{{0x20, 0x02}, 2, 2},
	};

	for (size_t i = 0; a->v6 && i < ELEMENTS(prefixes); i++)
		if (memcmp(a->bytes, prefixes[i].bytes, prefixes[i].len) == 0) {
			*ret = (struct address){};
			memcpy(ret->bytes, a->bytes + prefixes[i].at, 4);
			return true;
		}
	return false;
}

bool address_guard_allows(const struct address *a, const char *list, const char **ret_why)
{
	struct address inner;
	struct network n;

	if (list_contains(list, a))
		return true;
	if (embedded(a, &inner))
		return address_guard_allows(&inner, list, ret_why);
	for (size_t i = 0; i < ELEMENTS(refused); i++)
		if (network_parse(refused[i].network, strlen(refused[i].network), &n) &&
			network_contains(&n, a)) {
			*ret_why = refused[i].name;
			return false;
		}
	return true;
}
