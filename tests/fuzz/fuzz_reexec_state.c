/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the state that a spawner passes to a new program. Accepted states have an id and open descriptors. */
#include "base/err.h"
#include "base/text.h"
#include "exec/spawner/reexec_state.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The corpus names these descriptors. They must be open and inheritable, as after an exec(). */
#define FD_FIRST 100
#define FD_LAST 120

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void descriptors_open(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int to = FD_FIRST; to <= FD_LAST; to++)
		if (fcntl(to, F_GETFD) != 0 && dup2(fd, to) != to)
			abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reexec_state *s = NULL;
	const struct reexec_state_head *h;
	struct err e = {};
	char *copy = xcalloc(1, size + 1);

	if (size)
		memcpy(copy, data, size);
	descriptors_open();
	if (!reexec_state_parse(copy, size, &s, &e)) {
		if (!e.msg[0] || s)
			abort();
		return 0;
	}
	h = reexec_state_head(s);
	if (!h->id[0] || !memchr(h->id, '\0', sizeof(h->id)) || fcntl(h->listen, F_GETFD) != FD_CLOEXEC)
		abort();
	reexec_state_free(s);
	return 0;
}
