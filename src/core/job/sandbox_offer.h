/* SPDX-License-Identifier: Apache-2.0 */
/* What a spawner says of its sandbox profiles, so that the engine can refuse a job early and say what will apply. */
/*
 * As text: a line 'profile NAME yes|no' (whether jobs may have it), then 'missing TEXT' where something is, and a line
 * 'applies TEXT' for each thing that will apply.
 */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdatomic.h>
#include <stdbool.h>

struct err;
struct sandbox;

#define SANDBOX_OFFERS_MAX (1 << 20) /* bytes of it */

struct sandbox_offer {
	char *name;
	bool available;
	char *missing;       /* NULL: nothing */
	struct strv applies; /* in words */
};
/* Not changed once it is made, so that threads can share it. */
struct sandbox_offers {
	atomic_int refs;
	struct sandbox_offer *v;
	size_t n;
};

void sandbox_offer_print(const struct sandbox *s, bool available, const char *missing, struct buf *out);
bool sandbox_offers_parse(const char *text, size_t len, struct sandbox_offers **ret, struct err *e);
struct sandbox_offers *sandbox_offers_ref(struct sandbox_offers *o); /* NULL gives NULL */
void sandbox_offers_free(struct sandbox_offers *o);                  /* one reference less; NULL is fine */
AUTO_DEFINE(sandbox_offers);
/* Whether a job may ask for this profile (NULL: the default). Without offers nobody knows yet, and it may. */
bool sandbox_offers_check(const struct sandbox_offers *o, const char *name, struct err *e);
