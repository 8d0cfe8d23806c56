/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the address guard to the address of a connection. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct sockaddr;

/* False: the reason is in 'why'. 'allow': http-allow; NULL: none. */
bool peer_address_allowed(const struct sockaddr *sa, const char *allow, char *why, size_t size);
/* The same for an address in text form. */
bool peer_address_text_allowed(const char *text, const char *allow, char *why, size_t size);
