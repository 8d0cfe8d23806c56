/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl progress': passes a sign from inside a job to the spawner. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/sign.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/verbs/verbs.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The first word is the percentage if it is a number, with or without '%'. */
static bool progress_line(char *const *words, size_t n, struct buf *out, struct err *e)
{
	size_t digits = n > 0 ? strspn(words[0], "0123456789") : 0;
	struct sign s;

	if (n == 0) {
		buf_str(out, "WATCHDOG=1\n");
		return true;
	}
	buf_str(out, "jobsched:progress=");
	if (digits == 0 || words[0][digits + strspn(words[0] + digits, "%")])
		buf_char(out, ' '); /* text only */
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s", i ? " " : "", words[i]);
	for (char *c = out->data; *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (!sign_parse(out->data, out->len, &s))
		return err_set(e, ERR_INVALID, "'%.40s' is not a percentage from 0 to 100", words[0]);
	buf_char(out, '\n');
	return true;
}

static bool send_to_socket(const char *path, const struct buf *line, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path) || path[0] != '/')
		return err_set(e, ERR_UNREACHABLE, "cannot use the notify socket '%s'", path);
	memcpy(a.sun_path, path, strlen(path));
	if (sendto(fd, line->data, line->len, MSG_NOSIGNAL, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_set(e, ERR_UNREACHABLE, "cannot send to the notify socket '%s': %s", path, strerror(errno));
	return true;
}

static bool write_to_descriptor(const char *text, const struct buf *line, struct err *e)
{
	int64_t fd;
	size_t len = line->len < SIGN_LINE_MAX ? line->len : SIGN_LINE_MAX;

	if (!text_parse_int(text, 3, INT32_MAX, &fd))
		return err_set(e, ERR_INVALID, "$JOBSCHED_NOTIFY_FD is '%.40s', which is not a descriptor", text);
	/* a write of this size to a pipe is not divided */
	if (write((int)fd, line->data, len) == (ssize_t)len && (len == line->len || write((int)fd, "\n", 1) == 1))
		return true;
	return err_set(e, ERR_UNREACHABLE,
		"cannot write to descriptor %lld ($JOBSCHED_NOTIFY_FD): %s; a program between the job and jobctl has closed it",
		(long long)fd, strerror(errno));
}

int verb_progress(struct ctl *c, const struct args *a)
{
	const char *socket_path = getenv("NOTIFY_SOCKET"), *fd = getenv("JOBSCHED_NOTIFY_FD");
	AUTO_DONE(buf) line = {};
	struct err e = {};
	char *const *words;
	size_t n = args_operands(a, &words);

	(void)c;
	if (!progress_line(words, n, &line, &e))
		return ctl_fail(&e);
	if (!getenv("JOBSCHED_RUN") || (!socket_path && !fd)) {
		err_set(&e, ERR_INVALID, "this is not the command of a job with --heartbeat; only such a command can report progress");
		return ctl_fail(&e);
	}
	if (socket_path ? !send_to_socket(socket_path, &line, &e) : !write_to_descriptor(fd, &line, &e))
		return ctl_fail(&e);
	return EXIT_SUCCESS;
}
