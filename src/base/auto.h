/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup attributes, for all local variables that own a resource. */
#pragma once
#include <stdlib.h>
#include <unistd.h>

/* AUTO(job) *j = NULL;  calls job_free(j) at the end of the scope. */
#define AUTO(type) __attribute__((cleanup(type##_auto))) struct type
#define AUTO_DEFINE(type)                                                                          \
	static inline void type##_auto(struct type **p)                                            \
	{                                                                                          \
		type##_free(*p);                                                                   \
	}                                                                                          \
	struct type

/* AUTO_DONE(buf) b = {};  calls buf_done(&b) at the end of the scope. */
#define AUTO_DONE(type) __attribute__((cleanup(type##_done))) struct type

#define AUTO_TEXT __attribute__((cleanup(auto_text_free))) char *
#define AUTO_FD __attribute__((cleanup(auto_fd_close))) int

#define STEAL(p)                                                                                   \
	({                                                                                         \
		__typeof__(p) stolen_ = (p);                                                       \
		(p) = NULL;                                                                        \
		stolen_;                                                                           \
	})
#define STEAL_FD(fd)                                                                               \
	({                                                                                         \
		int stolen_ = (fd);                                                                \
		(fd) = -1;                                                                         \
		stolen_;                                                                           \
	})

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

static inline void auto_text_free(char **p)
{
	free(*p);
}

static inline void auto_fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
