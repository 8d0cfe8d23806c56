/* SPDX-License-Identifier: Apache-2.0 */
/* Policy fields of a job: overlap, retry, rate, conditions, notification. */
#pragma once
#include "base/clock.h"
#include "core/time/slots.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job_spec;

/*
 * overlap: skip|queue[:N]|replace|allow. The action for a slot that is due while an earlier run is
 * running.
 */
enum overlap_word { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_REPLACE, OVERLAP_ALLOW, OVERLAP_MAX };
struct overlap {
	enum overlap_word word;
	int64_t waiting; /* of queue: how many runs may wait, 1 or more */
};
const char *policy_overlap_name(enum overlap_word w);
bool policy_overlap_parse(const char *text, struct overlap *ret, struct err *e);

struct catchup;
void policy_catchup_of(const struct job_spec *s /* checked */, struct catchup *ret);

/* backoff: exp:BASE..CAP (full jitter) or fixed:D. */
struct backoff {
	bool fixed;
	usec_t base, cap;
};
#define BACKOFF_DEFAULT ((struct backoff){false, 10 * USEC_SEC, 10 * USEC_MIN})
bool policy_backoff_parse(const char *text, struct backoff *ret, struct err *e);
/*
 * The delay before the next attempt after 'failures' (1 or more) failed ones, at most the cap;
 * 'random' is for the jitter.
 */
usec_t policy_backoff_delay(const struct backoff *b, int64_t failures, uint64_t random);

/*
 * on_exit: 75=retry,78=dead,0|2=ok,100=pause. Default: 0 is ok, other codes fail and are retried.
 */
enum exit_action { EXIT_OK, EXIT_FAIL /* final, no retry */, EXIT_RETRY, EXIT_DEAD, EXIT_PAUSE /* failed, job paused */, EXIT_ACTION_MAX };
const char *policy_exit_action_name(enum exit_action a);
struct exit_rules {
	signed char action[256]; /* enum exit_action; -1: default */
};
bool policy_exit_rules_parse(const char *text, struct exit_rules *ret, struct err *e); /* NULL: no rules */

/* rate: N/DURATION[:BURST], for example 10/1m or 100/1h:20; the default burst is N. */
struct rate {
	int64_t n, burst; /* n 0: no limit */
	usec_t per;
};
bool policy_rate_parse(const char *text, struct rate *ret, struct err *e);
#define RATE_TEXT_MAX 96
char *policy_rate_print(const struct rate *r, char out[RATE_TEXT_MAX]); /* in the syntax of policy_rate_parse(); n must not be 0 */
/*
 * Takes a token at 'now'. The token bucket is stored as one point in time: when it will be full
 * again (0: full). False: none is left, and *ret_again_at is when the next one is available.
 */
bool policy_rate_take(const struct rate *r, usec_t now, usec_t *bucket, usec_t *ret_again_at);

/* when: load<2, cpu<20, memory<10, io<30: the load average, or pressure in percent (avg10). */
enum machine_figure { MACHINE_LOAD, MACHINE_CPU, MACHINE_MEMORY, MACHINE_IO, MACHINE_FIGURE_MAX };
const char *policy_machine_figure_name(enum machine_figure f);
struct gate {
	enum machine_figure figure;
	int64_t below; /* thousandths */
};
bool policy_condition_parse(const char *text, struct gate *ret, struct err *e);

/*
 * notify: mail:ADDR, webhook:URL, exec:COMMAND report changes of the job's health. output:ADDR mails the
 * output of each run that has some, as cron does.
 */
enum notify_channel { NOTIFY_MAIL, NOTIFY_WEBHOOK, NOTIFY_EXEC, NOTIFY_OUTPUT, NOTIFY_CHANNEL_MAX };
const char *policy_notify_channel_name(enum notify_channel c);
bool policy_notify_parse(const char *text, enum notify_channel *ret_channel, const char **ret_target /* in text */, struct err *e);

char *policy_output_command(const char *to); /* the mail command of output:TO, for /bin/sh -c; caller frees */
#define POLICY_SENDMAIL "/usr/sbin/sendmail" /* of output: as with cron */
bool policy_output_target(const char *to);   /* one address or several with commas, without shell characters */

/* A node label KEY=VALUE of letters, digits, '.', '_', '-' and '/'. */
#define NODE_LABEL_MAX 128
bool policy_node_label_check(const char *text, struct err *e);

/*
 * Checks before a start: 'when' and 'rate'; node labels. The numbers are also used in the .sql
 * files.
 */
enum gated { GATED_ASK = 1, GATED_LABELS = 2 };

/* The start policy of a run, stored with each queued run. */
struct start_policy {
	enum overlap_word overlap;
	int64_t overlap_waiting;
	int64_t permits;     /* maximum of concurrent runs of the job, 1 without overlap; 0: no limit */
	usec_t deadline;     /* latest start of a first attempt after the slot; 0: none */
	usec_t expires;      /* latest start of any attempt after the slot; 0: none */
	unsigned gated;      /* bits of enum gated */
	bool notifies;       /* the job has notify channels, or the tag of metrics: its last results are kept */
};
void policy_start_of(const struct job_spec *s /* checked */, struct start_policy *ret);

/* The handling of unsuccessful attempts. */
struct retry_policy {
	int64_t retries;     /* further attempts after the first */
	struct backoff backoff;
	struct exit_rules on_exit;
	bool rerun_lost;
	usec_t run_timeout;  /* from the first start; 0: none */
};
void policy_retry_of(const struct job_spec *s /* checked */, struct retry_policy *ret);
