/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts the statements of a SQLite connection when a time limit is over. */
#include "store/backend/sqlite_time_limit.h"
#include "base/text.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>

struct sqlite_time_limit {
	sqlite3 *h; /* borrowed */
	struct timespec until;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool started, ended, over; /* ended, over: under the mutex */
};

static void *wait_until_over(void *arg)
{
	struct sqlite_time_limit *l = arg;

	pthread_mutex_lock(&l->mutex);
	while (!l->ended && !l->over)
		l->over = pthread_cond_timedwait(&l->changed, &l->mutex, &l->until) == ETIMEDOUT && !l->ended;
	if (l->over)
		sqlite3_interrupt(l->h);
	pthread_mutex_unlock(&l->mutex);
	return NULL;
}

/* Signals belong to the loop thread. */
static bool thread_start(struct sqlite_time_limit *l)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&l->thread, NULL, wait_until_over, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r == 0;
}

struct sqlite_time_limit *sqlite_time_limit_start(sqlite3 *h, usec_t limit)
{
	struct sqlite_time_limit *l = xcalloc(1, sizeof(*l));
	pthread_condattr_t attributes;
	int64_t at;

	l->h = h;
	clock_gettime(CLOCK_MONOTONIC, &l->until);
	at = l->until.tv_sec * USEC_SEC + l->until.tv_nsec / 1000 + limit;
	l->until = (struct timespec){.tv_sec = at / USEC_SEC, .tv_nsec = at % USEC_SEC * 1000};
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&l->mutex, NULL);
	l->started = thread_start(l);
	return l;
}

bool sqlite_time_limit_end(struct sqlite_time_limit *l)
{
	bool over;

	pthread_mutex_lock(&l->mutex);
	l->ended = true;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->mutex);
	if (l->started)
		pthread_join(l->thread, NULL);
	over = l->over;
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->mutex);
	free(l);
	return over;
}
