/* SPDX-License-Identifier: Apache-2.0 */
/* Turns socket addresses into those of the guard, and its refusals into sentences. */
#include "net/peer_address.h"
#include "core/target/address_guard.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static bool address_allowed(const struct address *a, const char *allow, char *why, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "";
	const char *reason = "unknown";

	if (address_guard_allows(a, allow, &reason))
		return true;
	inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->bytes, text, sizeof(text));
	snprintf(why, size, "the address %s (%s) is refused; an administrator can list it in http-allow", text, reason);
	return false;
}

bool peer_address_allowed(const struct sockaddr *sa, const char *allow, char *why, size_t size)
{
	struct address a = {.v6 = sa->sa_family == AF_INET6};

	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6) {
		snprintf(why, size, "the address is neither IPv4 nor IPv6");
		return false;
	}
	if (a.v6)
		memcpy(a.bytes, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	else
		memcpy(a.bytes, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	return address_allowed(&a, allow, why, size);
}

bool peer_address_text_allowed(const char *text, const char *allow, char *why, size_t size)
{
	struct address a;

	if (!address_guard_parse(text, &a)) {
		snprintf(why, size, "'%.64s' is not an address", text);
		return false;
	}
	return address_allowed(&a, allow, why, size);
}
