#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a failing call leaves of an operation, on PostgreSQL: tests/unit/store/test_store_faults.c.
exec "$top_builddir/tests/unit/store/test_store_postgres" faults
