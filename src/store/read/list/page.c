/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the size of a page. */
#include "store/read/list/page.h"

#define CHUNK_FIRST 2 /* rows that are read first where a page is bounded in bytes */

size_t page_chunk(size_t rows, size_t bytes, size_t wanted, size_t bytes_max)
{
	size_t n = rows == 0 ? CHUNK_FIRST : 3 * rows;

	if (bytes_max > 0 && bytes >= bytes_max)
		return 0;
	if (bytes_max > 0 && bytes > 0 && n > (bytes_max - bytes) * rows / bytes + 1)
		n = (bytes_max - bytes) * rows / bytes + 1;
	return bytes_max == 0 || n > wanted - rows ? wanted - rows : n;
}
