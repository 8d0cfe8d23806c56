/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the HTTP responses that http_client.c reads. The first byte of the input is the number of bytes that arrive at a
 * time; 0 means all at once.
 */
#include "base/auto.h"
#include "base/err.h"
#include "wire/http_response.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_MAX (32 * 1024) /* fits the buffer of a socket */
#define PIECES_MAX 100        /* each message also takes up to 1 KiB of that buffer */
#define BODY_MAX (16 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct body {
	size_t len;
	uint8_t sum;
};

/* Reads every byte, so that the address sanitizer checks it. */
static bool count_bytes(const char *data, size_t len, void *arg)
{
	struct body *body = arg;

	for (size_t i = 0; i < len; i++)
		body->sum ^= (uint8_t)data[i];
	body->len += len;
	return true;
}

static void send_pieces(int fd, const uint8_t *data, size_t len, size_t piece)
{
	if (piece == 0)
		piece = len;
	if (piece < len / PIECES_MAX + 1)
		piece = len / PIECES_MAX + 1;
	for (size_t at = 0; at < len; at += piece)
		if (send(fd, data + at, len - at < piece ? len - at : piece, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return;
}

static void read_response(int fd)
{
	const struct http_response_limits limits = {.until = 0, .max = BODY_MAX};
	struct http_response response = {};
	struct err e = {};
	struct body body = {};
	bool ok;

	ok = http_response_read_head(&response, fd, 0, &e);
	if (ok && (response.status < 200 || response.status > 599 || response.length < -1))
		abort();
	if (ok) {
		http_response_header(&response, "Content-Type");
		ok = http_response_read_body(&response, fd, &limits, count_bytes, &body, &e);
		if (ok && (body.len > BODY_MAX || (response.length >= 0 && body.len != (size_t)response.length)))
			abort();
	}
	if (!ok && (e.kind == ERR_NONE || !e.msg[0]))
		abort();
	http_response_done(&response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int pair[2];

	if (len < 2 || len > INPUT_MAX)
		return 0;
	/* a SOCK_SEQPACKET socket preserves message boundaries, so each recv() returns one piece */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	send_pieces(pair[0], data + 1, len - 1, data[0]);
	close(pair[0]);
	read_response(pair[1]);
	close(pair[1]);
	return 0;
}
