/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that does not answer, by what the kernel says of its process. */
#include "jobctl/unresponsive.h"

#include "jobctl/api.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "jobctl/ctl.h"
#include "wire/http_client.h"
#include <string.h>

#define PATIENCE_MS 3000

/* The state letter of proc(5). Where a service manager listens for the daemon, the process is that one. */
static char state_of(pid_t pid)
{
	AUTO_TEXT path = xprintf("/proc/%d/stat", (int)pid);
	AUTO_DONE(buf) text = {};
	const char *after;

	if (pid <= 0 || io_read_file(path, &text, 4096) < 0 || !text.data || !strstr(text.data, "(jobschedd)"))
		return 0;
	after = strrchr(text.data, ')');
	return after[1] == ' ' ? after[2] : 0;
}

static void who(const struct ctl *c, pid_t pid, char state, struct buf *out)
{
	buf_printf(out, "the daemon at '%s'", c->socket);
	if (state == 'T')
		buf_printf(out, " is stopped ('kill -CONT %d' lets it go on) and", (int)pid);
	else if (state)
		buf_printf(out, " (pid %d)", (int)pid);
}

static void say_silence(void *arg)
{
	const struct ctl *c = arg;
	pid_t pid = client_peer(c->client);
	AUTO_DONE(buf) words = {};

	who(c, pid, state_of(pid), &words);
	ctl_say("%s has not answered for %d s; waiting up to %d s", words.data, PATIENCE_MS / 1000, API_TIMEOUT_MS / 1000);
}

void silence_watch(struct ctl *c)
{
	c->daemon = client_peer(c->client);
	client_on_silence(c->client, PATIENCE_MS, say_silence, c);
}

void silence_forget(struct ctl *c)
{
	client_on_silence(c->client, 0, NULL, NULL);
}

bool silence_explain(const struct ctl *c, struct err *e)
{
	char state = state_of(c->daemon);
	bool uncertain = e->kind == ERR_UNCERTAIN;
	AUTO_DONE(buf) words = {};

	who(c, c->daemon, state, &words);
	return err_set(e, e->kind, "%s did not answer within %d s%s%s", words.data, API_TIMEOUT_MS / 1000,
		state == 'T' ? "" : "; its log says more",
		uncertain ? "; it may still do what was asked" : "");
}
