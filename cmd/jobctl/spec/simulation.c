/* SPDX-License-Identifier: Apache-2.0 */
/* Converts job objects of the API to the input of the simulation. */
#include "jobctl/spec/simulation.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/job/job.h"
#include "core/time/civil.h"
#include "core/time/schedule_set.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "jobctl/member.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/spec/preview.h"
#include <string.h>

void simulation_done(struct simulation *m)
{
	for (size_t i = 0; i < m->s.n_jobs; i++) {
		free(m->jobs[i].name);
		schedule_set_free(m->jobs[i].set);
	}
	for (size_t i = 0; i < m->s.n_limits; i++)
		free(m->limits[i].name);
	free(m->jobs);
	free(m->limits);
	free(m->s.jobs);
	free(m->s.limits);
	free(m->s.days);
	zone_cache_free(m->zones);
	free(m->next_cursor);
}

bool simulation_init(struct simulation *m, usec_t from, int64_t days, const char *tz, struct err *e)
{
	int64_t today, t = from / USEC_SEC;
	int of_day;

	m->zones = zone_cache_new(tzfile_read);
	if (!zone_cache_get(m->zones, tz, &m->zone, e))
		return false;
	today = civil_split(t + zone_offset(m->zone, t), &of_day);
	m->s.from = from;
	m->s.until = zone_instant(m->zone, (today + days) * DAY_SECONDS) * USEC_SEC;
	m->s.slots_max = SIMULATION_SLOTS_MAX;
	m->s.n_days = (size_t)days;
	m->s.days = xcalloc(m->s.n_days, sizeof(*m->s.days));
	for (int64_t i = 0; i < days; i++)
		m->s.days[i].from =
			i == 0 ? from
			       : zone_instant(m->zone, (today + i) * DAY_SECONDS) * USEC_SEC;
	return true;
}

void simulation_add_limit(struct simulation *m, const char *kind, const char *name, int64_t running)
{
	size_t n = m->s.n_limits++;

	m->s.limits = xgrow(m->s.limits, n, sizeof(*m->s.limits));
	m->limits = xgrow(m->limits, n, sizeof(*m->limits));
	m->s.limits[n] = (struct simulate_limit){.running = running};
	m->limits[n] = (struct simulation_limit_name){kind, xstrdup(name)};
}

static void use_limit(const struct simulation *m, const char *kind, const char *name,
	struct simulate_job *j)
{
	for (size_t i = 0; i < m->s.n_limits; i++)
		if (strcmp(m->limits[i].kind, kind) == 0 && text_equal(m->limits[i].name, name) &&
			j->n_limits < SIMULATE_JOB_LIMITS) {
			j->limits[j->n_limits++] = i;
			return;
		}
}

/* A pause without an end gives false: the job has no runs in the period. */
static bool set_pause(const json_t *job, struct simulate_job *j)
{
	const json_t *pause = json_object_get(job, "pause");

	if (!json_is_object(pause))
		return true;
	j->resumes_at = member_time(pause, "until");
	return j->resumes_at != 0;
}

static usec_t seconds(const json_t *o, const char *key)
{
	return (usec_t)(json_number_value(json_object_get(o, key)) * USEC_SEC);
}

static void set_durations(struct simulation *m, const json_t *job, struct simulate_job *j,
	bool *ret_learned)
{
	const json_t *d = json_object_get(job, "durations");

	*ret_learned = member_int(d, "count") > 0;
	j->usual = *ret_learned ? seconds(d, "p50") : m->assumed;
	j->slow = *ret_learned ? seconds(d, "p95") : m->assumed;
}

static bool set_schedule(struct simulation *m, const json_t *job, struct simulate_job *j,
	struct schedule_set **ret)
{
	AUTO_DONE(preview) p = {};

	if (!preview_of_job(job, &p, NULL) || !preview_open(m->zones, &p, &j->zone, ret, NULL))
		return false;
	j->set = *ret;
	/* only the daemon knows the next slot of a job that counts from the end of its last run */
	if (schedule_set_follows(*ret))
		j->first = p.due > m->s.from ? p.due : 0;
	else if (!schedule_set_next(*ret, m->s.from - 1, &j->first) || j->first >= m->s.until)
		j->first = 0;
	return true;
}

void simulation_add_job(struct simulation *m, const json_t *job)
{
	AUTO_DONE(job_spec) spec;
	AUTO(schedule_set) *set = NULL;
	struct simulate_job j = {};
	size_t n = m->s.n_jobs;
	bool learned;

	job_spec_init(&spec);
	if (!job_object_read_spec(job, &spec, NULL) || !set_schedule(m, job, &j, &set)) {
		m->unreadable++;
		return;
	}
	if (!j.first || !set_pause(job, &j)) {
		*(j.first ? &m->paused : &m->unscheduled) += 1;
		return;
	}
	policy_start_of(&spec, &j.policy);
	set_durations(m, job, &j, &learned);
	m->unlearned += !learned;
	use_limit(m, "nodes", NULL, &j);
	use_limit(m, "queue", member_text(job, "queue"), &j);
	use_limit(m, "owner", member_text(job, "owner"), &j);
	m->s.jobs = xgrow(m->s.jobs, n, sizeof(*m->s.jobs));
	m->jobs = xgrow(m->jobs, n, sizeof(*m->jobs));
	m->s.jobs[n] = j;
	m->jobs[n] = (struct simulation_job_name){.id = member_int(job, "id"),
		.name = xstrdup(member_text(job, "name")),
		.set = STEAL(set),
		.learned = learned};
	m->s.n_jobs++;
}
