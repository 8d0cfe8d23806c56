/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'crontab -e': a temporary copy, the user's editor, and the check of the result. */
#include "base/auto.h"
#include "base/io.h"
#include "base/text.h"
#include "crontab/crontab_command.h"
#include "spool/request.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EDITOR "/usr/bin/sensible-editor"
#define EDITOR_ELSE "vi"

static const char help_text[] =
	"# Each line of this table runs a command at given times. It has six fields:\n"
	"#\n"
	"#   minute (0-59)  hour (0-23)  day of month (1-31)  month (1-12)  day of week (0-7)  command\n"
	"#\n"
	"# A '*' stands for every value. Times are those of the clock of this machine.\n"
	"# The output of the commands is sent to the owner of this table by mail.\n"
	"#\n"
	"# This example archives all home directories at 5:00 on every Monday:\n"
	"# 0 5 * * 1 tar -zcf /var/backups/home.tgz /home/\n"
	"#\n"
	"# See crontab(5) for all forms of lines.\n"
	"#\n"
	"# m h  dom mon dow   command\n";

/* A directory of its own, because editors create further files beside the one they edit. */
struct copy {
	char *dir, *path;   /* owned; NULL: not created */
	struct stat before; /* of the unchanged file */
};

static void copy_done(struct copy *c)
{
	free(c->dir);
	free(c->path);
}

static void copy_remove(const struct copy *c)
{
	DIR *d = c->dir ? opendir(c->dir) : NULL;
	const struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			unlinkat(dirfd(d), entry->d_name, 0) < 0)
			perror(entry->d_name);
	if (d)
		closedir(d);
	if (c->dir && rmdir(c->dir) < 0)
		perror(c->dir);
}

static bool copy_fail(const char *what)
{
	perror(what);
	fputs("Creation of temporary crontab file failed - aborting\n", stderr);
	return false;
}

static bool copy_create(struct copy *c, const char *text)
{
	const char *tmp = getenv("TMPDIR");
	AUTO_TEXT dir = xprintf("%s/crontab.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	AUTO_FD fd = -1;
	int r;

	if (!mkdtemp(dir))
		return copy_fail(dir);
	c->dir = STEAL(dir);
	c->path = xprintf("%s/crontab", c->dir);
	fd = open(c->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return copy_fail(c->path);
	r = io_write_all(fd, text, strlen(text));
	if (r < 0 || fstat(fd, &c->before) < 0) {
		errno = r < 0 ? -r : errno;
		return copy_fail(c->path);
	}
	return true;
}

/* The time is compared to the nanosecond, so an edit within one second is noticed. */
static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_size == b->st_size;
}

enum read_result { READ_CHANGED, READ_SAME, READ_FAILED };

static enum read_result copy_read(const struct copy *c, struct buf *out)
{
	AUTO_FD fd = open(c->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0) {
		perror("Can't open tempfile after edit");
		return READ_FAILED;
	}
	if (st.st_uid != getuid()) {
		fputs("Temporary crontab no longer owned by you.\n", stderr);
		return READ_FAILED;
	}
	if (!S_ISREG(st.st_mode)) {
		fputs("The temporary crontab must remain a regular file\n", stderr);
		return READ_FAILED;
	}
	if (same_file(&st, &c->before))
		return READ_SAME;
	r = io_read_all(fd, out, SPOOL_TABLE_MAX);
	if (r < 0) {
		errno = -r;
		perror(c->path);
	}
	return r < 0 ? READ_FAILED : READ_CHANGED;
}

/* ---- the editor ---- */

static const char *editor_command(void)
{
	static const char *const names[] = {"VISUAL", "EDITOR"};

	for (size_t i = 0; i < ELEMENTS(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return access(EDITOR, X_OK) == 0 ? EDITOR : EDITOR_ELSE;
}

static void exec_editor(const char *editor, const char *path)
{
	AUTO_TEXT line = xprintf("%s %s", editor, path);

	if (chdir("/tmp") < 0) {
		perror("chdir(/tmp)");
		_exit(EXIT_FAILURE);
	}
	execl("/bin/sh", "/bin/sh", "-c", line, (char *)NULL);
	perror(editor);
	_exit(EXIT_FAILURE);
}

static bool editor_ended_well(const struct crontab_command *c, const char *editor, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFEXITED(status))
		fprintf(stderr, "%s: \"%s\" exited with status %d\n", c->program, editor,
			WEXITSTATUS(status));
	else
		fprintf(stderr, "%s: \"%s\" killed; signal %d (%score dumped)\n", c->program, editor,
			WTERMSIG(status), WCOREDUMP(status) ? "" : "no ");
	return false;
}

/* The terminal sends its signals to the editor and to crontab. Only the editor reacts to them. */
static bool run_editor(const struct crontab_command *c, const char *path)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before[ELEMENTS(signals)];
	const char *editor = editor_command();
	int status = 0;
	pid_t pid;

	for (size_t i = 0; i < ELEMENTS(signals); i++)
		sigaction(signals[i], &ignore, &before[i]);
	pid = fork();
	if (pid == 0)
		exec_editor(editor, path);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < ELEMENTS(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	if (pid < 0) {
		perror("fork");
		return false;
	}
	return editor_ended_well(c, editor, status);
}

/* ---- the command ---- */

static bool ask_again(void)
{
	for (;;) {
		printf("Do you want to retry the same edit? (y/n) ");
		fflush(stdout);
		switch (read_answer()) {
		case 'y':
			return true;
		case 'n':
			return false;
		default:
			fputs("Enter Y or N\n", stderr);
		}
	}
}

/* The exit status. A table that was not installed is left to the user, and the status is 0 as in Debian. */
static int edit_copy(const struct crontab_command *c, const struct copy *copy)
{
	for (;;) {
		AUTO_DONE(buf) table = {};
		enum install_result result = INSTALL_FAILED;

		if (!run_editor(c, copy->path)) {
			copy_remove(copy);
			return EXIT_FAILURE;
		}
		switch (copy_read(copy, &table)) {
		case READ_FAILED:
			fputs("Error while editing crontab\n", stderr);
			copy_remove(copy);
			return EXIT_FAILURE;
		case READ_SAME:
			fputs("No modification made\n", stderr);
			copy_remove(copy);
			return EXIT_SUCCESS;
		case READ_CHANGED:
			fprintf(stderr, "%s: installing new crontab\n", c->program);
			result = install_table(c, copy->path, &table);
		}
		if (result == INSTALL_DONE) {
			copy_remove(copy);
			return EXIT_SUCCESS;
		}
		if (result == INSTALL_FAILED || !ask_again()) {
			fprintf(stderr, "%s: edits left in %s\n", c->program, copy->path);
			return EXIT_SUCCESS;
		}
	}
}

int edit_table(const struct crontab_command *c)
{
	AUTO_DONE(copy) copy = {};
	AUTO_DONE(buf) table = {};
	const char *text = help_text;

	switch (request_table(c, &table)) {
	case REQUEST_FAILED:
		return EXIT_FAILURE;
	case REQUEST_NONE:
		fprintf(stderr, "no crontab for %s - using an empty one\n", c->user);
		break;
	case REQUEST_FOUND:
		text = table_after_header(&table);
	}
	if (!copy_create(&copy, text)) {
		copy_remove(&copy);
		return EXIT_FAILURE;
	}
	return edit_copy(c, &copy);
}
