/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and compares addresses of TCP sockets. */
#include "daemon/api/auth/tcp_address.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

bool tcp_address_parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len,
	struct err *e)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
	AUTO_TEXT host = brackets ? xstrndup(text + 1, len - 2) : xstrndup(text, len);
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	int64_t port;

	*ret = (struct sockaddr_storage){};
	if (colon && text_parse_int(colon + 1, 0, 65535, &port)) {
		if (brackets && inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
			six->sin6_family = AF_INET6;
			six->sin6_port = htons((uint16_t)port);
			*ret_len = sizeof(*six);
			return true;
		}
		if (!brackets && inet_pton(AF_INET, host, &four->sin_addr) == 1) {
			four->sin_family = AF_INET;
			four->sin_port = htons((uint16_t)port);
			*ret_len = sizeof(*four);
			return true;
		}
	}
	return err_set(e, ERR_INVALID,
		"'listen' is '%.80s', not ADDRESS:PORT such as 127.0.0.1:8470 or [::]:8470", text);
}

/* The IPv4 address of 'a', also if it is mapped to IPv6; NULL: another family. */
static const struct in_addr *ipv4_of(const struct sockaddr_storage *a)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;

	if (a->ss_family == AF_INET)
		return &((const struct sockaddr_in *)a)->sin_addr;
	if (a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six))
		return (const struct in_addr *)(const void *)(six->s6_addr + 12);
	return NULL;
}

bool tcp_address_is_loopback(const struct sockaddr_storage *a)
{
	const struct in_addr *four = ipv4_of(a);

	if (four)
		return ntohl(four->s_addr) >> 24 == 127;
	return a->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

uint16_t tcp_address_port(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					      : ((const struct sockaddr_in *)a)->sin_port);
}

void tcp_address_text(const struct sockaddr_storage *a, char out[TCP_ADDRESS_TEXT])
{
	const struct in_addr *four = ipv4_of(a);
	const char *done = NULL;

	if (four)
		done = inet_ntop(AF_INET, four, out, TCP_ADDRESS_TEXT);
	else if (a->ss_family == AF_INET6)
		done = inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, out,
			TCP_ADDRESS_TEXT);
	if (!done)
		snprintf(out, TCP_ADDRESS_TEXT, "?");
}

int64_t tcp_address_key(const struct sockaddr_storage *a)
{
	const struct in_addr *four = ipv4_of(a);
	int64_t key = 0;

	if (four)
		return (int64_t)ntohl(four->s_addr);
	if (a->ss_family == AF_INET6)
		memcpy(&key, &((const struct sockaddr_in6 *)a)->sin6_addr, sizeof(key));
	return key;
}
