/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the resource limits of a job to kernel settings. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/start/exec_spec.h"
#include "core/job/limits.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/workers.h"
#include <errno.h>

#define IOPRIO(class, level) ((class) << 13 | (level))
enum { IOPRIO_BEST_EFFORT = 2, IOPRIO_IDLE = 3 };

static unsigned limits_enforced(const struct workers *ws)
{
	unsigned c = cgroups_enabled(ws->groups) ? ws->groups->controllers : 0;

	/* without the memory controller, RLIMIT_AS limits each process */
	return LIMIT_MEMORY | (c & CGROUP_CPU ? LIMIT_CPU : 0U) |
		(c & CGROUP_PIDS ? LIMIT_PIDS : 0U);
}

unsigned worker_limits_refused(const struct workers *ws)
{
	return ws->limits_report ? 0 : LIMIT_ALL & ~limits_enforced(ws);
}

static void rlimit_set(struct child_limits *l, int resource, rlim_t value)
{
	size_t i = 0;

	while (i < l->n && l->v[i].resource != resource)
		i++;
	if (i == l->n)
		l->v[l->n++].resource = resource;
	l->v[i].limit = (struct rlimit){value, value};
	l->v[i].is_default = false;
}

/*
 * The hard limits of the spawner are the maximum: as root it could raise them, but a job must not.
 */
static bool limit_set_from_pair(struct child_limits *l, const char *pair, struct err *e)
{
	struct rlimit own;
	int64_t value;
	int resource;
	rlim_t wanted;

	if (!limit_resource_parse(pair, &resource, &value, e))
		return false;
	wanted = value == LIMIT_UNLIMITED ? RLIM_INFINITY : (rlim_t)value;
	if (getrlimit(resource, &own) < 0)
		return err_errno(
			e, errno, "could not read the limit '%s'", limit_resource_name(resource));
	if (wanted > own.rlim_max)
		return err_set(e, ERR_LIMIT,
			"the limit '%s' cannot be more than %llu on this machine",
			limit_resource_name(resource), (unsigned long long)own.rlim_max);
	rlimit_set(l, resource, wanted);
	return true;
}

static bool resources_set(
	const struct workers *ws, const struct exec_spec *o, struct child_limits *l, struct err *e)
{
	*l = (struct child_limits){.nice = (int)o->nice};
	rlimit_set(l, RLIMIT_CORE, 0);
	rlimit_set(l, RLIMIT_NOFILE, ws->nofile.rlim_cur);
	l->v[1].limit = ws->nofile;
	l->v[0].is_default = l->v[1].is_default = true;
	if (o->ionice)
		l->ioprio = o->ionice == LIMIT_IONICE_IDLE
			? IOPRIO(IOPRIO_IDLE, 0)
			: IOPRIO(IOPRIO_BEST_EFFORT, (int)o->ionice - 1);
	if (o->mem && !(cgroups_enabled(ws->groups) && ws->groups->controllers & CGROUP_MEMORY))
		rlimit_set(l, RLIMIT_AS, (rlim_t)o->mem);
	for (size_t i = 0; i < o->limits.n; i++)
		if (!limit_set_from_pair(l, o->limits.v[i], e))
			return false;
	return true;
}

void worker_limits_done(struct worker_limits *l)
{
	free(l->note);
	l->note = NULL;
}

bool worker_limits(const struct workers *ws, const struct exec_spec *o, struct worker_limits *ret,
	struct err *e)
{
	unsigned asked = (o->mem ? LIMIT_MEMORY : 0U) | (o->cpu ? LIMIT_CPU : 0U) |
		(o->pids ? LIMIT_PIDS : 0U);
	unsigned missing = asked & ~limits_enforced(ws);

	*ret = (struct worker_limits){.group = {.memory = o->mem, .cpu = o->cpu, .pids = o->pids}};
	if (missing && !ws->limits_report)
		return err_set(e, ERR_LIMIT,
			"%s of a run cannot be limited on this machine: there is no control group for it",
			limit_kind_words(missing));
	if (!resources_set(ws, o, &ret->child, e))
		return false;
	if (missing)
		ret->note = xprintf(
			"%s was not limited: there is no control group for it on this machine",
			limit_kind_words(missing));
	return true;
}
