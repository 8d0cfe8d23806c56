/* SPDX-License-Identifier: Apache-2.0 */
/* Artifact mounts: read-only, and of the same directory also from another mount namespace. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/child/artifact_mount.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *place_make(void)
{
	char path[] = "/tmp/tree.XXXXXX";
	AUTO_TEXT file = NULL;
	int fd;

	assert_non_null(mkdtemp(path));
	file = xprintf("%s/file", path);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	return xstrdup(path);
}

static void place_remove(const char *path)
{
	AUTO_TEXT file = xprintf("%s/file", path);

	unlink(file);
	assert_int_equal(rmdir(path), 0);
}

static void shows_the_file_and_takes_nothing(int tree)
{
	assert_int_equal(faccessat(tree, "file", R_OK, 0), 0);
	assert_true(openat(tree, "file", O_WRONLY | O_CLOEXEC) < 0 && errno == EROFS);
	assert_true(
		openat(tree, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0 && errno == EROFS);
}

static void a_directory_becomes_a_read_only_mount(void **state)
{
	AUTO_TEXT path = place_make();
	AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD tree = -1;
	AUTO_TEXT found = NULL;
	struct err e = {};

	(void)state;
	assert_true(artifact_mount_valid(dir) && artifact_mount_path(dir, &found, &e));
	assert_string_equal(found, path);
	if (geteuid() == 0) {
		if (!artifact_mount_create(dir, &tree, &e))
			fail_msg("%s", e.msg);
		shows_the_file_and_takes_nothing(tree);
	}
	place_remove(path);
}

/* A descriptor from a process in another mount namespace; the caller kills *ret_pid. */
static int descriptor_of_other_namespace(const char *path, const char *hide, pid_t *ret_pid)
{
	char link[64];
	int ready[2], fd;
	char word;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	*ret_pid = fork();
	if (*ret_pid == 0) {
		fd = -1;
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves no process behind */
		if (unshare(CLONE_NEWNS) == 0 &&
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			(!hide || mount(hide, path, NULL, MS_BIND, NULL) == 0))
			fd = open(path, O_RDONLY | O_DIRECTORY);
		if (fd >= 0 && dup2(fd, 100) == 100 && write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &word, 1) != 1)
		fail_msg("no namespace");
	close(ready[0]);
	snprintf(link, sizeof(link), "/proc/%d/fd/100", (int)*ret_pid);
	return open(link, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_directory_of_another_mount_namespace_is_mounted(void **state)
{
	AUTO_TEXT path = NULL;
	AUTO_FD tree = -1;
	AUTO_FD dir = -1;
	struct err e = {};
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	path = place_make();
	dir = descriptor_of_other_namespace(path, NULL, &pid);
	if (!artifact_mount_create(dir, &tree, &e))
		fail_msg("%s", e.msg);
	shows_the_file_and_takes_nothing(tree);
	end(pid);
	place_remove(path);
}

static void another_directory_at_the_same_path_is_refused(void **state)
{
	AUTO_TEXT path = NULL;
	AUTO_TEXT other = NULL;
	AUTO_FD dir = -1;
	struct err e = {};
	int tree = -1;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	path = place_make();
	other = place_make();
	/* in the other namespace 'other' is mounted there */
	dir = descriptor_of_other_namespace(path, other, &pid);
	assert_false(artifact_mount_create(dir, &tree, &e));
	assert_int_equal(tree, -1);
	end(pid);
	place_remove(path);
	place_remove(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_directory_becomes_a_read_only_mount),
		TEST(a_directory_of_another_mount_namespace_is_mounted),
		TEST(another_directory_at_the_same_path_is_refused),
	};

	return RUN_TESTS(tests);
}
