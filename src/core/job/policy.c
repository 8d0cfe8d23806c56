/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the policy fields of a job definition. */
#include "core/job/policy.h"
#include "base/auto.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/time/slots.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const overlap_names[OVERLAP_MAX] = {
	[OVERLAP_SKIP] = "skip",
	[OVERLAP_QUEUE] = "queue",
	[OVERLAP_REPLACE] = "replace",
	[OVERLAP_ALLOW] = "allow",
};
static const char *const action_names[EXIT_ACTION_MAX] = {
	[EXIT_OK] = "ok",
	[EXIT_FAIL] = "fail",
	[EXIT_RETRY] = "retry",
	[EXIT_DEAD] = "dead",
	[EXIT_PAUSE] = "pause",
};
static const char *const figure_names[MACHINE_FIGURE_MAX] = {
	[MACHINE_LOAD] = "load",
	[MACHINE_CPU] = "cpu",
	[MACHINE_MEMORY] = "memory",
	[MACHINE_IO] = "io",
};
static const char *const channel_names[NOTIFY_CHANNEL_MAX] = {
	[NOTIFY_MAIL] = "mail",
	[NOTIFY_WEBHOOK] = "webhook",
	[NOTIFY_EXEC] = "exec",
	[NOTIFY_OUTPUT] = "output",
};

/* The index of the name that equals the first 'len' bytes of 'text'; -1: none. */
static int word_of(const char *const *names, int n, const char *text, size_t len)
{
	for (int i = 0; i < n; i++)
		if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0)
			return i;
	return -1;
}

/* WORD or WORD:N; without a number *ret_n is unchanged. */
static int word_with_number(const char *const *names, int n, const char *text, int numbered, int64_t max,
	int64_t *ret_n)
{
	size_t len = strcspn(text, ":");
	int word = word_of(names, n, text, len);

	if (!text[len])
		return word;
	return word == numbered && text_parse_int(text + len + 1, 1, max, ret_n) ? word : -1;
}

const char *policy_overlap_name(enum overlap_word w)
{
	return w < OVERLAP_MAX ? overlap_names[w] : "unknown";
}

bool policy_overlap_parse(const char *text, struct overlap *ret, struct err *e)
{
	int64_t waiting = 1;
	int word = word_with_number(overlap_names, OVERLAP_MAX, text, OVERLAP_QUEUE, 10000, &waiting);

	if (word < 0)
		return err_field(e, "overlap", "'%.40s' is not skip, queue, queue:N (1 to 10000), replace or allow", text);
	*ret = (struct overlap){(enum overlap_word)word, word == OVERLAP_QUEUE ? waiting : 0};
	return true;
}

void policy_catchup_of(const struct job_spec *s, struct catchup *ret)
{
	struct err e = {};

	*ret = (struct catchup){CATCHUP_LATEST, 1};
	if (s->catchup)
		slot_catchup_parse(s->catchup, ret, &e);
}

/* ---- backoff ---- */

static bool duration_of(const char *text, size_t len, usec_t *ret)
{
	AUTO_TEXT word = xstrndup(text, len);
	struct err e = {};

	return duration_parse(word, ret, &e) && *ret > 0 && *ret <= 366 * USEC_DAY;
}

bool policy_backoff_parse(const char *text, struct backoff *ret, struct err *e)
{
	struct backoff b = {};
	const char *dots;

	if (text_starts(text, "fixed:") && duration_of(text + 6, strlen(text + 6), &b.base)) {
		b.fixed = true;
		b.cap = b.base;
		*ret = b;
		return true;
	}
	dots = strstr(text, "..");
	if (text_starts(text, "exp:") && dots && duration_of(text + 4, (size_t)(dots - text) - 4, &b.base) &&
	    duration_of(dots + 2, strlen(dots + 2), &b.cap) && b.base <= b.cap) {
		*ret = b;
		return true;
	}
	return err_field(e, "backoff", "'%.60s' is not exp:BASE..CAP or fixed:DURATION, as exp:10s..10m or fixed:30s", text);
}

usec_t policy_backoff_delay(const struct backoff *b, int64_t failures, uint64_t random)
{
	usec_t ceiling = b->base;

	if (b->fixed)
		return b->base;
	for (int64_t i = 1; i < failures && ceiling < b->cap; i++)
		ceiling = ceiling > b->cap / 2 ? b->cap : ceiling * 2;
	return (usec_t)(random % ((uint64_t)ceiling + 1));
}

/* ---- exit codes ---- */

const char *policy_exit_action_name(enum exit_action a)
{
	return a < EXIT_ACTION_MAX ? action_names[a] : "unknown";
}

/* CODE[|CODE…]=ACTION; modifies 'rule'. */
static bool exit_rule_parse(char *rule, struct exit_rules *r)
{
	char *equals = strchr(rule, '='), *code, *rest;
	int action;

	if (!equals)
		return false;
	*equals = '\0';
	action = word_of(action_names, EXIT_ACTION_MAX, equals + 1, strlen(equals + 1));
	if (action < 0)
		return false;
	for (rest = rule; (code = strsep(&rest, "|"));) {
		int64_t n;

		if (!text_parse_int(code, 0, 255, &n) || r->action[n] >= 0)
			return false;
		r->action[n] = (signed char)action;
	}
	return true;
}

bool policy_exit_rules_parse(const char *text, struct exit_rules *ret, struct err *e)
{
	AUTO_TEXT copy = xstrdup(text);
	struct exit_rules r;
	char *rest = copy, *rule;

	memset(r.action, -1, sizeof(r.action));
	while (rest && (rule = strsep(&rest, ",")))
		if (!exit_rule_parse(rule, &r))
			return err_field(e, "on_exit", "'%.80s' is not CODE=ACTION[,CODE|CODE=ACTION]: codes are 0 to 255, "
				"each once; actions are ok, fail, retry, dead, pause", text);
	*ret = r;
	return true;
}

/* ---- rate ---- */

bool policy_rate_parse(const char *text, struct rate *ret, struct err *e)
{
	size_t slash = strcspn(text, "/"), colon = slash + (text[slash] ? strcspn(text + slash, ":") : 0);
	AUTO_TEXT number = xstrndup(text, slash);
	struct rate r = {};

	if (text[slash] && text_parse_int(number, 1, 1000000, &r.n) &&
	    duration_of(text + slash + 1, colon - slash - 1, &r.per) && r.per / r.n > 0) {
		r.burst = r.n;
		if (!text[colon] || text_parse_int(text + colon + 1, 1, 1000000, &r.burst)) {
			*ret = r;
			return true;
		}
	}
	return err_field(e, "rate", "'%.40s' is not N/DURATION or N/DURATION:BURST, as 10/1m or 100/1h:20", text);
}

char *policy_rate_print(const struct rate *r, char out[RATE_TEXT_MAX])
{
	char per[RFC3339_MAX];

	if (r->burst == r->n)
		snprintf(out, RATE_TEXT_MAX, "%" PRId64 "/%s", r->n, duration_format(r->per, per));
	else
		snprintf(out, RATE_TEXT_MAX, "%" PRId64 "/%s:%" PRId64, r->n, duration_format(r->per, per), r->burst);
	return out;
}

bool policy_rate_take(const struct rate *r, usec_t now, usec_t *bucket, usec_t *ret_again_at)
{
	usec_t step, spoken_for;

	if (r->n == 0)
		return true;
	step = r->per / r->n;
	spoken_for = *bucket > now ? *bucket : now;
	if (spoken_for - now > step * (r->burst - 1)) {
		*ret_again_at = spoken_for - step * (r->burst - 1);
		return false;
	}
	*bucket = spoken_for + step;
	return true;
}

/* ---- conditions ---- */

const char *policy_machine_figure_name(enum machine_figure f)
{
	return f < MACHINE_FIGURE_MAX ? figure_names[f] : "unknown";
}

/* 12, 0.5, 1.25 in thousandths. */
static bool parse_thousandths(const char *text, int64_t *ret)
{
	size_t whole = strspn(text, "0123456789"), part = 0;
	AUTO_TEXT digits = xstrndup(text, whole);
	int64_t n, fraction = 0;

	if (whole == 0 || !text_parse_int(digits, 0, 100000, &n))
		return false;
	if (text[whole] == '.') {
		part = strspn(text + whole + 1, "0123456789");
		if (part == 0 || part > 3 || text[whole + 1 + part])
			return false;
		for (size_t i = 0; i < 3; i++)
			fraction = fraction * 10 + (i < part ? text[whole + 1 + i] - '0' : 0);
	} else if (text[whole]) {
		return false;
	}
	*ret = n * 1000 + fraction;
	return true;
}

bool policy_condition_parse(const char *text, struct gate *ret, struct err *e)
{
	size_t len = strcspn(text, "<");
	int figure = word_of(figure_names, MACHINE_FIGURE_MAX, text, len);
	int64_t below;

	if (figure < 0 || !text[len] || !parse_thousandths(text + len + 1, &below) || below == 0)
		return err_field(e, "when", "'%.40s' is not load<N, cpu<N, memory<N or io<N: a load average, or a "
			"pressure in percent", text);
	*ret = (struct gate){(enum machine_figure)figure, below};
	return true;
}

/* ---- notification ---- */

const char *policy_notify_channel_name(enum notify_channel c)
{
	return c < NOTIFY_CHANNEL_MAX ? channel_names[c] : "unknown";
}

/* A single address that a mailer cannot mistake for an option or a list. */
static bool mail_address_valid(const char *a)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.!#$%&'*+/=?^_`{|}~@-";
	const char *at = strchr(a, '@');

	if (!*a || *a == '-' || strlen(a) > 254 || strspn(a, allowed) != strlen(a))
		return false;
	return !at || (at != a && at[1] && !strchr(at + 1, '@'));
}

/* The characters that cron accepts in MAILTO. */
bool policy_output_target(const char *to)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@!:%-.,_+";

	return *to && *to != '-' && strlen(to) <= 1000 && strspn(to, allowed) == strlen(to);
}

char *policy_output_command(const char *to)
{
	return xprintf("exec " POLICY_SENDMAIL " -FCronDaemon -i -B8BITMIME -oem %s", to);
}

bool policy_notify_parse(const char *text, enum notify_channel *ret_channel, const char **ret_target, struct err *e)
{
	size_t len = strcspn(text, ":");
	int channel = word_of(channel_names, NOTIFY_CHANNEL_MAX, text, len);
	const char *target = text[len] ? text + len + 1 : "";

	if (channel < 0 || !*target)
		return err_field(e, "notify", "'%.80s' is not mail:ADDRESS, webhook:URL, exec:COMMAND or output:ADDRESS", text);
	if (channel == NOTIFY_MAIL && !mail_address_valid(target))
		return err_field(e, "notify", "'%.80s' is not one mail address", target);
	if (channel == NOTIFY_OUTPUT && !policy_output_target(target))
		return err_field(e, "notify", "'%.80s' is not a mail address, or addresses with commas", target);
	if (channel == NOTIFY_WEBHOOK && !text_starts(target, "https://") && !text_starts(target, "http://"))
		return err_field(e, "notify", "'%.80s' is not a URL that begins with https:// or http://", target);
	*ret_channel = (enum notify_channel)channel;
	*ret_target = target;
	return true;
}

/* ---- node labels ---- */

bool policy_node_label_check(const char *text, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
	size_t key = strspn(text, letters);

	if (key > 0 && text[key] == '=' && strlen(text) <= NODE_LABEL_MAX && text[key + 1] &&
	    text[key + 1 + strspn(text + key + 1, letters)] == '\0')
		return true;
	return err_field(e, "node_labels", "'%.40s' is not a label: write KEY=VALUE with letters, digits, '.', '_', '-' and '/'", text);
}

/* ---- policies of a job ---- */

/* The last results of a job are kept for its notices and for its metrics. */
static bool results_are_kept(const struct job_spec *s)
{
	for (size_t i = 0; i < s->tags.n; i++)
		if (text_starts(s->tags.v[i], JOB_TAG_METRICS "="))
			return true;
	return s->notify.n > 0;
}

void policy_start_of(const struct job_spec *s, struct start_policy *ret)
{
	struct overlap o = {OVERLAP_SKIP, 0};
	struct err e = {};

	if (s->overlap)
		policy_overlap_parse(s->overlap, &o, &e);
	*ret = (struct start_policy){
		.overlap = o.word,
		.overlap_waiting = o.waiting,
		.permits = o.word == OVERLAP_ALLOW ? s->max_running : 1,
		.deadline = s->deadline,
		.expires = s->expires,
		.gated = (s->when.n > 0 || s->rate || s->origin ? GATED_ASK : 0u) | (s->node_labels.n > 0 ? GATED_LABELS : 0u),
		.notifies = results_are_kept(s),
	};
}

void policy_retry_of(const struct job_spec *s, struct retry_policy *ret)
{
	struct err e = {};

	*ret = (struct retry_policy){
		.retries = s->retries,
		.backoff = BACKOFF_DEFAULT,
		.rerun_lost = s->on_lost == LOST_RERUN,
		.run_timeout = s->run_timeout,
	};
	if (s->backoff)
		policy_backoff_parse(s->backoff, &ret->backoff, &e);
	if (!policy_exit_rules_parse(s->on_exit, &ret->on_exit, &e))
		policy_exit_rules_parse(NULL, &ret->on_exit, &e);
}
