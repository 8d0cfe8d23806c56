/* SPDX-License-Identifier: Apache-2.0 */
/* Sandbox profiles: built-in profiles, configured profiles, descriptions. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/sandbox_profile.h"
#include "core/start/sandbox_offer.h"
#include <string.h>

static struct sandbox_profiles list;

static int up(void **state)
{
	(void)state;
	sandbox_profiles_init(&list);
	return 0;
}

static int down(void **state)
{
	(void)state;
	sandbox_profiles_done(&list);
	return 0;
}

static void section(const char *name, const char *const (*pairs)[2], const char *error)
{
	struct err e = {};
	struct sandbox *s = NULL;
	bool ok = sandbox_profiles_add(&list, name, &s, &e);

	for (; ok && (*pairs)[0]; pairs++)
		ok = sandbox_profiles_set(&list, s, (*pairs)[0], (*pairs)[1], &e);
	ok = ok && sandbox_profile_check(s, &e);
	if (!error) {
		assert_string_equal(e.msg, "");
		assert_true(ok);
		return;
	}
	assert_false(ok);
	if (!strstr(e.msg, error))
		assert_string_equal(e.msg, error);
}
#define SECTION(name, error, ...) section(name, (const char *const[][2]){__VA_ARGS__, {}}, error)

static char *words_of(const char *name)
{
	struct buf b = {};

	sandbox_profile_words(sandbox_profiles_find(&list, name), &b);
	return buf_steal(&b);
}

static void the_built_in_profiles_are_valid(void **state)
{
	static const char *const names[] = {"compat", "standard", "strict"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(names); i++) {
		assert_non_null(sandbox_profiles_find(&list, names[i]));
		assert_true(sandbox_profile_check(sandbox_profiles_find(&list, names[i]), NULL));
	}
	assert_null(sandbox_profiles_find(&list, "other"));
	assert_non_null(sandbox_profiles_find(&list, SANDBOX_PRESET));
}

static void compat_has_no_restrictions(void **state)
{
	AUTO_TEXT words = words_of("compat");

	(void)state;
	assert_string_equal(words, "no restrictions: the job runs as it would under cron\n");
}

static void each_profile_describes_its_restrictions(void **state)
{
	AUTO_TEXT standard = words_of("standard");
	AUTO_TEXT strict = words_of("strict");

	(void)state;
	assert_non_null(strstr(standard, "no-new-privileges: no program gains privileges"));
	assert_non_null(strstr(standard, "sys_module"));
	assert_null(strstr(standard, "private-tmp"));
	assert_null(strstr(standard, "network"));
	assert_non_null(strstr(strict, "private-tmp: /tmp and /var/tmp are private"));
	assert_non_null(strstr(strict, "network: no network"));
	assert_non_null(strstr(strict, "capabilities: none"));
}

static void a_profile_can_be_based_on_any_earlier_profile(void **state)
{
	const struct sandbox *s;

	(void)state;
	SECTION("batch", NULL, {"base", "standard"}, {"private-tmp", "yes"}, {"capabilities", "chown, kill"});
	SECTION("batch-quiet", NULL, {"base", "batch"}, {"network", "loopback"}, {"read-write", "/srv/data %h/out"});
	s = sandbox_profiles_find(&list, "batch-quiet");
	assert_int_equal(s->part[SANDBOX_TMP], 1);
	assert_int_equal(s->part[SANDBOX_CALLS], CALLS_STANDARD);
	assert_int_equal(s->part[SANDBOX_NETWORK], NETWORK_LOOPBACK);
	assert_int_equal(s->capabilities, (1 << 0) | (1 << 5));
	assert_int_equal(s->read_write.n, 2);
	assert_string_equal(s->read_write.v[1], "%h/out");
	assert_string_equal(s->name, "batch-quiet");
	s = sandbox_profiles_find(&list, "batch");
	assert_int_equal(s->part[SANDBOX_NETWORK], NETWORK_HOST);
}

static void a_new_profile_is_strict_by_default(void **state)
{
	(void)state;
	SECTION("plain", NULL, {"network", "host"});
	assert_int_equal(sandbox_profiles_find(&list, "plain")->part[SANDBOX_PIDS], 1);
	assert_int_equal(sandbox_profiles_find(&list, "plain")->capabilities, 0);
}

static void a_built_in_profile_can_be_changed_or_disabled(void **state)
{
	(void)state;
	SECTION("standard", NULL, {"base", "standard"}, {"private-tmp", "yes"});
	SECTION("compat", NULL, {"available", "no"});
	assert_int_equal(list.n, 3);
	assert_int_equal(sandbox_profiles_find(&list, "standard")->part[SANDBOX_TMP], 1);
	assert_true(sandbox_profiles_find(&list, "compat")->unavailable);
}

static void an_invalid_profile_is_refused_with_the_reason(void **state)
{
	(void)state;
	SECTION("x", "no key 'private-temp'", {"private-temp", "yes"});
	SECTION("x", "private-tmp: 'maybe' is not one of no, yes", {"private-tmp", "maybe"});
	SECTION("x", "network: 'some' is not one of host, none, loopback", {"network", "some"});
	SECTION("x", "base: there is no sandbox profile 'y' before this one", {"base", "y"});
	SECTION("x", "'srv' is not an absolute path", {"read-write", "/a, srv"});
	SECTION("x", "without '..'", {"read-write", "/srv/../etc"});
	SECTION("x", "without '..'", {"read-write", "%h/.."});
	SECTION("x", "nor one that begins with %h", {"read-write", "%home/x"});
	SECTION("x", "'fly' is not a capability", {"capabilities", "chown fly"});
	SECTION("x", "'perhaps' is not yes or no", {"available", "perhaps"});
	SECTION("x", "need no-new-privileges = yes", {"no-new-privileges", "no"});
	SECTION("c", "need no-new-privileges = yes", {"base", "compat"}, {"capabilities", "none"});
	SECTION("../x", "not a valid name of a sandbox profile", {"private-tmp", "yes"});
	SECTION("7", "not a valid name of a sandbox profile", {"private-tmp", "yes"});
}

static void a_path_may_contain_dots_that_are_not_parents(void **state)
{
	(void)state;
	SECTION("dots", NULL, {"read-write", "/srv/..data /srv/a..b %h"});
	assert_int_equal(sandbox_profiles_find(&list, "dots")->read_write.n, 3);
}

static void too_many_paths_are_refused(void **state)
{
	AUTO_DONE(buf) paths = {};

	(void)state;
	for (int i = 0; i <= SANDBOX_PATHS_MAX; i++)
		buf_printf(&paths, "/srv/%d ", i);
	SECTION("many", "more than 32 paths", {"read-write", paths.data});
}

/* ---- the list that the spawner sends ---- */

static struct sandbox_offers *offers_of(const char *text, const char *error)
{
	struct sandbox_offers *o = NULL;
	struct err e = {};

	assert_int_equal(sandbox_offers_parse(text, strlen(text), &o, &e), !error);
	if (error && !strstr(e.msg, error))
		assert_string_equal(e.msg, error);
	return o;
}

static void the_list_of_profiles_is_parsed_unchanged(void **state)
{
	AUTO_DONE(buf) text = {};
	AUTO(sandbox_offers) *o = NULL;

	(void)state;
	for (size_t i = 0; i < list.n; i++)
		sandbox_offer_print(&list.v[i], i != 1, i == 1 ? "landlock (none)" : NULL, &text);
	o = offers_of(text.data, NULL);
	assert_int_equal(o->n, 3);
	assert_string_equal(o->v[2].name, "strict");
	assert_true(o->v[2].available);
	assert_null(o->v[2].missing);
	assert_true(o->v[2].applies.n >= 9);
	assert_false(o->v[1].available);
	assert_string_equal(o->v[1].missing, "landlock (none)");
	assert_int_equal(o->v[0].applies.n, 1);
}

static void a_malformed_list_is_refused(void **state)
{
	static const char *const bad[] = {"profile x\n", "profile x maybe\n", "profile ../x yes\n", "applies before\n",
		"profile x yes\nmissing a\nmissing b\n", "profile x yes\nother word\n", "profile x yes\n\n", "\xff\n"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_null(offers_of(bad[i], "a list of sandbox profiles"));
}

static void a_refused_job_gets_the_reason_and_the_available_profiles(void **state)
{
	AUTO(sandbox_offers) *o = offers_of("profile standard yes\nprofile tight no\nmissing x (y)\nprofile compat no\n", NULL);
	static const char *const cases[][2] = {{"other", "there is no sandbox profile 'other' here; there are: standard"},
		{"tight", "cannot be had here: x (y); choose another"}, {"compat", "is not for jobs of this site"}};

	(void)state;
	assert_true(sandbox_offers_check(NULL, "anything", NULL));
	assert_true(sandbox_offers_check(o, NULL, NULL));
	assert_true(sandbox_offers_check(o, "standard", NULL));
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct err e = {};

		assert_false(sandbox_offers_check(o, cases[i][0], &e));
		assert_non_null(strstr(e.msg, cases[i][1]));
		assert_string_equal(e.field, "sandbox");
	}
}

#define FRESH(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(the_built_in_profiles_are_valid),
		FRESH(compat_has_no_restrictions),
		FRESH(each_profile_describes_its_restrictions),
		FRESH(a_profile_can_be_based_on_any_earlier_profile),
		FRESH(a_new_profile_is_strict_by_default),
		FRESH(a_built_in_profile_can_be_changed_or_disabled),
		FRESH(an_invalid_profile_is_refused_with_the_reason),
		FRESH(a_path_may_contain_dots_that_are_not_parents),
		FRESH(too_many_paths_are_refused),
		FRESH(the_list_of_profiles_is_parsed_unchanged),
		FRESH(a_malformed_list_is_refused),
		FRESH(a_refused_job_gets_the_reason_and_the_available_profiles),
	};

	return RUN_TESTS(tests);
}
