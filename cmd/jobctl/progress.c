/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the progress line from a thread, because the operation blocks. */
#include "jobctl/progress.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "jobctl/render/words.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_AFTER USEC_SEC
#define EVERY (USEC_SEC / 2)

struct progress {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool over;
	int64_t done, total;
	char *what;      /* owned */
	usec_t started;  /* on clock_boot */
	bool shown;      /* used by the thread, and after its end */
};

void progress_text(const char *what, usec_t elapsed, int64_t done, int64_t total, struct buf *out)
{
	char words[WORDS_MAX];

	buf_printf(out, "%s: ", what);
	if (done > 0 || total > 0)
		buf_str(out, words_size(done, words));
	if (total > 0)
		buf_printf(out, " of %s, %d %%", words_size(total, words),
			(int)((double)(done < total ? done : total) * 100 / (double)total));
	if (done > 0 || total > 0)
		buf_str(out, ", ");
	buf_str(out, words_duration(elapsed / USEC_SEC * USEC_SEC, words));
}

/* The cursor stays at the beginning of the line, so that a message of another process overwrites it. */
static void write_line(struct progress *p)
{
	AUTO_DONE(buf) line = {};

	progress_text(p->what, clock_boot(&clock_system) - p->started, p->done, p->total, &line);
	buf_str(&line, "\033[K\r");
	(void)io_write_all(STDERR_FILENO, line.data, line.len);
	p->shown = true;
}

static struct timespec after(usec_t d)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += d / USEC_SEC;
	t.tv_nsec += d % USEC_SEC * 1000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static void *progress_thread(void *arg)
{
	struct progress *p = arg;
	struct timespec until = after(FIRST_AFTER);

	pthread_mutex_lock(&p->mutex);
	while (!p->over) {
		if (pthread_cond_timedwait(&p->wake, &p->mutex, &until) != ETIMEDOUT)
			continue;
		write_line(p);
		until = after(EVERY);
	}
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

static void progress_destroy(struct progress *p)
{
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->mutex);
	free(p->what);
	free(p);
}

struct progress *progress_new(const char *what)
{
	struct progress *p;
	pthread_condattr_t attr;

	if (!isatty(STDERR_FILENO))
		return NULL;
	p = xcalloc(1, sizeof *p);
	p->what = xstrdup(what);
	p->started = clock_boot(&clock_system);
	pthread_mutex_init(&p->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&p->thread, NULL, progress_thread, p) == 0)
		return p;
	progress_destroy(p); /* the operation does not need the line */
	return NULL;
}

void progress_set(struct progress *p, int64_t done, int64_t total)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->mutex);
	p->done = done;
	p->total = total;
	pthread_mutex_unlock(&p->mutex);
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->mutex);
	p->over = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->mutex);
	pthread_join(p->thread, NULL);
	if (p->shown)
		(void)io_write_all(STDERR_FILENO, "\033[K", strlen("\033[K"));
	progress_destroy(p);
}
