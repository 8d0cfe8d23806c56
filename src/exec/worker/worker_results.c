/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the command of a worker has written to its memory files. */
#include "exec/worker/worker_results.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/gate.h"
#include "core/job/result.h"
#include "exec/child/user.h"
#include "exec/proto/frame.h"
#include "exec/worker/output/secret_mask.h"
#include "exec/worker/worker.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_create(const struct worker *w, const struct user *user, const char *name, int *ret)
{
	AUTO_FD fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || fchmod(fd, 0600) < 0 || (w->all->change_user && fchown(fd, user->uid, user->gid) < 0))
		return -errno;
	*ret = STEAL_FD(fd);
	return 0;
}

int worker_results_offer(struct worker *w, const struct user *user)
{
	return file_create(w, user, "jobsched-results", &w->results_fd);
}

int worker_gate_offer(struct worker *w, const struct user *user)
{
	return file_create(w, user, "jobsched-gate", &w->gate_fd);
}

/* The text is the exit code that the shell around the gate exits with, too (exec_spec_build.c). */
void worker_gate_read(struct worker *w)
{
	char text[16] = {};
	int64_t code;

	if (w->gate_fd < 0 || pread(w->gate_fd, text, sizeof(text) - 1, 0) <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (!text_parse_int(text, 1, 255, &code) || code != w->exit_code || w->forced != ATTEMPT_RUNNING)
		return;
	w->forced = ATTEMPT_GATED;
	if (w->error || code == GATE_DELAY || code == GATE_SKIP)
		return;
	w->error = code == GATE_TIMED_OUT ? xstrdup("its gate did not end in time") : xprintf("its gate exited with %d", (int)code);
}

static void masked_add(const void *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
}

/* A part of a line at the end of the limit is left out. */
static void text_cut(struct buf *text, char **note)
{
	if (text->len <= RESULTS_BYTES_MAX)
		return;
	text->len = RESULTS_BYTES_MAX;
	while (text->len > 0 && text->data[text->len - 1] != '\n')
		text->len--;
	*note = xprintf("its results have more than %d bytes; the lines after these are left out", RESULTS_BYTES_MAX);
}

/* The file is a memory file that was created before the start, so reading it opens no path and does not block. */
static void file_read(struct worker *w, struct buf *ret)
{
	char *data = xcalloc(1, RESULTS_BYTES_MAX + 1);
	ssize_t n = pread(w->results_fd, data, RESULTS_BYTES_MAX + 1, 0);

	if (n > 0)
		buf_add(ret, data, (size_t)n);
	free(data);
}

static void secrets_mask_text(const struct worker *w, struct buf *text)
{
	AUTO(secret_mask) *mask = secrets_mask(&w->output_filter.secrets);
	struct buf masked = {};

	if (!mask)
		return;
	secret_mask_write(mask, text->data, text->len, masked_add, &masked);
	secret_mask_release(mask, masked_add, &masked);
	buf_done(text);
	*text = masked;
}

void worker_results_read(struct worker *w)
{
	AUTO_DONE(buf) text = {};
	AUTO_DONE(buf) lines = {};
	AUTO_DONE(strv) results = {};
	AUTO_TEXT cut = NULL;
	AUTO_TEXT note = NULL;

	if (w->results_fd < 0)
		return;
	file_read(w, &text);
	close(w->results_fd);
	w->results_fd = -1;
	if (text.len == 0)
		return;
	text_cut(&text, &cut);
	secrets_mask_text(w, &text);
	results_parse(text.data ? text.data : "", text.len, &results, &note);
	for (size_t i = 0; i < results.n; i++)
		buf_printf(&lines, "%s\n", results.v[i]);
	if (results.n > 0)
		w->results = buf_steal(&lines);
	if (!w->error && (note || cut))
		w->error = note ? STEAL(note) : STEAL(cut);
}

void worker_results_done(struct worker *w)
{
	if (w->results_fd >= 0)
		close(w->results_fd);
	if (w->gate_fd >= 0)
		close(w->gate_fd);
	w->results_fd = w->gate_fd = -1;
	free(STEAL(w->results));
}

bool worker_results_frame(struct frame *f, const struct worker *w, size_t *at)
{
	const char *text = w->results ? w->results + *at : "";
	size_t len = 0;

	for (size_t line; text[len]; len += line) {
		line = strcspn(text + len, "\n") + 1;
		if (len + line >= FRAME_RESULT_MAX)
			break;
	}
	if (len == 0)
		return false;
	f->result.run = w->run;
	f->result.fence = w->fence;
	f->result.attempt = w->attempt;
	f->result.at = (int64_t)*at;
	memset(f->result.text, 0, sizeof(f->result.text));
	memcpy(f->result.text, text, len);
	*at += len;
	return true;
}

void worker_results_add(struct worker *w, const char *text)
{
	AUTO_TEXT had = STEAL(w->results);

	w->results = xprintf("%s%s", had ? had : "", text);
}
