/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading the payload of a start; nothing in it is believed before it was checked. */
#include "exec/payload.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/plan.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static void add_texts(struct buf *b, const struct strv *v)
{
	for (size_t i = 0; i < v->n; i++)
		buf_add(b, v->v[i], strlen(v->v[i]) + 1);
}

int payload_memfd(const struct plan *p)
{
	AUTO_DONE(buf) b = {};
	struct payload_head head = {
		.magic = PAYLOAD_MAGIC,
		.argc = (uint32_t)p->argv.n,
		.envc = (uint32_t)p->env.n,
		.has_cwd = p->cwd != NULL,
	};

	if (p->argv.n > PAYLOAD_ARGV_MAX || p->env.n > PAYLOAD_ENV_MAX)
		return -E2BIG;
	buf_add(&b, &head, sizeof(head));
	add_texts(&b, &p->argv);
	add_texts(&b, &p->env);
	if (p->cwd)
		buf_add(&b, p->cwd, strlen(p->cwd) + 1);
	if (b.len > PAYLOAD_MAX)
		return -E2BIG;
	return io_memfd_sealed("jobsched-start", b.data, b.len);
}

void payload_done(struct payload *p)
{
	free(p->data);
	free(p->argv);
	free(p->env);
	*p = (struct payload){};
}

static char **take_texts(char **pos, const char *end, size_t n)
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

static bool env_valid(const struct payload *p)
{
	for (size_t i = 0; i < p->envc; i++) {
		const char *eq = strchr(p->env[i], '=');

		if (!eq || eq == p->env[i])
			return false;
	}
	return true;
}

bool payload_parse(struct payload *ret, const void *data, size_t len, struct err *e)
{
	AUTO_DONE(payload) p = {};
	struct payload_head head;
	char *pos, *end, **cwd;

	if (len < sizeof(head) || len > PAYLOAD_MAX)
		return err_set(e, ERR_INVALID, "a payload of %zu bytes", len);
	memcpy(&head, data, sizeof(head));
	if (head.magic != PAYLOAD_MAGIC || head.argc < 1 || head.argc > PAYLOAD_ARGV_MAX ||
		head.envc > PAYLOAD_ENV_MAX || head.has_cwd > 1)
		return err_set(e, ERR_INVALID, "a payload with a head out of range");
	p.data = xcalloc(1, len - sizeof(head) + 1);
	memcpy(p.data, (const char *)data + sizeof(head), len - sizeof(head));
	pos = p.data;
	end = p.data + len - sizeof(head);
	p.argc = head.argc;
	p.envc = head.envc;
	p.argv = take_texts(&pos, end, p.argc);
	p.env = p.argv ? take_texts(&pos, end, p.envc) : NULL;
	cwd = p.env ? take_texts(&pos, end, head.has_cwd) : NULL;
	if (cwd)
		p.cwd = cwd[0];
	free(cwd);
	if (!cwd || pos != end)
		return err_set(e, ERR_INVALID, "a payload whose texts do not fill it exactly");
	if (!p.argv[0][0] || !env_valid(&p) || (p.cwd && p.cwd[0] != '/'))
		return err_set(e, ERR_INVALID, "a payload with an empty command, a variable without a name, "
					       "or a directory that is not absolute");
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
		return err_set(e, ERR_INVALID, "a descriptor that is not a sealed memory file");
	if (fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(e, ERR_INVALID, "a sealed memory file larger than %zu bytes", max);
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
			return err_set(e, ERR_INVALID, "a payload that cannot be read");
		got += (size_t)n;
	}
	return payload_parse(ret, data, size, e);
}
