/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text format in which the spawner reports its sandbox profiles, so that the daemon can refuse a
 * job at submission. Each profile is a line 'profile NAME yes|no' (whether jobs may use it), an
 * optional line 'missing TEXT', and a line 'applies TEXT' for each effect.
 */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdatomic.h>
#include <stdbool.h>

struct err;
struct sandbox;

#define SANDBOX_OFFERS_MAX (1 << 20) /* bytes of the text */

struct sandbox_offer {
	char *name;
	bool available;
	char *missing;       /* NULL: nothing */
	struct strv applies; /* descriptions of the effects */
};
/* Immutable; may be shared between threads. */
struct sandbox_offers {
	atomic_int refs;
	struct sandbox_offer *v;
	size_t n;
};

void sandbox_offer_print(const struct sandbox *s, bool available, const char *missing, struct buf *out);
bool sandbox_offers_parse(const char *text, size_t len, struct sandbox_offers **ret, struct err *e);
struct sandbox_offers *sandbox_offers_ref(struct sandbox_offers *o); /* NULL gives NULL */
void sandbox_offers_free(struct sandbox_offers *o);                  /* drops a reference; NULL is allowed */
AUTO_DEFINE(sandbox_offers);
/*
 * Whether a job may use this profile (NULL: the default). Without a report of the spawner every
 * profile is accepted.
 */
bool sandbox_offers_check(const struct sandbox_offers *o, const char *name, struct err *e);
