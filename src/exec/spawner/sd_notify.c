/* SPDX-License-Identifier: Apache-2.0 */
/* Sends sd_notify datagrams to NOTIFY_SOCKET. */
#include "exec/spawner/sd_notify.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/text.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static void notify_datagram_send(const char *words, int flags)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = -1;
	size_t len;

	if (!path || (path[0] != '/' && path[0] != '@') ||
		(len = strlen(path)) >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, len);
	if (path[0] == '@')
		a.sun_path[0] = '\0'; /* an abstract socket */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, words, strlen(words), MSG_NOSIGNAL | flags, (struct sockaddr *)&a,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		log_warning("could not send '%s' to the service manager: %s", words,
			strerror(errno));
}

void sd_notify_send(const char *words)
{
	notify_datagram_send(words, 0);
}

usec_t sd_notify_watchdog_interval(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *whose = getenv("WATCHDOG_PID");
	int64_t usec, pid;

	if (!interval || !text_parse_int(interval, 1, INT64_MAX, &usec))
		return 0;
	if (whose && (!text_parse_int(whose, 1, INT32_MAX, &pid) || (pid_t)pid != getpid()))
		return 0;
	return usec;
}

void sd_notify_watchdog(void)
{
	notify_datagram_send("WATCHDOG=1", MSG_DONTWAIT);
}

void sd_notify_reloading(void)
{
	struct timespec t;
	AUTO_TEXT words = NULL;

	clock_gettime(CLOCK_MONOTONIC, &t);
	words = xprintf("RELOADING=1\nMONOTONIC_USEC=%lld",
		(long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
	sd_notify_send(words);
}
