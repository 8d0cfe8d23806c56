/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the size of a page. */
#pragma once
#include <stddef.h>

/*
 * How many rows of a page to read next, after 'rows' of 'wanted' with 'bytes' in all, so that the
 * page ends near 'bytes_max' (0: no bound) without one statement per row; 0: the page is full.
 */
size_t page_chunk(size_t rows, size_t bytes, size_t wanted, size_t bytes_max);
