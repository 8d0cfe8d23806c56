/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of TCP listeners and clients. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct err;

/* ADDRESS:PORT, with an IPv6 address in brackets. A host name is not accepted. Port 0: any port. */
bool tcp_address_parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len,
	struct err *e);
bool tcp_address_is_loopback(const struct sockaddr_storage *a);
uint16_t tcp_address_port(const struct sockaddr_storage *a);
/* Without the port; "?" for another family. An IPv4 address mapped to IPv6 is written as IPv4. */
#define TCP_ADDRESS_TEXT 46
void tcp_address_text(const struct sockaddr_storage *a, char out[TCP_ADDRESS_TEXT]);
/* Clients with the same key share limits: one IPv4 address, or the /64 of an IPv6 address. */
int64_t tcp_address_key(const struct sockaddr_storage *a);
