/* SPDX-License-Identifier: Apache-2.0 */
/* A job for measurements: appends the time of its start to a file. usage: stamp FILE */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec now;
	char text[64];
	int fd, n;

	clock_gettime(CLOCK_REALTIME, &now);
	fd = argc == 2 ? open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
	n = snprintf(text, sizeof(text), "%lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
	return fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : 1;
}
