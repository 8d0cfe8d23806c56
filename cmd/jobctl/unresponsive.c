/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a delay by the process state of the daemon. */
#include "jobctl/unresponsive.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "wire/http_client.h"
#include <string.h>

#define PATIENCE_MS 3000

/*
 * The state letter of proc(5); 0: unknown. With socket activation the peer is the service manager,
 * so the name of the process is checked.
 */
static char daemon_process_state(pid_t pid)
{
	AUTO_TEXT path = xprintf("/proc/%d/stat", (int)pid);
	AUTO_DONE(buf) text = {};
	const char *after;

	if (pid <= 0 || io_read_file(path, &text, 4096) < 0 || !text.data ||
		!strstr(text.data, "(jobschedd)"))
		return 0;
	after = strrchr(text.data, ')');
	return after[1] == ' ' ? after[2] : 0;
}

static void put_daemon(const struct ctl *c, pid_t pid, char state, struct buf *out)
{
	buf_printf(out, "the daemon at '%s'", c->socket);
	if (state == 'T')
		buf_printf(out, " is stopped ('kill -CONT %d' resumes it) and", (int)pid);
	else if (state)
		buf_printf(out, " (pid %d)", (int)pid);
}

static void say_unresponsive(void *arg)
{
	const struct ctl *c = arg;
	pid_t pid = http_client_peer_pid(c->client);
	AUTO_DONE(buf) words = {};

	put_daemon(c, pid, daemon_process_state(pid), &words);
	ctl_say("%s has not answered for %d s; waiting up to %d s", words.data, PATIENCE_MS / 1000,
		API_TIMEOUT_MS / 1000);
}

void unresponsive_watch(struct ctl *c)
{
	c->daemon = http_client_peer_pid(c->client);
	http_client_on_unresponsive(c->client, PATIENCE_MS, say_unresponsive, c);
}

void unresponsive_watch_end(struct ctl *c)
{
	http_client_on_unresponsive(c->client, 0, NULL, NULL);
}

bool unresponsive_explain(const struct ctl *c, struct err *e)
{
	char state = daemon_process_state(c->daemon);
	bool uncertain = e->kind == ERR_UNCERTAIN;
	AUTO_DONE(buf) words = {};

	put_daemon(c, c->daemon, state, &words);
	return err_set(e, e->kind, "%s did not answer within %d s%s%s", words.data,
		API_TIMEOUT_MS / 1000, state == 'T' ? "" : "; see its log",
		uncertain ? "; it may still carry out the request" : "");
}
