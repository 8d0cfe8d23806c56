/* SPDX-License-Identifier: Apache-2.0 */
/* Main function of the process that reads secret files. It runs as the owner, and the spawner limits its time. */
#include "exec/spawner/secret_reader.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "exec/worker/output/secrets.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATHS_BYTES (SECRETS_MAX * 4352)

/* 0 or an errno; EINVAL: not a regular file; EFBIG: larger than 'room'. */
static int secret_file_read(const char *path, size_t room, struct buf *out)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	return -io_read_all(fd, out, room);
}

int secret_reader_main(void)
{
	AUTO_DONE(buf) paths = {};
	size_t room = SECRETS_BYTES;

	alarm(2 * SECRETS_TIMEOUT / USEC_SEC); /* in case the spawner has exited */
	if (io_read_all(0, &paths, PATHS_BYTES) < 0 || paths.len == 0 ||
		paths.data[paths.len - 1] != '\0')
		return 1;
	for (const char *p = paths.data; p < paths.data + paths.len; p += strlen(p) + 1) {
		AUTO_DONE(buf) value = {};
		uint32_t head[2] = {(uint32_t)secret_file_read(p, room, &value), 0};

		head[1] = head[0] ? 0 : (uint32_t)value.len;
		if (io_write_all(1, head, sizeof(head)) < 0 || head[0])
			return 1;
		if (io_write_all(1, value.data, value.len) < 0)
			return 1;
		room -= value.len;
	}
	return 0;
}
