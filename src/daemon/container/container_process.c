/* SPDX-License-Identifier: Apache-2.0 */
/* Starts commands of a crontab and follows them to their end. */
#include "daemon/container/container_process.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "daemon/container/container_log.h"
#include "daemon/container/container_metrics.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define LINE_MAX_BYTES 16384 /* a longer line is written in pieces */
#define READ_BYTES 16384
#define READS_PER_WAKE 16    /* so that one command does not keep the loop busy */

/* Standard output or standard error of a command. */
struct stream {
	struct process *process;
	const char *name;
	int fd;                  /* -1: closed */
	sd_event_source *source;
	struct buf line;         /* the beginning of a line */
};

struct process {
	struct container_processes *all;
	struct process *next;
	char *job;
	size_t line;
	int64_t run;
	pid_t pid;               /* 0: has ended */
	pid_t group;
	usec_t started;
	struct stream out, err;
};

struct container_processes {
	sd_event *ev;
	const struct container_log *log;
	struct container_metrics *metrics;
	container_idle_fn *idle;
	void *arg;
	struct process *first;
	int64_t runs;
};

struct container_processes *container_processes_new(sd_event *ev, const struct container_log *log,
	struct container_metrics *metrics, container_idle_fn *idle, void *arg)
{
	struct container_processes *l = xcalloc(1, sizeof *l);

	*l = (struct container_processes){ .ev = ev, .log = log, .metrics = metrics, .idle = idle, .arg = arg };
	return l;
}

static struct container_about about(const struct process *p, const char *stream)
{
	return (struct container_about){ .job = p->job, .line = p->line, .run = p->run, .stream = stream };
}

/* ---- output ---- */

static void stream_close(struct stream *s)
{
	sd_event_source_disable_unref(STEAL(s->source));
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	buf_done(&s->line);
	s->line = (struct buf){};
}

static void process_free(struct process *p)
{
	stream_close(&p->out);
	stream_close(&p->err);
	free(p->job);
	free(p);
}

void container_processes_free(struct container_processes *l)
{
	while (l && l->first) {
		struct process *p = l->first;

		l->first = p->next;
		process_free(p);
	}
	free(l);
}

static void put_output(struct stream *s, const char *text, size_t len)
{
	const struct container_about a = about(s->process, s->name);

	container_log_output(s->process->all->log, &a, text, len);
}

static void flush_line(struct stream *s)
{
	put_output(s, s->line.data ? s->line.data : "", s->line.len);
	buf_clear(&s->line);
}

static void take_output(struct stream *s, const char *data, size_t len)
{
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;
		size_t room = LINE_MAX_BYTES - s->line.len;

		if (n > room) {
			buf_add(&s->line, data, room);
			flush_line(s);
			data += room;
			len -= room;
			continue;
		}
		buf_add(&s->line, data, n);
		data += n + (end != NULL);
		len -= n + (end != NULL);
		if (end)
			flush_line(s);
	}
}

/* Reads what is there; false: the other end is closed. */
static bool read_stream(struct stream *s)
{
	char data[READ_BYTES];

	for (int i = 0; i < READS_PER_WAKE; i++) {
		ssize_t n = read(s->fd, data, sizeof data);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		take_output(s, data, (size_t)n);
	}
	return true;
}

static void end_stream(struct stream *s)
{
	if (s->line.len)
		flush_line(s);
	stream_close(s);
}

/* Frees a process that has ended and whose output is closed. */
static void release(struct process *p)
{
	struct container_processes *l = p->all;

	if (p->pid || p->out.fd >= 0 || p->err.fd >= 0)
		return;
	for (struct process **at = &l->first; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	process_free(p);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct stream *s = arg;

	(void)source;
	(void)fd;
	(void)events;
	if (read_stream(s))
		return 0;
	end_stream(s);
	release(s->process);
	return 0;
}

/* ---- start ---- */

/* In the child: no output but to its own standard error. */
static void __attribute__((noreturn)) run_command(const struct container_start *s, int in, int out, int err)
{
	char *const argv[] = { (char *)s->shell, (char *)"-c", (char *)s->command, NULL };
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	umask(022);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
		_exit(126);
	if (chdir(s->directory) < 0 && chdir("/") < 0)
		_exit(126);
	execve(s->shell, argv, s->env);
	dprintf(STDERR_FILENO, "cannot execute '%s': %s\n", s->shell, strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int open_input(const char *text)
{
	int fd = text ? io_memfd_sealed("stdin", text, strlen(text)) : open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && text)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static bool watch_stream(struct process *p, struct stream *s, const char *name, int *fd /* moved */, struct err *e)
{
	int r;

	*s = (struct stream){ .process = p, .name = name, .fd = STEAL_FD(*fd) };
	r = sd_event_add_io(p->all->ev, &s->source, s->fd, EPOLLIN, on_readable, s);
	return r >= 0 || err_errno(e, -r, "cannot watch the output of the command");
}

/* Both ends of a pipe; the reading end does not block. */
struct pipe_pair {
	int read, write;
};

static void pipe_pair_done(struct pipe_pair *p)
{
	if (p->read >= 0)
		close(p->read);
	if (p->write >= 0)
		close(p->write);
}

static bool pipe_open(struct pipe_pair *p, struct err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(e, errno, "cannot create a pipe");
	*p = (struct pipe_pair){ fds[0], fds[1] };
	io_set_nonblock(p->read);
	return true;
}

static void add_process(struct container_processes *l, struct process *p)
{
	p->next = l->first;
	l->first = p;
}

bool container_process_start(struct container_processes *l, const struct container_start *s, struct err *e)
{
	AUTO_DONE(pipe_pair) out = { -1, -1 };
	AUTO_DONE(pipe_pair) err = { -1, -1 };
	AUTO_FD in = open_input(s->input);
	struct container_about a;
	struct process *p;
	pid_t pid;

	if (in < 0)
		return err_set(e, ERR_INTERNAL, "cannot open the standard input of the command");
	if (!pipe_open(&out, e) || !pipe_open(&err, e))
		return false;
	pid = fork();
	if (pid == 0)
		run_command(s, in, out.write, err.write);
	if (pid < 0)
		return err_errno(e, errno, "cannot create a process");
	p = xcalloc(1, sizeof *p);
	*p = (struct process){ .all = l, .job = xstrdup(s->job), .line = s->line, .run = ++l->runs, .pid = pid, .group = pid,
		.started = clock_boot(&clock_system), .out = { .fd = -1 }, .err = { .fd = -1 } };
	add_process(l, p);
	a = about(p, NULL);
	a.pid = pid;
	container_log_message(l->log, LOG_LEVEL_INFO, &a, "started: %s", s->command);
	container_metrics_started(l->metrics, p->job, p->line, clock_now(l->log->clock));
	return watch_stream(p, &p->out, "stdout", &out.read, e) && watch_stream(p, &p->err, "stderr", &err.read, e);
}

/* ---- end ---- */

size_t container_processes_running(const struct container_processes *l, const char *job)
{
	size_t n = 0;

	for (const struct process *p = l->first; p; p = p->next)
		n += p->pid != 0 && (!job || strcmp(p->job, job) == 0);
	return n;
}

void container_processes_signal(struct container_processes *l, int number)
{
	/* the group may not exist yet: the child has not called setsid() */
	for (const struct process *p = l->first; p; p = p->next)
		if (p->pid && kill(-p->group, number) < 0)
			kill(p->pid, number);
}

static void log_end(const struct process *p, int status)
{
	usec_t took = clock_boot(&clock_system) - p->started;
	const struct container_about a = about(p, NULL);
	const struct container_log *log = p->all->log;
	char words[DURATION_TEXT_MAX];

	container_metrics_ended(p->all->metrics, p->job, status == 0, took, clock_now(log->clock));
	duration_format(took - took % USEC_MSEC, words);
	if (WIFSIGNALED(status))
		container_log_message(log, LOG_LEVEL_ERROR, &a, "ended by signal %d after %s", WTERMSIG(status), words);
	else if (WEXITSTATUS(status))
		container_log_message(log, LOG_LEVEL_ERROR, &a, "failed with exit code %d after %s", WEXITSTATUS(status), words);
	else
		container_log_message(log, LOG_LEVEL_INFO, &a, "succeeded after %s", words);
}

static void on_ended(struct container_processes *l, pid_t pid, int status)
{
	struct process *p = l->first;

	while (p && p->pid != pid)
		p = p->next;
	if (!p) {
		container_log_message(l->log, LOG_LEVEL_DEBUG, &(struct container_about){ .pid = pid },
			"collected a process that a command left behind");
		return;
	}
	/* what the command wrote comes before the line about its end */
	if (p->out.fd >= 0 && !read_stream(&p->out))
		end_stream(&p->out);
	if (p->err.fd >= 0 && !read_stream(&p->err))
		end_stream(&p->err);
	log_end(p, status);
	p->pid = 0;
	release(p);
}

void container_processes_reap(struct container_processes *l)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		on_ended(l, pid, status);
	if (container_processes_running(l, NULL) == 0)
		l->idle(l->arg);
}
