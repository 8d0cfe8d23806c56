/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups of runs, from creation to reuse or removal. */
#include "exec/worker/cgroup.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child/clone.h"
#include "exec/worker/cgroup_root.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_MAX_LEN 40
#define FILE_MAX (1 << 20)
#define FREE_MAX 64           /* empty groups of one owner that are kept for reuse */
#define CPU_PERIOD 100000     /* microseconds; period of the CPU limit */

static const struct {
	enum cgroup_controller bit;
	const char *name;
} controllers[] = {
	{CGROUP_CPU, "cpu"}, {CGROUP_MEMORY, "memory"}, {CGROUP_PIDS, "pids"}, {CGROUP_IO, "io"}};

struct owner {
	int64_t uid;
	int dir;               /* owned */
	struct cgroup free[FREE_MAX];
	size_t free_n, used;
	int64_t *stuck;        /* owned: numbers of groups that could not be removed */
	size_t stuck_n;
};

int cgroup_write(int dir, const char *file, const char *text)
{
	AUTO_FD fd = openat(dir, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int cgroup_read(int dir, const char *file, struct buf *out)
{
	AUTO_FD fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : io_read_all(fd, out, FILE_MAX);
}

/* Independent of the umask: programs read their limits there. */
static int cgroup_mkdir(int at, const char *name)
{
	mode_t mask = umask(022);
	int r = mkdirat(at, name, 0755);

	umask(mask);
	return r;
}

/* ---- the root directory ---- */

static unsigned controllers_of(int dir, const char *file)
{
	AUTO_DONE(buf) text = {};
	unsigned found = 0;
	char *rest;

	if (cgroup_read(dir, file, &text) < 0 || !text.data)
		return 0;
	for (char *word = strtok_r(text.data, " \n", &rest); word;
		word = strtok_r(NULL, " \n", &rest))
		for (size_t i = 0; i < ELEMENTS(controllers); i++)
			if (strcmp(word, controllers[i].name) == 0)
				found |= controllers[i].bit;
	return found;
}

/* One write per controller, because one that is not available would make a combined write fail. */
static void controllers_enable(int dir, unsigned which)
{
	for (size_t i = 0; i < ELEMENTS(controllers); i++) {
		char word[16];

		if (!(which & controllers[i].bit))
			continue;
		snprintf(word, sizeof(word), "+%s", controllers[i].name);
		(void)cgroup_write(dir, "cgroup.subtree_control", word);
	}
}

/*
 * A group that enables controllers for its children cannot have processes, so the spawner moves to
 * a group of its own.
 */
static void spawner_move_to_leaf(int base)
{
	AUTO_FD leaf = -1;
	int r;

	if (cgroup_mkdir(base, "spawner") < 0 && errno != EEXIST)
		return;
	leaf = openat(base, "spawner", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = leaf < 0 ? -errno : cgroup_write(leaf, "cgroup.procs", "0");
	if (r < 0)
		log_warning("could not move the spawner into a control group of its own: %s",
			strerror(-r));
}

static bool cgroups_open_root(
	struct cgroups *c, const char *base, const char *name, bool own, struct err *e)
{
	AUTO_FD dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_TEXT path = xprintf("%s/jobs-%s", base, name);
	unsigned there;

	if (dir < 0)
		return err_errno(e, errno, "could not open the control group '%s'", base);
	there = controllers_of(dir, "cgroup.controllers");
	if (own && there)
		spawner_move_to_leaf(dir);
	controllers_enable(dir, there);
	if (cgroup_mkdir(AT_FDCWD, path) < 0 && errno != EEXIST)
		return err_errno(e, errno, "could not create the control group '%s'", path);
	c->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->root < 0)
		return err_errno(e, errno, "could not open the control group '%s'", path);
	if (faccessat(c->root, "cgroup.kill", W_OK, 0) < 0)
		return err_errno(
			e, errno, "the kernel cannot kill control groups ('%s/cgroup.kill')", path);
	c->path = STEAL(path);
	return true;
}

/*
 * Some kernels count how often a group was killed. They kill a child that is created in a group
 * with another count than that of its parent. Only a test shows whether this kernel does.
 */
static bool clone_into_works(const struct cgroups *c)
{
	char name[NAME_MAX_LEN] = "try";
	bool works = false;
	AUTO_FD dir = -1;
	pid_t pid;

	if (cgroup_mkdir(c->root, name) < 0)
		return false;
	dir = openat(c->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid = dir < 0 ? -1 : clone_fork_into_cgroup(dir);
	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		siginfo_t si = {};

		while (waitid(P_PID, (id_t)pid, &si, WEXITED) < 0 && errno == EINTR)
			;
		works = si.si_code == CLD_EXITED;
	}
	unlinkat(c->root, name, AT_REMOVEDIR);
	return works;
}

bool cgroups_open(struct cgroups *c, const char *where, const char *name, struct err *e)
{
	AUTO_TEXT base = NULL;
	bool own = strcmp(where, "auto") == 0;

	*c = (struct cgroups){.root = -1, .next = 1};
	if (!cgroup_root_find(where, &base, e))
		return false;
	if (!base)
		return true;
	if (!cgroups_open_root(c, base, name, own, e)) {
		cgroups_done(c);
		if (!own)
			return false;
		log_warning("runs have no control groups: %s", e->msg);
		return true;
	}
	cgroup_root_clear(c->root, c->path);
	controllers_enable(c->root, controllers_of(c->root, "cgroup.controllers"));
	c->controllers = controllers_of(c->root, "cgroup.subtree_control");
	c->can_clone_into = clone_into_works(c);
	return true;
}

bool cgroups_resume(struct cgroups *c, int root, int64_t next, struct err *e)
{
	char link[64], path[4096];
	ssize_t n;

	*c = (struct cgroups){.root = root, .next = next};
	if (root < 0)
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", root);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return err_errno(e, errno, "could not find the control group of runs");
	c->path = xstrndup(path, (size_t)n);
	c->controllers = controllers_of(root, "cgroup.subtree_control");
	c->can_clone_into = clone_into_works(c);
	return true;
}

/* ---- owners ---- */

static char *number_name(int64_t number, char out[NAME_MAX_LEN])
{
	snprintf(out, NAME_MAX_LEN, "%" PRId64, number);
	return out;
}

static char *owner_name(int64_t uid, char out[NAME_MAX_LEN])
{
	snprintf(out, NAME_MAX_LEN, "uid-%" PRId64, uid);
	return out;
}

static int limits_set(const struct cgroups *c, int dir, const struct cgroup_limits *l)
{
	char text[64];
	int r = 0;

	if (l->memory && c->controllers & CGROUP_MEMORY) {
		snprintf(text, sizeof(text), "%" PRId64, l->memory);
		r = cgroup_write(dir, "memory.max", text);
		/* the file is missing if there is no swap */
		(void)cgroup_write(dir, "memory.swap.max", "0");
	}
	if (r == 0 && l->cpu && c->controllers & CGROUP_CPU) {
		snprintf(text, sizeof(text), "%" PRId64 " %d", l->cpu * (CPU_PERIOD / 100),
			CPU_PERIOD);
		r = cgroup_write(dir, "cpu.max", text);
	}
	if (r == 0 && l->pids && c->controllers & CGROUP_PIDS) {
		snprintf(text, sizeof(text), "%" PRId64, l->pids);
		r = cgroup_write(dir, "pids.max", text);
	}
	return r;
}

static int cgroup_owner_open(struct cgroups *c, int64_t uid, struct owner **ret)
{
	char name[NAME_MAX_LEN];
	struct owner *o = map_get(&c->owners, uid);
	AUTO_FD dir = -1;
	int r;

	if (o) {
		*ret = o;
		return 0;
	}
	if (cgroup_mkdir(c->root, owner_name(uid, name)) < 0 && errno != EEXIST)
		return -errno;
	dir = openat(c->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	controllers_enable(dir, c->controllers);
	r = limits_set(c, dir, &c->owner_limits);
	if (r < 0)
		return r;
	o = xcalloc(1, sizeof(*o));
	o->uid = uid;
	o->dir = STEAL_FD(dir);
	map_put(&c->owners, uid, o);
	*ret = o;
	return 0;
}

static void group_close(struct cgroup *g)
{
	epoll_source_close(&g->events);
	if (g->dir >= 0)
		close(g->dir);
	g->dir = -1;
}

/* A group that cannot be removed is tried again when its owner has no runs. */
static void group_remove(struct cgroups *c, struct owner *o, struct cgroup *g)
{
	char name[NAME_MAX_LEN];

	group_close(g);
	if (unlinkat(o->dir, number_name(g->number, name), AT_REMOVEDIR) == 0 || errno == ENOENT)
		return;
	if (errno != EBUSY) /* recently killed processes may still be in it */
		log_warning("could not remove the control group '%s' of uid %" PRId64 ": %s", name,
			o->uid, strerror(errno));
	o->stuck = xrealloc(o->stuck, (o->stuck_n + 1) * sizeof(*o->stuck));
	o->stuck[o->stuck_n++] = g->number;
	c->stuck_n++;
}

static void cgroup_owner_trim(struct cgroups *c, struct owner *o)
{
	char name[NAME_MAX_LEN];

	while (o->free_n)
		group_remove(c, o, &o->free[--o->free_n]);
	for (size_t i = o->stuck_n; i-- > 0;)
		if (unlinkat(o->dir, number_name(o->stuck[i], name), AT_REMOVEDIR) == 0) {
			o->stuck[i] = o->stuck[--o->stuck_n];
			c->stuck_n--;
		}
}

static void cgroup_owner_free(struct owner *o)
{
	for (size_t i = 0; i < o->free_n; i++)
		group_close(&o->free[i]);
	close(o->dir);
	free(o->stuck);
	free(o);
}

void cgroups_trim(struct cgroups *c)
{
	char name[NAME_MAX_LEN];
	struct owner *o;

	for (size_t i = 0; (o = map_next(&c->owners, &i));) {
		cgroup_owner_trim(c, o);
		if (o->used || o->stuck_n)
			continue;
		unlinkat(c->root, owner_name(o->uid, name), AT_REMOVEDIR);
		map_take(&c->owners, o->uid);
		cgroup_owner_free(o);
	}
}

void cgroups_done(struct cgroups *c)
{
	struct owner *o;

	if (c->root >= 0)
		cgroups_trim(c);
	for (size_t i = 0; (o = map_next(&c->owners, &i));)
		cgroup_owner_free(o);
	map_done(&c->owners);
	if (c->path)
		(void)rmdir(c->path); /* fails while groups are left in it */
	if (c->root >= 0)
		close(c->root);
	free(c->path);
	*c = (struct cgroups){.root = -1};
}

/* ---- the group of a run ---- */

static int group_make(struct cgroups *c, struct owner *o, struct cgroup *g)
{
	char name[NAME_MAX_LEN];

	do
		g->number = c->next++;
	while (cgroup_mkdir(o->dir, number_name(g->number, name)) < 0 && errno == EEXIST);
	g->dir = openat(o->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->dir >= 0)
		g->events.fd = openat(g->dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	return g->events.fd < 0 ? -errno : 0;
}

int cgroup_acquire(struct cgroups *c, uid_t uid, const struct cgroup_limits *l, struct cgroup *ret)
{
	struct cgroup g = {.dir = -1, .events.fd = -1, .uid = uid,
		.single_use = l->memory || l->cpu || l->pids || c->controllers & CGROUP_MEMORY};
	struct owner *o;
	int r = cgroup_owner_open(c, uid, &o);

	if (r < 0)
		return r;
	if (!g.single_use && o->free_n)
		g = o->free[--o->free_n];
	else
		r = group_make(c, o, &g);
	if (r == 0 && g.single_use)
		r = limits_set(c, g.dir, l);
	if (r == 0 && l->memory && c->controllers & CGROUP_MEMORY)
		r = cgroup_write(g.dir, "memory.oom.group", "1"); /* killed together */
	if (r < 0) {
		if (g.dir >= 0)
			group_remove(c, o, &g);
		return r;
	}
	o->used++;
	*ret = g;
	return 0;
}

int cgroup_adopt(struct cgroups *c, const struct cgroup *g)
{
	struct owner *o;
	int r = cgroup_owner_open(c, g->uid, &o);

	if (r == 0)
		o->used++;
	return r;
}

bool cgroup_populated(const struct cgroup *g)
{
	char text[256];
	ssize_t n = pread(g->events.fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return false;
	text[n] = '\0';
	return strstr(text, "populated 1");
}

void cgroup_kill(struct cgroup *g)
{
	int r = cgroup_write(g->dir, "cgroup.kill", "1");

	g->single_use = true;
	if (r < 0)
		log_warning("could not kill the processes of a control group: %s", strerror(-r));
}

void cgroup_release(struct cgroups *c, struct cgroup *g)
{
	struct owner *o = g->dir >= 0 ? map_get(&c->owners, g->uid) : NULL;

	if (!o) {
		group_close(g);
		return;
	}
	o->used--;
	if (g->single_use || o->free_n == FREE_MAX || cgroup_populated(g))
		group_remove(c, o, g);
	else
		o->free[o->free_n++] = *g;
	*g = (struct cgroup){.dir = -1, .events.fd = -1};
}

/* ---- usage ---- */

/* The value of the line "key value"; -1: none. */
static int64_t stat_value(const struct buf *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = text->data; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return strtoll(at + len + 1, NULL, 10);
	return -1;
}

/* False: the file cannot be read, or a number is missing. */
static bool cpu_read(const struct cgroup *g, int64_t *user, int64_t *system)
{
	AUTO_DONE(buf) text = {};

	if (cgroup_read(g->dir, "cpu.stat", &text) < 0)
		return false;
	*user = stat_value(&text, "user_usec");
	*system = stat_value(&text, "system_usec");
	return *user >= 0 && *system >= 0;
}

/*
 * The time since 'from', which is set to 'to'. A counter that went backwards counts as unchanged.
 */
static int64_t cpu_advance(int64_t *from, int64_t to)
{
	int64_t used = to > *from ? to - *from : 0;

	*from = to;
	return used;
}

/* Lines of "8:0 rbytes=1 wbytes=2 …", one per device. */
static int64_t stat_sum(const struct buf *text, const char *key)
{
	int64_t sum = 0;

	for (const char *at = text->data; at && (at = strstr(at, key)); at += strlen(key))
		sum += strtoll(at + strlen(key), NULL, 10);
	return sum;
}

void cgroup_usage(const struct cgroups *c, struct cgroup *g, struct cgroup_usage *ret)
{
	int64_t user, system;

	*ret = (struct cgroup_usage){
		.cpu_user = -1, .cpu_system = -1, .io_read = -1, .io_written = -1};
	/* the next run in this group starts from these counters */
	if (cpu_read(g, &user, &system)) {
		ret->cpu_user = cpu_advance(&g->cpu_user, user);
		ret->cpu_system = cpu_advance(&g->cpu_system, system);
	} else {
		g->single_use = true;
	}
	if (c->controllers & CGROUP_MEMORY) {
		AUTO_DONE(buf) peak = {};
		AUTO_DONE(buf) events = {};

		if (cgroup_read(g->dir, "memory.peak", &peak) == 0 && peak.data)
			ret->memory = strtoll(peak.data, NULL, 10);
		if (cgroup_read(g->dir, "memory.events", &events) == 0)
			ret->out_of_memory = stat_value(&events, "oom_kill") > 0;
	}
	if (c->controllers & CGROUP_IO) {
		AUTO_DONE(buf) io = {};

		if (cgroup_read(g->dir, "io.stat", &io) == 0) {
			ret->io_read = stat_sum(&io, " rbytes=");
			ret->io_written = stat_sum(&io, " wbytes=");
		}
	}
}
