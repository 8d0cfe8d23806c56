/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses connections during startup, with the reason. */
#include "daemon/api/startup_responder.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "wire/error_json.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define ACCEPT_BURST 64 /* connections answered before the loop continues */

struct startup_responder {
	sd_event_source *source;
	usec_t since; /* CLOCK_BOOTTIME */
	char *why;
};

/* The same message that the server sends when the store becomes unavailable later. */
static char *render_response(const struct startup_responder *a)
{
	AUTO_TEXT body = NULL;
	json_t *json;
	struct err e = {};

	err_set(&e, ERR_BUSY, "the store has been unavailable for %" PRId64 " s: %s; try again",
		(clock_boot(&clock_system) - a->since) / USEC_SEC, a->why);
	json = error_json_write(&e);
	body = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	return xprintf("HTTP/1.1 503 Service Unavailable\r\nContent-Type: "
		       "application/json\r\nContent-Length: %zu\r\n"
		       "Retry-After: 1\r\nConnection: close\r\n\r\n%s\n",
		strlen(body) + 1, body);
}

static int on_startup_accept(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	AUTO_TEXT text = render_response(arg);

	(void)source;
	(void)events;
	for (int i = 0; i < ACCEPT_BURST; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client < 0)
			break;
		/* the response fits into the socket buffer; a client that has left is ignored */
		(void)!send(client, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
		close(client);
	}
	return 0;
}

bool startup_responder_new(struct sd_event *ev, int listen_fd, struct startup_responder **ret,
	struct err *e)
{
	AUTO(startup_responder) *a = xcalloc(1, sizeof(*a));
	int r = sd_event_add_io(ev, &a->source, listen_fd, EPOLLIN, on_startup_accept, a);

	if (r < 0)
		return err_errno(e, -r, "could not watch the socket");
	a->since = clock_boot(&clock_system);
	a->why = xstrdup("");
	*ret = STEAL(a);
	return true;
}

void startup_responder_free(struct startup_responder *a)
{
	if (!a)
		return;
	sd_event_source_disable_unref(a->source);
	free(a->why);
	free(a);
}

bool startup_responder_set_reason(struct startup_responder *a, const struct err *why)
{
	if (strcmp(a->why, why->msg) == 0)
		return false;
	free(a->why);
	a->why = xstrdup(why->msg);
	return true;
}
