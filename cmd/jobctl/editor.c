/* SPDX-License-Identifier: Apache-2.0 */
/* Runs $VISUAL or $EDITOR on a temporary file. */
#include "jobctl/editor.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define TEXT_MAX (32 * 1024 * 1024)

void editor_done(struct editor *ed)
{
	if (ed->path)
		unlink(ed->path);
	free(STEAL(ed->path));
}

void editor_keep(struct editor *ed)
{
	free(STEAL(ed->path));
}

static const char *editor_name(void)
{
	static const char *const names[] = {"VISUAL", "EDITOR"};

	for (size_t i = 0; i < ELEMENTS(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return "vi";
}

/* Creates a file with mode 0600, or empties the one of the last round. */
static int open_temp_file(struct editor *ed, struct err *e)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	if (ed->path) {
		fd = open(ed->path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	} else {
		ed->path = xprintf("%s/jobctl-edit-XXXXXX", dir && *dir == '/' ? dir : "/tmp");
		fd = mkostemp(ed->path, O_CLOEXEC);
	}
	if (fd < 0) {
		err_errno(e, errno, "cannot open '%s' for the editor", ed->path);
		free(STEAL(ed->path));
	}
	return fd;
}

static bool write_temp_file(struct editor *ed, const struct buf *text, struct err *e)
{
	AUTO_FD fd = open_temp_file(ed, e);
	int r;

	if (fd < 0)
		return false;
	r = io_write_all(fd, text->data ? text->data : "", text->len);
	return r == 0 || err_errno(e, -r, "cannot write '%s'", ed->path);
}

/*
 * $EDITOR may contain options, so a shell splits it. The path is passed as an argument and is not
 * split.
 */
static void exec_editor(const char *name, const char *path)
{
	AUTO_TEXT script = xprintf("%s \"$@\"", name);

	execl("/bin/sh", "sh", "-c", script, name, path, (char *)NULL);
	_exit(127);
}

static bool run_editor(const char *path, struct err *e)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, was_int, was_quit;
	const char *name = editor_name();
	int status = 0;
	pid_t pid;

	/* The terminal sends Ctrl-C to the editor and to jobctl. Only the editor reacts to it. */
	sigaction(SIGINT, &ignore, &was_int);
	sigaction(SIGQUIT, &ignore, &was_quit);
	pid = fork();
	if (pid == 0) {
		sigaction(SIGINT, &was_int, NULL);
		sigaction(SIGQUIT, &was_quit, NULL);
		exec_editor(name, path);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &was_int, NULL);
	sigaction(SIGQUIT, &was_quit, NULL);
	if (pid < 0)
		return err_errno(e, errno, "cannot start the editor '%s'", name);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	return err_set(e, ERR_INVALID,
		"the editor '%s' failed; nothing was changed. Set VISUAL or EDITOR to another editor",
		name);
}

bool editor_run(struct editor *ed, struct buf *text, struct err *e)
{
	int r;

	if (!write_temp_file(ed, text, e) || !run_editor(ed->path, e))
		return false;
	buf_clear(text);
	r = io_read_file(ed->path, text, TEXT_MAX);
	if (r < 0)
		return err_errno(e, -r, "cannot read '%s' back from the editor", ed->path);
	if (text->len && strlen(text->data) != text->len)
		return err_set(e, ERR_INVALID,
			"the edited text has NUL bytes; nothing was changed");
	return true;
}
