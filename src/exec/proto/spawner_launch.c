/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a spawner for a user instance unless one runs. */
#include "exec/proto/spawner_launch.h"
#include "base/auto.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define OTHER_SPAWNER_TIMEOUT (15 * USEC_SEC)

static bool spawner_answers(const char *path, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	/* Non-blocking: the accept queue may be full. */
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "the socket path '%s' is too long", path);
	memcpy(a.sun_path, path, strlen(path));
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ||
	       err_set(e, ERR_UNREACHABLE, "another spawner holds the lock but does not listen at '%s': %s", path,
		       strerror(errno));
}

/*
 * The other spawner may still be killing processes that its predecessor left; it listens
 * afterwards.
 */
static bool other_spawner_wait(const char *runtime_dir, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/spawner.sock", runtime_dir);
	usec_t until = clock_boot(&clock_system) + OTHER_SPAWNER_TIMEOUT;

	while (!spawner_answers(path, e)) {
		if (e->kind == ERR_INVALID || clock_boot(&clock_system) >= until)
			return false;
		poll(NULL, 0, 20);
	}
	return true;
}

bool spawner_launch_begin(const char *program, const char *runtime_dir, const char *output_dir,
	pid_t *ret, struct err *e)
{
	char *const argv[] = {(char *)"jobsched-spawner", (char *)"--background", (char *)"--runtime-dir",
		(char *)runtime_dir, (char *)"--output-dir", (char *)output_dir,
		log_get_format() == LOG_FORMAT_JSON ? (char *)"--log-format" : NULL, (char *)"json", NULL};
	int r = background_start(program, argv, ret);

	return r == 0 || err_errno(e, -r, "could not start '%s'", program);
}

bool spawner_launch_end(int status, const char *program, const char *runtime_dir, bool *ret_other,
	struct err *e)
{
	enum background_result r = background_result(status);

	*ret_other = r == BACKGROUND_OTHER;
	return r != BACKGROUND_FAILED ||
	       err_set(e, ERR_INTERNAL, "'%s' did not start, see '%s/spawner.log'", program, runtime_dir);
}

bool spawner_launch(const char *program, const char *runtime_dir, const char *output_dir,
	struct err *e)
{
	int status;
	bool other;
	pid_t pid;

	if (!spawner_launch_begin(program, runtime_dir, output_dir, &pid, e))
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_errno(e, errno, "could not wait for '%s'", program);
	return spawner_launch_end(status, program, runtime_dir, &other, e) &&
		(!other || other_spawner_wait(runtime_dir, e));
}
