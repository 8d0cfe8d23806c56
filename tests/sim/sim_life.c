/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates thousands of random jobs over months through the real store; judge_life.py checks the journal. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/clock_trust.h"
#include "core/time/zone_cache.h"
#include "daemon/schedule/schedule_cache.h"
#include "sim/life.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/store.h"
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SUITE_SEED 5001            /* fixed, so that a new failure is caused by a change; SEED=n selects another */
#define DEFECTS 2
#define VIOLATIONS 3 /* exit status of judge_life.py */
#define DEFECT_SEED 9 /* a simulation with gates and states */
#define DRAIN_MAX (400 * USEC_DAY) /* after the end of all schedules */

extern char **environ;

/* ---- random numbers ---- */

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t life_random(struct life *l)
{
	return next_random(&l->random);
}

/* Replaces getrandom() of the C library, so that jitter is reproducible with the same seed. */
static uint64_t system_random;

ssize_t getrandom(void *out, size_t len, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < len; i++)
		((unsigned char *)out)[i] = (unsigned char)next_random(&system_random);
	return (ssize_t)len;
}

int64_t life_between(struct life *l, int64_t low, int64_t high)
{
	return low + (int64_t)(life_random(l) % (uint64_t)(high - low + 1));
}

bool life_chance(struct life *l, int percent)
{
	return life_between(l, 0, 99) < percent;
}

usec_t life_duration(struct life *l, usec_t low, usec_t high)
{
	usec_t top = low;

	/* doubles the upper bound a random number of times */
	while (top < high && life_chance(l, 85))
		top *= 2;
	return life_between(l, low, top < high ? top : high);
}

/* ---- the store ---- */

void life_apply(struct life *l, struct op **ops, size_t n)
{
	struct err e = {};

	l->batches++;
	if (!batch_apply(l->store, ops, n, &l->wake, &e)) {
		fprintf(stderr, "seed %" PRIu64 ": the store failed: %s\n", l->o.seed, e.msg);
		abort();
	}
}

bool life_apply_one(struct life *l, struct op *op)
{
	life_apply(l, &op, 1);
	return op->ok;
}

/* ---- time ---- */

static usec_t first_end(const struct life *l)
{
	usec_t first = USEC_NEVER;
	const struct worker *w;

	for (size_t i = 0; (w = map_next(&l->workers, &i));)
		if (w->ends < first && map_get(&l->active_runs, w->run))
			first = w->ends;
	return first;
}

/* The time of the next event, or USEC_NEVER. */
static usec_t next_moment(const struct life *l, usec_t accident)
{
	usec_t at = accident, alarm, end;

	if (!l->up)
		return l->up_at;
	if (l->asleep_until)
		return l->asleep_until;
	alarm = life_engine_alarm(l);
	end = first_end(l);
	at = alarm < at ? alarm : at;
	return end < at ? end : at;
}

static void wake_up(struct life *l, usec_t alarm)
{
	l->asleep_until = 0;
	life_say(l, "awake", "\"alarm\":%" PRId64, alarm == USEC_NEVER ? 0 : alarm);
	if (clock_trust_jump(l->seen, alarm, l->now) == JUMP_AHEAD)
		life_late(l, l->seen, false);
}

static void live(struct life *l)
{
	usec_t gap = l->o.span / (l->o.accidents + 1), accident = l->now + gap;
	usec_t at, alarm = USEC_NEVER;

	for (;;) {
		at = next_moment(l, accident);
		if (at == USEC_NEVER || at > l->end + DRAIN_MAX)
			break;
		if (at > l->now)
			l->now = at + life_between(l, 0, 3) * USEC_MSEC; /* timers are up to 3 ms late */
		if (!l->up)
			life_engine_open(l);
		else if (l->asleep_until)
			wake_up(l, alarm);
		while (accident <= l->now && l->up && !l->asleep_until) {
			alarm = life_engine_alarm(l);
			life_accident(l);
			accident = l->now + life_between(l, 1, 2 * gap);
		}
		if (!l->draining && l->now > l->end) {
			l->draining = true;
			accident = USEC_NEVER;
			if (l->up && !l->asleep_until)
				life_clear_limits(l);
			else
				l->draining = false; /* drains after the restart */
		}
		if (l->up && !l->asleep_until)
			life_engine_pump(l);
	}
}

/* Each simulation includes a clock change in Berlin, New York, Lord Howe or Santiago. */
static usec_t first_moment(struct life *l)
{
	static const usec_t moves[] = {
		INT64_C(1741503600), /* 2025-03-09, New York goes forward */
		INT64_C(1743296400), /* 2025-03-30, Berlin goes forward */
		INT64_C(1743865200), /* 2025-04-05, Lord Howe goes back by half an hour; Santiago at midnight, 12 hours later */
		INT64_C(1757217600), /* 2025-09-07, Santiago goes forward at midnight */
		INT64_C(1759591800), /* 2025-10-04, Lord Howe goes forward by half an hour */
		INT64_C(1761440400), /* 2025-10-26, Berlin goes back */
		INT64_C(1762063200), /* 2025-11-02, New York goes back */
	};
	usec_t move = moves[life_between(l, 0, ELEMENTS(moves) - 1)] * USEC_SEC;

	return move - life_between(l, l->o.span / 8, l->o.span * 3 / 4);
}

static void run(const struct life_options *o)
{
	struct life l = {.o = *o, .random = o->seed * 7919 + 1, .room_max = 20 + (size_t)o->jobs / 20,
		.machine = MACHINE_UNKNOWN};
	struct store_options so = {.where = o->where};
	struct err e = {};

	system_random = o->seed;
	l.now = first_moment(&l);
	l.end = l.now + o->span;
	l.journal = fopen(o->journal, "we");
	if (!l.journal || !store_open(&so, &l.store, &e)) {
		fprintf(stderr, "cannot start: %s\n", e.msg);
		exit(99);
	}
	l.machine.thousandths[MACHINE_LOAD] = 0;
	l.schedule_cache = schedule_cache_new();
	l.zones = zone_cache_new(tzfile_read);
	life_spawner_new(&l);
	life_say(&l, "sim", "\"seed\":%" PRIu64 ",\"end\":%" PRId64 ",\"room\":%zu", o->seed, l.end, l.room_max);
	life_clear_limits(&l); /* creates the queues */
	life_engine_open(&l);
	life_add_jobs(&l, o->jobs);
	live(&l);
	life_say_rows(&l);
	life_say(&l, "done", "\"batches\":%ld,\"claims\":%ld,\"spins\":%ld", l.batches, l.claims, l.spins);
	life_engine_gone(&l);
	life_spawner_new(&l);
	schedule_cache_free(l.schedule_cache);
	zone_cache_free(l.zones);
	store_free(l.store);
	for (size_t i = 0; i < l.n_jobs; i++)
		free(l.jobs[i].spec);
	free(l.jobs);
	fclose(l.journal);
}

/* ---- the test ---- */

/* The exit status of the judge: 0 for no violation, VIOLATIONS; -1: it ended in another way. */
static int judged(const char *journal)
{
	const char *source = getenv("top_srcdir");
	AUTO_TEXT judge = xprintf("%s/tests/sim/judge_life.py", source ? source : ".");
	char *argv[] = {(char *)"python3", judge, (char *)journal, NULL};
	int status = -1;
	pid_t pid;

	fflush(stdout);
	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int64_t number(const char *name, int64_t preset)
{
	const char *text = getenv(name);
	int64_t n;

	return text && text_parse_int(text, 0, INT64_C(1) << 40, &n) ? n : preset;
}

/* Uses /dev/shm if possible, because the simulation is limited by disk writes. */
static char *make_place(void)
{
	char *place = xstrdup("/dev/shm/sim-life-XXXXXX");

	if (mkdtemp(place))
		return place;
	free(place);
	place = xprintf("%s/sim-life-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(place) ? place : NULL;
}

static void remove_place(const char *place)
{
	static const char *const files[] = {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db-reserve", "jobs.db.reserve",
		"jobs.db-lock", "jobs.db.lock", "journal"};

	for (size_t i = 0; i < ELEMENTS(files); i++) {
		AUTO_TEXT path = xprintf("%s/%s", place, files[i]);

		unlink(path);
	}
	rmdir(place);
}

static int one_life(uint64_t seed, int defect, bool keep)
{
	AUTO_TEXT place = make_place();
	AUTO_TEXT store = xprintf("%s/jobs.db", place);
	AUTO_TEXT journal = xprintf("%s/journal", place);
	struct life_options o = {.seed = seed, .jobs = (int)number("JOBS", 12), .span = number("DAYS", 1) * USEC_DAY,
		.where = getenv("STORE") ? getenv("STORE") : store, .journal = journal, .defect = defect};
	int verdict;

	o.accidents = (int)number("ACCIDENTS", (int64_t)(o.span / USEC_HOUR) * 2);
	printf("# SEED=%" PRIu64 " JOBS=%d DAYS=%" PRId64 "\n", seed, o.jobs, o.span / USEC_DAY);
	run(&o);
	verdict = judged(journal);
	if (keep || getenv("KEEP"))
		printf("# files kept in %s\n", place);
	else
		remove_place(place);
	return verdict;
}

int main(void)
{
	int64_t lives = number("LIVES", getenv("SEED") ? 1 : 2), seed = number("SEED", SUITE_SEED);
	int defects = getenv("SEED") || getenv("STORE") ? 0 : DEFECTS;
	bool failed = false;

	printf("1..%" PRId64 "\n", lives + defects);
	for (int64_t i = 0; i < lives; i++) {
		bool ok = one_life((uint64_t)(seed + i), 0, false) == 0;

		printf("%sok %" PRId64 " - every_slot_of_a_random_simulation_has_the_outcome_of_its_policies_%" PRId64 "\n",
			ok ? "" : "not ", i + 1, i + 1);
		failed |= !ok;
	}
	for (int i = 1; i <= defects; i++) {
		bool found = one_life(DEFECT_SEED, i, false) == VIOLATIONS;

		printf("%sok %" PRId64 " - the_judge_finds_planted_defect_%d\n", found ? "" : "not ", lives + i, i);
		failed |= !found;
	}
	return failed;
}
