/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the requests to a launcher; decodes them. */
#include "exec/child/launch_request.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <string.h>
#include <unistd.h>

#define SETTINGS_MAX (1 << 20)

enum { HAS_USER = 1, HAS_PATH = 2, HAS_IN = 4, HAS_CGROUP = 8, HAS_ARTIFACT = 16, HAS_FILTER = 32 };

/*
 * Fixed part of a request. NUL-terminated texts follow: argv, envp, cwd, home, paths of the
 * profile, path, artifact path.
 */
struct head {
	unsigned has;
	uid_t uid;
	gid_t gid;
	uint32_t groups_n; /* the groups follow the head */
	size_t argc, envc, paths_n, extra_fds_n, state;
	struct child_limits limits;
	uint8_t part[SANDBOX_PART_MAX];
	uint64_t capabilities;
	int namespaces;
	mode_t umask;
	pid_t parent;
	bool cwd_optional, cgroup_clone;
};

static size_t texts_count(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

static void texts_append(struct buf *out, char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_add(out, v[i], strlen(v[i]) + 1);
}

static void text_append(struct buf *out, const char *text)
{
	if (text)
		buf_add(out, text, strlen(text) + 1);
}

static void fds_collect(const struct child_plan *p, const struct head *h, struct launch_fds *ret)
{
	*ret = (struct launch_fds){.v = {p->out}, .n = 1};
	if (h->has & HAS_IN)
		ret->v[ret->n++] = p->in;
	if (h->has & HAS_CGROUP)
		ret->v[ret->n++] = *p->cgroup;
	if (h->has & HAS_ARTIFACT)
		ret->v[ret->n++] = p->artifact;
	for (size_t i = 0; i < p->extra_fds_n; i++)
		ret->v[ret->n++] = p->extra_fds[i];
}

void launch_request_encode(const struct child_plan *p, struct buf *out, struct launch_fds *ret)
{
	const struct sandbox_prepared *f = p->sandbox;
	struct head h = {.argc = texts_count(p->argv),
		.envc = texts_count(p->envp),
		.paths_n = f->profile.read_write.n,
		.extra_fds_n = p->extra_fds_n,
		.state = p->state,
		.limits = *p->limits,
		.capabilities = f->profile.capabilities,
		.namespaces = f->namespaces,
		.umask = p->umask,
		.parent = p->parent,
		.cwd_optional = p->cwd_optional,
		.cgroup_clone = p->cgroup_clone};

	h.has = (p->user ? HAS_USER : 0U) | (p->path ? HAS_PATH : 0U) | (p->in >= 0 ? HAS_IN : 0U) |
		(p->cgroup ? HAS_CGROUP : 0U) | (p->artifact_path ? HAS_ARTIFACT : 0U) |
		(f->filter ? HAS_FILTER : 0U);
	memcpy(h.part, f->profile.part, sizeof(h.part));
	if (p->user) {
		h.uid = p->user->uid;
		h.gid = p->user->gid;
		h.groups_n = p->user->groups_n;
	}
	buf_add(out, &h, sizeof(h));
	if (p->user)
		buf_add(out, p->user->groups, h.groups_n * sizeof(gid_t));
	texts_append(out, p->argv, h.argc);
	texts_append(out, p->envp, h.envc);
	text_append(out, p->cwd);
	text_append(out, p->home);
	texts_append(out, f->profile.read_write.v, h.paths_n);
	text_append(out, p->path);
	if (h.has & HAS_ARTIFACT)
		text_append(out, p->artifact_path);
	fds_collect(p, &h, ret);
}

/* ---- decoding ---- */

/* Fills 'v' with pointers to the texts and a NULL each after argv and envp. */
static bool find_texts(char **v, const struct head *h, size_t rest, char *data, size_t len)
{
	char *end = data + len;
	size_t at = 0;

	for (size_t i = 0; i < h->argc + h->envc + rest; i++) {
		char *nul = data < end ? memchr(data, '\0', (size_t)(end - data)) : NULL;

		if (!nul)
			return false;
		if (i == h->argc || i == h->argc + h->envc)
			v[at++] = NULL;
		v[at++] = data;
		data = nul + 1;
	}
	return data == end;
}

static void fds_assign(struct child_plan *p, struct launch_request *d, const struct head *h,
	const struct launch_fds *fds)
{
	size_t at = 0;

	p->out = fds->v[at++];
	p->in = h->has & HAS_IN ? fds->v[at++] : -1;
	if (h->has & HAS_CGROUP) {
		d->cgroup = fds->v[at++];
		p->cgroup = &d->cgroup;
	}
	p->artifact = h->has & HAS_ARTIFACT ? fds->v[at++] : -1;
	p->extra_fds = &fds->v[at];
	p->extra_fds_n = h->extra_fds_n;
	p->state = h->state;
}

static void sandbox_decode(
	struct launch_request *d, const struct head *h, const struct sandbox_set *all, char **paths)
{
	struct sandbox_prepared *f = &d->sandbox;

	*f = (struct sandbox_prepared){.all = all,
		.namespaces = h->namespaces,
		.usable = true,
		.profile = {.capabilities = h->capabilities,
			.read_write = {.v = paths, .n = h->paths_n}}};
	memcpy(f->profile.part, h->part, sizeof(h->part));
	if (h->has & HAS_FILTER)
		f->filter = &all->filters[h->part[SANDBOX_CALLS]];
}

bool launch_request_decode(struct launch_request *d, char *data, size_t len,
	const struct sandbox_set *all, const struct launch_fds *fds)
{
	const struct head *h = (const struct head *)(void *)data;
	size_t skip, rest;
	char **t;

	*d = (struct launch_request){.cgroup = -1};
	if (len < sizeof(*h) || h->groups_n > USER_GROUPS_MAX ||
		h->part[SANDBOX_CALLS] >= CALLS_MAX)
		return false;
	skip = sizeof(*h) + h->groups_n * sizeof(gid_t);
	rest = 2 + h->paths_n + (h->has & HAS_PATH ? 1 : 0) + (h->has & HAS_ARTIFACT ? 1 : 0);
	if (len < skip || h->argc > len || h->envc > len || h->paths_n > SANDBOX_PATHS_MAX ||
		h->extra_fds_n > CHILD_EXTRA_FDS_MAX || h->state > h->extra_fds_n ||
		fds->n !=
			1 + h->extra_fds_n + (h->has & HAS_IN ? 1 : 0) +
				(h->has & HAS_CGROUP ? 1 : 0) + (h->has & HAS_ARTIFACT ? 1 : 0))
		return false;
	t = d->texts = xcalloc(h->argc + h->envc + rest + 2, sizeof(*t));
	if (!find_texts(t, h, rest, data + skip, len - skip))
		return false;
	d->limits = h->limits;
	d->user = (struct user){.uid = h->uid, .gid = h->gid, .groups_n = h->groups_n};
	memcpy(d->user.groups, data + sizeof(*h), h->groups_n * sizeof(gid_t));
	d->plan = (struct child_plan){.user = h->has & HAS_USER ? &d->user : NULL,
		.argv = t,
		.envp = t + h->argc + 1,
		.cgroup_clone = h->cgroup_clone,
		.umask = h->umask,
		.parent = h->parent,
		.cwd_optional = h->cwd_optional,
		.limits = &d->limits,
		.sandbox = &d->sandbox,
		.clone_parent = true};
	t += h->argc + 1 + h->envc + 1;
	d->plan.cwd = *t++;
	d->plan.home = *t++;
	sandbox_decode(d, h, all, t);
	t += h->paths_n;
	d->plan.path = h->has & HAS_PATH ? *t++ : NULL;
	d->plan.artifact_path = h->has & HAS_ARTIFACT ? *t : NULL;
	fds_assign(&d->plan, d, h, fds);
	return true;
}

void launch_request_done(struct launch_request *d)
{
	free(d->texts);
	d->texts = NULL;
}

/* ---- settings of every launcher ---- */

struct settings {
	int landlock;
	bool user_ns, ruleset, network, init, self;
	char uid_map[40], gid_map[40];
	unsigned short len[CALLS_MAX]; /* of the filters, which follow */
};

int launch_request_settings_make(const struct sandbox_set *s)
{
	struct settings head = {.landlock = s->landlock,
		.user_ns = s->user_ns,
		.ruleset = s->ruleset >= 0,
		.network = s->network >= 0,
		.init = s->init >= 0,
		.self = s->self >= 0};
	AUTO_DONE(buf) out = {};

	memcpy(head.uid_map, s->uid_map, sizeof(head.uid_map));
	memcpy(head.gid_map, s->gid_map, sizeof(head.gid_map));
	for (int i = 0; i < CALLS_MAX; i++)
		head.len[i] = s->filters[i].len;
	buf_add(&out, &head, sizeof(head));
	for (int i = 0; i < CALLS_MAX; i++)
		buf_add(&out, s->filters[i].filter,
			s->filters[i].len * sizeof(*s->filters[i].filter));
	return io_memfd_sealed("jobsched-launcher", out.data, out.len);
}

static int fd_if(bool there, int fd)
{
	return there ? fd : -1;
}

bool launch_request_settings_read(struct sandbox_set *s, int fd)
{
	AUTO_DONE(buf) in = {};
	const struct settings *head;
	const char *at;

	if (lseek(fd, 0, SEEK_SET) < 0 || io_read_all(fd, &in, SETTINGS_MAX) < 0 ||
		in.len < sizeof(*head))
		return false;
	head = (const struct settings *)(void *)in.data;
	*s = (struct sandbox_set){.landlock = head->landlock,
		.user_ns = head->user_ns,
		.offers = -1,
		.ruleset = fd_if(head->ruleset, LAUNCHER_RULESET),
		.network = fd_if(head->network, LAUNCHER_NETWORK),
		.init = fd_if(head->init, LAUNCHER_INIT),
		.self = fd_if(head->self, LAUNCHER_SELF)};
	memcpy(s->uid_map, head->uid_map, sizeof(s->uid_map));
	memcpy(s->gid_map, head->gid_map, sizeof(s->gid_map));
	at = in.data + sizeof(*head);
	for (int i = 0; i < CALLS_MAX; i++) {
		size_t size = head->len[i] * sizeof(*s->filters[i].filter);

		if (size > (size_t)(in.data + in.len - at))
			return false;
		s->filters[i] = (struct sock_fprog){
			.len = head->len[i], .filter = size ? xcalloc(1, size) : NULL};
		if (size)
			memcpy(s->filters[i].filter, at, size);
		at += size;
	}
	return true;
}
