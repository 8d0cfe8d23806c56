/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the crontabs of unit tests. The accounts are root and ann. */
#pragma once
#include "core/crontab/crontab.h"
#include <string.h>

static inline bool is_account(const char *name, void *arg)
{
	(void)arg;
	return strcmp(name, "root") == 0 || strcmp(name, "ann") == 0;
}

static inline struct crontab *parse_bytes(const char *data, size_t len, enum crontab_mode mode, bool system)
{
	const struct crontab_options o = {.mode = mode, .system = system, .user_exists = is_account};
	struct crontab *t;

	crontab_parse(data, len, &o, &t);
	return t;
}

static inline struct crontab *parse(const char *text)
{
	return parse_bytes(text, strlen(text), CRONTAB_DEBIAN, false);
}

static inline struct crontab *parse_system(const char *text)
{
	return parse_bytes(text, strlen(text), CRONTAB_DEBIAN, true);
}

static inline struct crontab *parse_cronie(const char *text)
{
	return parse_bytes(text, strlen(text), CRONTAB_CRONIE, false);
}

static inline const struct crontab_finding *finding(const struct crontab *t, const char *code)
{
	for (size_t i = 0; i < t->n_findings; i++)
		if (strcmp(t->findings[i].code, code) == 0)
			return &t->findings[i];
	return NULL;
}
