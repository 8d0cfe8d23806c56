/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the payload of a start request; parses it with validation of every byte. */
#include "exec/proto/payload.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/trace.h"
#include "core/start/start_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

bool payload_encode(const struct start_plan *p, uint32_t version, struct buf *ret, struct err *e)
{
	struct payload_head head = {.magic = PAYLOAD_MAGIC};
	size_t order_end;

	buf_add(ret, &head, sizeof(head));
	if (!exec_spec_encode(&p->spec, ret, e))
		return false;
	order_end = ret->len;
	head.order_len = (uint32_t)(order_end - sizeof(head));
	for (size_t i = 0; i < p->vars.n; i++) {
		/* The spawner would close the connection. */
		if (!start_plan_var_valid(p->vars.v[i]))
			return err_set(e, ERR_INVALID, "the variable '%.40s' of the run is not a line of the form NAME=value", p->vars.v[i]);
		if (version < PAYLOAD_TRACE_VERSION && trace_var_valid(p->vars.v[i]))
			continue;
		buf_add(ret, p->vars.v[i], strlen(p->vars.v[i]) + 1);
		head.vars++;
	}
	memcpy(ret->data, &head, sizeof(head));
	if (p->vars.n > START_PLAN_VARS_MAX || ret->len > order_end + PAYLOAD_VARS_BYTES)
		return err_set(e, ERR_TOO_LARGE, "too many variables for one run");
	return true;
}

int payload_memfd(const struct start_plan *p, uint32_t version, struct err *e)
{
	AUTO_DONE(buf) b = {};
	int fd;

	if (!payload_encode(p, version, &b, e))
		return -1;
	fd = io_memfd_sealed("jobsched-start", b.data, b.len);
	if (fd < 0)
		err_errno(e, -fd, "could not create a memory file");
	return fd < 0 ? -1 : fd;
}

void payload_done(struct payload *p)
{
	free(p->data);
	exec_spec_done(&p->spec);
	free(p->vars);
	*p = (struct payload){};
}

static char **payload_texts_split(char **pos, const char *end, size_t n)
{
	char **v = xcalloc(n + 1, sizeof(*v));

	for (size_t i = 0; i < n; i++) {
		char *nul = memchr(*pos, '\0', (size_t)(end - *pos));

		if (!nul) {
			free(v);
			return NULL;
		}
		v[i] = *pos;
		*pos = nul + 1;
	}
	return v;
}

bool payload_parse(struct payload *ret, const void *data, size_t len, struct err *e)
{
	AUTO_DONE(payload) p = {};
	struct payload_head head;
	char *pos, *end;

	if (len < sizeof(head) || len > PAYLOAD_MAX)
		return err_set(e, ERR_INVALID, "invalid payload: %zu bytes", len);
	memcpy(&head, data, sizeof(head));
	len -= sizeof(head);
	if (head.magic != PAYLOAD_MAGIC || head.order_len > len ||
		head.vars > START_PLAN_VARS_MAX || head.reserved)
		return err_set(e, ERR_INVALID,
			"invalid payload: a value of its head is out of range");
	p.data = xcalloc(1, len + 1);
	memcpy(p.data, (const char *)data + sizeof(head), len);
	p.bytes = p.data;
	p.bytes_len = head.order_len;
	if (!exec_spec_parse(&p.spec, p.bytes, p.bytes_len, e))
		return false;
	pos = p.data + head.order_len;
	end = p.data + len;
	p.vars_n = head.vars;
	p.vars = payload_texts_split(&pos, end, p.vars_n);
	if (!p.vars || pos != end)
		return err_set(e, ERR_INVALID,
			"invalid payload: its texts do not end at its last byte");
	for (size_t i = 0; i < p.vars_n; i++)
		if (!start_plan_var_valid(p.vars[i]))
			return err_set(e, ERR_INVALID,
				"invalid payload: a variable is not valid for a run");
	*ret = p;
	p = (struct payload){};
	return true;
}

bool payload_sealed(int fd, size_t max, size_t *ret_size, struct err *e)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & wanted) != wanted)
		return err_set(e, ERR_INVALID, "the descriptor is not a sealed memory file");
	if (fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(e, ERR_INVALID, "the sealed memory file is larger than %zu bytes", max);
	*ret_size = (size_t)st.st_size;
	return true;
}

bool payload_read(struct payload *ret, int fd, struct err *e)
{
	AUTO_TEXT data = NULL;
	size_t size, got = 0;

	if (!payload_sealed(fd, PAYLOAD_MAX, &size, e))
		return false;
	data = xcalloc(1, size + 1);
	while (got < size) {
		ssize_t n = pread(fd, data + got, size - got, (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, ERR_INVALID, "could not read the payload");
		got += (size_t)n;
	}
	return payload_parse(ret, data, size, e);
}
