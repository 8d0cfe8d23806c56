/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the size of a page. */
#pragma once
#include <stddef.h>

#define PAGE_BYTES (4 * 1024 * 1024) /* a page of revisions or templates ends with the one that reaches this size */

/*
 * How many rows to read next, after 'rows' of 'wanted' rows with 'bytes' in all, so that the page
 * ends near 'bytes_max' (0: no limit) without one statement per row; 0: the page is full.
 */
size_t page_chunk(size_t rows, size_t bytes, size_t wanted, size_t bytes_max);
