/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the parser of spawner.conf: accepted values are in range, refused files have an error text. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/spawner/spawner_conf.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void settings_check(const struct spawner_conf *c)
{
	if (!c->engine_user[0] || c->uids_n == 0 || c->uids_n > UID_RANGES_MAX)
		abort();
	for (size_t i = 0; i < c->uids_n; i++)
		if (c->uids[i].first < 0 || c->uids[i].first > c->uids[i].last || c->uids[i].last >= UINT32_MAX)
			abort();
	if (spawner_conf_uid_allowed(c, 65534) || spawner_conf_uid_allowed(c, UINT32_MAX))
		abort();
	if (c->require_warrant < 0 || c->require_warrant >= WARRANT_POLICY_MAX || c->pam < 0 || c->pam >= PAM_POLICY_MAX)
		abort();
	if (c->owner_memory < 0 || c->owner_cpu < 0 || c->owner_pids < 0)
		abort();
	for (size_t i = 0; i < c->sandboxes.n; i++)
		if (!sandbox_profile_check(&c->sandboxes.v[i], NULL))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(spawner_conf) c = {};
	AUTO_TEXT text = xcalloc(1, size + 1);
	struct err e = {};

	if (size)
		memcpy(text, data, size);
	spawner_conf_init(&c);
	if (spawner_conf_parse(&c, text, "spawner.conf", &e))
		settings_check(&c);
	else if (!e.msg[0])
		abort();
	return 0;
}
