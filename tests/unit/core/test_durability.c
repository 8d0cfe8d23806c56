/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a database server that can lose confirmed commits. */
#include "core/decide/durability.h"
#include "unit/unit.h"
#include <string.h>

/* A server that keeps commits; tests change one fact. */
static struct durability_facts sound(void)
{
	return (struct durability_facts){.fsync = "on", .full_page_writes = "on", .synchronous_commit = "on",
		.synchronous_standby_names = "", .standbys = 0, .servers = 1};
}

static void a_server_without_standbys_is_no_risk(void **state)
{
	struct durability_facts f = sound();

	(void)state;
	assert_null(durability_risk(&f));
	f.synchronous_standby_names = "*";
	f.standbys = 2;
	f.servers = 3;
	assert_null(durability_risk(&f));
}

static void asynchronous_standbys_are_a_risk(void **state)
{
	struct durability_facts f = sound();

	(void)state;
	f.standbys = 1;
	assert_non_null(strstr(durability_risk(&f), "asynchronous"));
	f.standbys = 0;
	f.servers = 2;
	assert_non_null(strstr(durability_risk(&f), "asynchronous"));
}

static void settings_that_skip_the_disk_are_a_risk(void **state)
{
	struct durability_facts f = sound();

	(void)state;
	f.fsync = "off";
	assert_non_null(strstr(durability_risk(&f), "'fsync'"));
	f = sound();
	f.full_page_writes = "off";
	assert_non_null(strstr(durability_risk(&f), "'full_page_writes'"));
	f = sound();
	f.synchronous_commit = "off";
	assert_non_null(strstr(durability_risk(&f), "'synchronous_commit'"));
	f.synchronous_commit = "local";
	assert_non_null(strstr(durability_risk(&f), "failover"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_without_standbys_is_no_risk),
		cmocka_unit_test(asynchronous_standbys_are_a_risk),
		cmocka_unit_test(settings_that_skip_the_disk_are_a_risk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
