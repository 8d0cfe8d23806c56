/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the children of jobsched-net; executes their tasks. */
#include "net/child.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "net/artifact/artifact_download.h"
#include "net/aws/aws_credentials.h"
#include "net/net_frame.h"
#include "net/net_payload.h"
#include "net/unpack/quota.h"
#include "net/unpack/confine.h"
#include "net/unpack/unpack.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FD_REQUEST = 3, FD_FILE, FD_OTHER, FD_CONTROL, FD_END };
#define FD_HIGH 20 /* copies are made above the target numbers */

/* ---- the parent's side ---- */

static int child_spawn(pid_t *pid, const int fds[FD_END], bool network)
{
	char *const argv[] = {(char *)"jobsched-net", (char *)"--child", NULL},
		    *const none[] = {NULL};
	posix_spawn_file_actions_t files;
	char program[OWN_PROGRAM_MAX];
	posix_spawnattr_t attr;
	sigset_t empty, all;
	int r;

	sigemptyset(&empty);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	for (int i = FD_REQUEST; i < FD_END; i++)
		posix_spawn_file_actions_adddup2(&files, fds[i], i);
	posix_spawn_file_actions_addclosefrom_np(&files, FD_END);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &empty);
	posix_spawnattr_setsigdefault(&attr, &all);
	/* only downloads get the environment, which may contain a proxy and its password */
	r = posix_spawn(
		pid, io_own_program(program), &files, &attr, argv, network ? environ : none);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return r;
}

static int request_memfd(const struct child_request *o, struct err *e)
{
	AUTO_TEXT task = xprintf("%d", (int)o->task);
	AUTO_TEXT limit = xprintf("%" PRId64, o->limit);
	AUTO_TEXT timeout = xprintf("%" PRId64, o->timeout);
	const struct aws_keys *k = o->s3_url ? o->keys : NULL;
	const char *texts[] = {task, limit, timeout, o->url ? o->url : "", o->sha256 ? o->sha256 : "",
		k ? o->s3_url : "", k ? o->s3_region : "", k ? k->id : "", k ? k->secret : "", k && k->token ? k->token : ""};

	return net_payload_memfd(texts, ELEMENTS(texts), NULL, 0, e);
}

bool child_start(const struct child_request *o, pid_t *ret_pid, int *ret_control, struct err *e)
{
	int pair[2], high[FD_END] = {-1, -1, -1, -1, -1, -1, -1}, r = 0;
	AUTO_FD request = request_memfd(o, e);
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	AUTO_FD mine = -1;
	AUTO_FD theirs = -1;

	if (request < 0)
		return false;
	if (null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, errno, "could not start a process to handle the artifact");
	mine = pair[0];
	theirs = pair[1];
	const int from[FD_END] = {[FD_REQUEST] = request, [FD_FILE] = o->file >= 0 ? o->file : null,
		[FD_OTHER] = o->other >= 0 ? o->other : null, [FD_CONTROL] = theirs};
	for (int i = FD_REQUEST; r == 0 && i < FD_END; i++)
		if ((high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_HIGH)) < 0)
			r = errno;
	if (r == 0)
		r = child_spawn(ret_pid, high, o->task == CHILD_DOWNLOAD);
	for (int i = FD_REQUEST; i < FD_END; i++)
		auto_fd_close(&high[i]);
	if (r)
		return err_errno(e, r, "could not start a process to handle the artifact");
	*ret_control = STEAL_FD(mine);
	return true;
}

/* ---- the child's side ---- */

struct task {
	int64_t kind, limit, timeout;
	const char *url, *sha256;
	struct artifact_s3 s3; /* url empty: not from storage */
	struct quota quota;
};

static bool task_fetch(struct task *t, struct err *e)
{
	if (t->kind == CHILD_COPY && !confine_child(-1, e))
		return false;
	return artifact_download(&(struct artifact_source){.url = t->url,
					 .sha256 = t->sha256,
					 .limit = t->limit,
					 .timeout = t->timeout,
					 .file_socket = FD_OTHER,
					 .s3 = *t->s3.url ? &t->s3 : NULL,
					 .quota = &t->quota},
		FD_FILE, e);
}

static bool task_unpack(struct task *t, struct err *e)
{
	AUTO_TEXT name = unpack_file_name(t->url);
	int64_t bytes = 0;

	if (!confine_child(FD_OTHER, e) ||
		(t->sha256[0] && !artifact_download_verify(FD_FILE, t->sha256, e)))
		return false;
	if (lseek(FD_FILE, 0, SEEK_SET) < 0)
		return err_errno(e, errno, "could not read the artifact cache");
	if (!unpack_tree(&(struct unpack_source){.file = FD_FILE,
				 .tree = FD_OTHER,
				 .name = name,
				 .limit = t->limit,
				 .quota = &t->quota},
		    &bytes, e))
		return err_wrap(e, "the artifact '%.*s'", (int)strcspn(t->url, "?#"), t->url);
	t->quota.used = bytes;
	return syncfs(FD_OTHER) == 0 ||
		err_errno(e, errno, "could not write to the artifact cache");
}

static bool task_remove(struct task *t, struct err *e)
{
	/*
	 * opened anew, because the inherited descriptor shares its directory offset with the parent
	 */
	int own = openat(FD_OTHER, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own >= 0 ? fdopendir(own) : NULL;
	const struct dirent *entry;

	(void)t;
	while (d && (entry = readdir(d)))
		if (text_starts(entry->d_name, ".old-")) {
			int r = unpack_remove(FD_OTHER, entry->d_name);

			if (r < 0)
				err_errno(e, -r, "could not remove '%s' from the artifact cache",
					entry->d_name);
		}
	return d && e->kind == ERR_NONE;
}

static bool (*const tasks[CHILD_TASK_MAX])(struct task *t, struct err *e) = {
	[CHILD_DOWNLOAD] = task_fetch,
	[CHILD_COPY] = task_fetch,
	[CHILD_UNPACK] = task_unpack,
	[CHILD_REMOVE] = task_remove,
};

static bool task_run(struct task *t, struct net_payload *request, struct err *e)
{
	if (!net_payload_read(request, FD_REQUEST, e))
		return false;
	if (request->n != 10 ||
		!text_parse_int(request->texts[0], 0, CHILD_TASK_MAX - 1, &t->kind) ||
		!text_parse_int(request->texts[1], 0, INT64_MAX, &t->limit) ||
		!text_parse_int(request->texts[2], 0, INT64_MAX, &t->timeout))
		return err_set(e, ERR_INTERNAL, "the request to the process is out of range");
	t->url = request->texts[3];
	t->sha256 = request->texts[4];
	t->s3 = (struct artifact_s3){.url = request->texts[5], .region = request->texts[6], .key_id = request->texts[7],
		.key_secret = request->texts[8], .key_token = request->texts[9]};
	return tasks[t->kind](t, e);
}

int child_main(void)
{
	struct task t = {.quota = {.fd = FD_CONTROL}};
	struct net_payload request = {};
	struct quota_report report = {.kind = QUOTA_DONE};
	struct err e = {};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!task_run(&t, &request, &e)) {
		report = (struct quota_report){.kind = QUOTA_FAILED, .error = e.kind};
		snprintf(report.text, sizeof(report.text), "%s", e.msg);
	}
	report.bytes = t.quota.used;
	(void)!send(FD_CONTROL, &report, sizeof(report), MSG_NOSIGNAL);
	_exit(0); /* no exit handlers: the process may be confined */
}
