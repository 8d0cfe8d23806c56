/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which addresses a call may connect to. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct address {
	bool v6;
	uint8_t bytes[16]; /* network order; the first 4 of an IPv4 address */
};

/* A literal IPv4 or IPv6 address, or localhost. False: it is another host name. */
bool address_guard_parse(const char *host, struct address *ret);

/* Checks 'http-allow': addresses and networks (10.0.0.0/8, ::1) separated by commas or blanks. */
bool address_guard_list_check(const char *list, struct err *e);

/*
 * Whether a URL of a job may lead there. Loopback, link-local, private, metadata, multicast and
 * other special ranges are refused unless the list (NULL: empty) contains them. *ret_why is the name of
 * the range.
 */
bool address_guard_allows(const struct address *a, const char *list, const char **ret_why);
