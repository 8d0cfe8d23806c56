#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The effects of a lost connection on an operation, on SQLite: tests/unit/store/test_store_faults.c.
exec sh "$(dirname "$0")/../../cmocka.sh" "$top_builddir/tests/unit/store/test_store_sqlite" faults '!*nothing_half_done'
