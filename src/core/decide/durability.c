/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the settings of a database server. */
#include "core/decide/durability.h"
#include "base/text.h"
#include <stddef.h>

const char *durability_risk(const struct durability_facts *f)
{
	if (text_equal(f->fsync, "off"))
		return "'fsync' is off on the server: a crash of its machine can lose acknowledged work and damage the store";
	if (text_equal(f->full_page_writes, "off"))
		return "'full_page_writes' is off on the server: a crash of its machine can damage the store";
	if (text_equal(f->synchronous_commit, "off"))
		return "'synchronous_commit' is off: a crash of the server loses acknowledged work";
	if (text_equal(f->synchronous_commit, "local"))
		return "'synchronous_commit' is local: a failover loses acknowledged work";
	if (f->synchronous_standby_names && !f->synchronous_standby_names[0] && (f->standbys > 0 || f->servers > 1))
		return "replication is asynchronous ('synchronous_standby_names' is empty on the server): a failover loses "
		       "acknowledged work";
	return NULL;
}
