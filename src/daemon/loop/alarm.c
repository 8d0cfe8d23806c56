/* SPDX-License-Identifier: Apache-2.0 */
/* Uses an absolute timerfd that the kernel cancels when the clock is set. */
#include "daemon/loop/alarm.h"
#include "base/err.h"
#include "base/text.h"
#include <errno.h>
#include <sys/timerfd.h>
#include <systemd/sd-event.h>

/* Later than any slot, and still within the 64-bit nanoseconds of the kernel. */
#define FAR_AWAY (USEC_LAST / USEC_SEC)

struct alarm {
	int fd;
	sd_event_source *source;
	alarm_fn *fn;
	void *arg;
	usec_t at;
};

/* The timer is always armed, so that a change of the clock is reported even without an instant. */
static void alarm_arm(struct alarm *a)
{
	struct itimerspec when = {};

	if (a->at == USEC_NEVER || a->at / USEC_SEC > FAR_AWAY) {
		when.it_value.tv_sec = FAR_AWAY;
	} else {
		usec_t at = a->at > 0 ? a->at : 1; /* 0 would disarm the timer */

		when.it_value.tv_sec = at / USEC_SEC;
		when.it_value.tv_nsec = at % USEC_SEC * 1000;
	}
	timerfd_settime(a->fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL);
}

static int on_alarm_timer(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct alarm *a = arg;
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));
	bool clock_set = n < 0 && errno == ECANCELED;

	(void)source;
	(void)events;
	if (n < 0 && !clock_set)
		return 0;
	if (!clock_set)
		a->at = USEC_NEVER;
	alarm_arm(a);
	a->fn(clock_set, a->arg);
	return 0;
}

bool alarm_new(struct sd_event *ev, alarm_fn *fn, void *arg, struct alarm **ret, struct err *e)
{
	AUTO(alarm) *a = xcalloc(1, sizeof(*a));
	int r;

	*a = (struct alarm){.fn = fn, .arg = arg, .at = USEC_NEVER};
	a->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->fd < 0)
		return err_errno(e, errno, "could not make a timer");
	r = sd_event_add_io(ev, &a->source, a->fd, EPOLLIN, on_alarm_timer, a);
	if (r < 0)
		return err_errno(e, -r, "could not watch the timer");
	alarm_arm(a);
	*ret = STEAL(a);
	return true;
}

void alarm_free(struct alarm *a)
{
	if (!a)
		return;
	sd_event_source_disable_unref(a->source);
	if (a->fd >= 0)
		close(a->fd);
	free(a);
}

void alarm_set(struct alarm *a, usec_t at)
{
	if (at == a->at)
		return;
	a->at = at;
	alarm_arm(a);
}
