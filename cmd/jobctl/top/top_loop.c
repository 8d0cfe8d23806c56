/* SPDX-License-Identifier: Apache-2.0 */
/* Connects keys, signals and answers with the model, and draws it. */
#include "jobctl/top/top_loop.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/ref.h"
#include "jobctl/render/words.h"
#include "jobctl/top/top_keys.h"
#include "jobctl/top/top_link.h"
#include "jobctl/top/top_model.h"
#include "jobctl/top/top_screen.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#define REFRESH_EVERY (2 * USEC_SEC)      /* the daemon sends no event when a run starts */
#define REFRESH_SOONEST (USEC_SEC / 2)    /* pause between two updates that events ask for */
#define REFRESH_REST 5                    /* a list that took a second is not read for five seconds */
#define TICK_MS 1000                      /* relative times change */

/* Kinds of requests. The answer to a list names its view: TAG_LIST + view. */
enum tag { TAG_STATUS, TAG_SHOW_JOB, TAG_SHOW_RUN, TAG_WHY, TAG_POST, TAG_LIST };

struct top_loop {
	struct ctl *c;
	const struct top_loop_texts *texts;
	struct top_model model;
	struct top_link *link;
	struct top_screen *screen;
	int signals;          /* signalfd */
	bool list_asked;      /* the answer is on its way */
	bool list_again;      /* ask again after it: the request has changed */
	bool changed;         /* an event asked for an update */
	usec_t asked_at;      /* on clock_boot */
	usec_t took;          /* from the last request of a list to its answer */
	struct strv said;     /* messages of the POST requests on their way, oldest first */
	bool quit;
	int code;
};

/* ---- requests ---- */

static void ask_list(struct top_loop *t)
{
	AUTO_TEXT path = NULL;

	if (t->list_asked) {
		t->list_again = true;
		return;
	}
	path = top_model_path(&t->model);
	top_link_ask(t->link, TAG_LIST + (int)t->model.view, "GET", path);
	top_link_ask(t->link, TAG_STATUS, "GET", "/v1/status");
	t->list_asked = true;
	t->list_again = false;
	t->changed = false;
	t->asked_at = clock_boot(&clock_system);
}

static void run_command(struct top_loop *t, const struct top_command *c)
{
	switch (c->verb) {
	case TOP_QUIT:
		t->quit = true;
		break;
	case TOP_REFRESH:
		ask_list(t);
		break;
	case TOP_SHOW:
		top_link_ask(t->link, c->is_run ? TAG_SHOW_RUN : TAG_SHOW_JOB, "GET", c->path);
		break;
	case TOP_WHY:
		top_link_ask(t->link, TAG_WHY, "GET", c->path);
		break;
	case TOP_LOG:
		top_link_follow(t->link, c->id);
		break;
	case TOP_LOG_END:
		top_link_unfollow(t->link);
		break;
	case TOP_POST:
		strv_add(&t->said, c->said);
		top_link_ask(t->link, TAG_POST, "POST", c->path);
		break;
	}
}

static void run_commands(struct top_loop *t)
{
	AUTO_DONE(top_command) c = {};

	while (top_model_take(&t->model, &c)) {
		run_command(t, &c);
		top_command_done(&c);
	}
}

/* The pause after the last request: a list that is expensive for the daemon is read less often. */
static usec_t refresh_pause(const struct top_loop *t)
{
	usec_t least = t->changed ? REFRESH_SOONEST : REFRESH_EVERY, rest = REFRESH_REST * t->took;

	return rest > least ? rest : least;
}

/* Updates the list when an event asked for it, and every two seconds. */
static void refresh_when_due(struct top_loop *t)
{
	if (t->list_asked || t->model.held)
		return;
	if (t->list_again || clock_boot(&clock_system) - t->asked_at >= refresh_pause(t))
		ask_list(t);
}

/* ---- answers ---- */

static void show_answer(struct top_loop *t, const struct top_link_event *ev)
{
	AUTO_DONE(buf) text = {};
	const char *title = ev->tag == TAG_WHY	      ? "why"
			    : ev->tag == TAG_SHOW_RUN ? "run"
						      : "job";

	t->c->now = t->model.now;
	if (ev->tag == TAG_WHY)
		t->texts->why(t->c, ev->answer, &text);
	else if (ev->tag == TAG_SHOW_RUN)
		t->texts->run(t->c, ev->answer, &text);
	else if (!t->texts->job(t->c, ev->answer, &text, NULL))
		buf_str(&text, "the definition of this job cannot be read\n");
	top_model_show_text(&t->model, title, text.data ? text.data : "");
}

static void on_post_done(struct top_loop *t, const struct top_link_event *ev)
{
	AUTO_TEXT said = t->said.n ? xstrdup(t->said.v[0]) : NULL;

	if (t->said.n) {
		free(t->said.v[0]);
		memmove(t->said.v, t->said.v + 1, t->said.n * sizeof *t->said.v);
		t->said.n--;
	}
	if (ev->answer)
		top_model_say(&t->model, "%s", said ? said : "done");
	else
		top_model_say(&t->model, "%s", ev->err.msg);
	ask_list(t);
}

static void on_answer(struct top_loop *t, const struct top_link_event *ev)
{
	struct top_model *m = &t->model;
	bool lost = ev->err.kind == ERR_UNREACHABLE || ev->err.kind == ERR_UNCERTAIN;

	if (ev->tag >= TAG_LIST) {
		t->list_asked = false;
		t->took = ev->answer ? clock_boot(&clock_system) - t->asked_at : 0;
	}
	if (ev->answer)
		top_model_up(m);
	else if (lost)
		top_model_down(m, ev->err.msg);
	if (ev->tag == TAG_POST)
		on_post_done(t, ev);
	else if (!ev->answer && !lost)
		top_model_say(m, "%s", ev->err.msg);
	else if (!ev->answer)
		return;
	else if (ev->tag == TAG_STATUS)
		top_model_status(m, ev->answer);
	else if (ev->tag < TAG_LIST)
		show_answer(t, ev);
	else if (!t->list_again) /* else it answers an earlier request */
		top_model_rows(m, (enum top_view)(ev->tag - TAG_LIST), ev->answer);
}

static void on_output_end(struct top_loop *t, const struct top_link_event *ev)
{
	AUTO_DONE(buf) line = {};
	AUTO_DONE(buf) result = {};

	if (!ev->answer) {
		buf_printf(&line, "%s", ev->err.msg);
	} else {
		words_result(ev->answer, &result);
		ref_of_run(ev->answer, &line);
		buf_printf(&line, " %s%s%s", member_text(ev->answer, "state"),
			result.len ? ": " : "", result.len ? result.data : "");
	}
	top_model_say(&t->model, "%s", line.data);
}

static void on_link_event(struct top_loop *t, const struct top_link_event *ev)
{
	bool followed = t->model.mode == TOP_MODE_LOG && ev->run == t->model.log_run;

	switch (ev->kind) {
	case TOP_LINK_ANSWER:
		on_answer(t, ev);
		break;
	case TOP_LINK_CHANGED:
		t->changed = true;
		break;
	case TOP_LINK_OUTPUT:
		if (followed)
			top_model_output(&t->model, ev->data, ev->len);
		break;
	case TOP_LINK_OUTPUT_END:
		if (followed)
			on_output_end(t, ev);
		break;
	}
}

/* ---- signals ---- */

static void suspend(struct top_loop *t)
{
	top_screen_suspend(t->screen);
	raise(SIGSTOP);
	top_screen_resume(t->screen);
	top_model_resize(&t->model, t->model.lines, t->model.columns);
}

static void on_resize(struct top_loop *t)
{
	int lines, columns;

	top_screen_size(t->screen, &lines, &columns);
	top_model_resize(&t->model, lines, columns);
}

static void on_signal(struct top_loop *t)
{
	struct signalfd_siginfo info;

	while (read(t->signals, &info, sizeof info) == (ssize_t)sizeof info)
		switch (info.ssi_signo) {
		case SIGTSTP:
			suspend(t);
			on_resize(t);
			break;
		case SIGWINCH:
		case SIGCONT:
			on_resize(t);
			break;
		default:
			t->quit = true;
			t->code = 128 + (int)info.ssi_signo;
		}
}

static bool open_signals(int *ret, struct err *e)
{
	static const int waited[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTS(waited); i++)
		sigaddset(&set, waited[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret >= 0 || err_errno(e, errno, "cannot wait for signals");
}

/* ---- loop ---- */

static int wait_ms(const struct top_loop *t)
{
	usec_t left = refresh_pause(t) - (clock_boot(&clock_system) - t->asked_at);

	if (t->list_asked || t->model.held || left > TICK_MS * USEC_MSEC)
		return TICK_MS;
	return left <= 0 ? 0 : (int)(left / USEC_MSEC) + 1;
}

/* False: the terminal is gone. */
static bool wait_for_input(struct top_loop *t)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = t->signals, .events = POLLIN},
		{.fd = top_link_fd(t->link), .events = POLLIN},
	};
	struct top_link_event ev;
	int key;

	if (poll(fds, ELEMENTS(fds), wait_ms(t)) < 0 && errno != EINTR)
		return false;
	t->model.now = clock_now(&clock_system);
	if (fds[1].revents)
		on_signal(t);
	if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		return false;
	while (!t->quit && fds[0].revents && top_screen_key(t->screen, &key)) {
		top_keys_press(&t->model, key);
		run_commands(t);
	}
	while (top_link_take(t->link, &ev)) {
		on_link_event(t, &ev);
		top_link_event_done(&ev);
	}
	return true;
}

static void top_loop_done(struct top_loop *t)
{
	top_screen_free(t->screen); /* first: the threads may take two seconds to end */
	top_link_free(t->link);
	top_model_done(&t->model);
	strv_done(&t->said);
	if (t->signals >= 0)
		close(t->signals);
}

int top_loop_run(struct ctl *c, enum top_view view, const struct top_loop_texts *texts)
{
	AUTO_DONE(top_loop) t = {.c = c, .texts = texts, .signals = -1};
	struct err e = {};

	top_model_init(&t.model, view);
	t.model.now = clock_now(&clock_system);
	if (!open_signals(&t.signals, &e) || !top_link_open(c, &t.link, &e) ||
		!top_screen_open(c->colour, &t.screen, &e))
		return ctl_fail(&e);
	on_resize(&t);
	ask_list(&t);
	while (!t.quit) {
		top_screen_draw(t.screen, &t.model);
		if (!wait_for_input(&t)) {
			t.code = EXIT_FAILURE;
			break;
		}
		run_commands(&t);
		refresh_when_due(&t);
	}
	return t.code;
}
