/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the settings of a database server keep confirmed commits. */
#pragma once
#include <stdint.h>

struct durability_facts {
	/* values of the settings with these names; borrowed; NULL: unknown */
	const char *fsync, *full_page_writes, *synchronous_commit, *synchronous_standby_names;
	int64_t standbys; /* that are connected */
	int64_t servers;  /* named by the connection string */
};

/* The way in which acknowledged work can be lost, as a sentence for users; NULL: none is known. */
const char *durability_risk(const struct durability_facts *f);
