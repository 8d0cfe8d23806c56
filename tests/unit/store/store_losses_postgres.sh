#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The effects of a lost connection on an operation, on PostgreSQL: tests/unit/store/test_store_faults.c.
exec "$top_builddir/tests/unit/store/test_store_postgres" faults '!*nothing_half_done'
