/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the dispatcher is linked with and that its tests do not look at. */
#include "base/err.h"
#include "daemon/artifact/artifact_requests.h"
#include "exec/proto/spawn_client.h"

void artifact_requests_hold(struct artifact_requests *a, const struct artifact_user *u)
{
	(void)a;
	(void)u;
}

const char *artifact_requests_busy(const struct artifact_requests *a)
{
	(void)a;
	return NULL;
}

void spawn_client_watch_tables(struct spawn_client *c, bool on)
{
	(void)c;
	(void)on;
}

bool spawn_client_tables(struct spawn_client *c, struct table_list *ret)
{
	(void)c;
	(void)ret;
	return false;
}

bool spawn_client_state(struct spawn_client *c, const struct spawn_state *s, struct err *e)
{
	(void)c;
	return err_set(e, ERR_BUSY, "the state of run %lld stays", (long long)s->run);
}

bool spawn_client_open_file(struct spawn_client *c, const struct spawn_file *f, struct err *e)
{
	(void)c;
	(void)f;
	(void)e;
	return true;
}
