/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers it wants, and a few words of ours. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#if __has_include(<cmocka.h>)
#include <cmocka.h>
#else
#error "the unit tests need cmocka: install libcmocka-dev, or type ./runtests"
#endif

#define TEST(name) cmocka_unit_test(name)
#define RUN_TESTS(tests) cmocka_run_group_tests(tests, NULL, NULL)
