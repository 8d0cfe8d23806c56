/* SPDX-License-Identifier: Apache-2.0 */
/* The table of configuration keys, with the functions that use it. */
#include "daemon/loop/config.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/edit_distance.h"
#include "core/target/address_guard.h"
#include "core/job/call.h"
#include "core/target/lambda.h"
#include "core/target/s3_url.h"
#include "store/read/metric_counts.h"
#include <errno.h>
#include <glob.h>
#include <ini.h>
#include <inttypes.h>
#include <string.h>

#define NODE_NAME_MAX 64 /* as for host names */

#define AT(member) offsetof(struct config, member)

const struct config_key config_keys[] = {
	{"store", CONFIG_TEXT, AT(store), 0, 0, 0, false,
		"SQLite file, or postgresql://… for a cluster; default: jobs.db in the state directory"},
	{"node-name", CONFIG_TEXT, AT(node_name), 0, 0, 0, false,
		"name of this node, the same after a restart; default: the host name"},
	{"log-level", CONFIG_LEVEL, AT(log_level), 0, 0, LOG_LEVEL_INFO, true,
		"error, warning, info or debug"},
	{"max-running", CONFIG_AUTO, AT(max_running), 1, 10000, 0, true,
		"runs at the same time on this node; auto: adjusted to the load of the machine"},
	{"owner-max-running", CONFIG_SHARE, AT(owner_max_running), 1, 10000, CONFIG_SHARE_AUTO,
		true,
		"of these, runs of one owner: a number, a share such as 75%, none, or auto (75% in a system service)"},
	{"time-sync-wait", CONFIG_NUMBER, AT(time_sync_wait), 0, 3600, 30, true,
		"seconds to wait after boot until the clock is synchronised"},
	{"lease", CONFIG_NUMBER, AT(lease), 2, 3600, 15, false,
		"seconds after the last renewal during which a node leads, plans and starts runs; the same on all nodes of a store"},
	{"run-lease", CONFIG_AUTO, AT(run_lease), 2, 86400, 0, false,
		"seconds after the last renewal until the runs of a node are given up; not below lease; auto: 60, or lease if longer"},
	{"node-labels", CONFIG_TEXT, AT(labels), 0, 0, 0, false,
		"labels of this node, for example zone=a,gpu=yes; jobs can require them; default: none"},
	{"crontabs", CONFIG_TABLES, AT(crontabs), 0, 0, CRONTABS_OFF, true,
		"crontabs of this machine: off, shadow (planned, not run) or on (run, unless another cron daemon does)"},
	{"may-lead", CONFIG_YES, AT(may_lead), 0, 0, 1, false,
		"yes, or no: this node never leads; at least one node of a store must be able to"},
	{"connections", CONFIG_NUMBER, AT(connections), 1, 60000, 2048, false,
		"open API connections of all users"},
	{"connections-per-uid", CONFIG_NUMBER, AT(connections_per_uid), 1, 60000, 256, true,
		"open API connections of one user; also limited to the number that is still free"},
	{"connections-reserved", CONFIG_NUMBER, AT(connections_reserved), 0, 60000, 64, true,
		"open API connections that only root and administrators can use; at most a quarter of 'connections'"},
	{"body-limit", CONFIG_SIZE, AT(body_limit), 1024, 1 << 30, 1 << 20, true,
		"bytes of one request body; a job with a large stdin needs more"},
	{"bulk-body-limit", CONFIG_SIZE, AT(bulk_body_limit), 1024, 1 << 30, 16 << 20, true,
		"bytes of one bulk submission"},
	{"bulk-jobs", CONFIG_NUMBER, AT(bulk_jobs), 1, 1000000, 10000, true,
		"jobs in one bulk submission"},
	{"bodies-per-uid", CONFIG_SIZE, AT(bodies_per_uid), 1 << 20, INT64_C(1) << 40, 64 << 20,
		true, "bytes of request bodies of one user in memory at the same time"},
	{"bodies-total", CONFIG_SIZE, AT(bodies_total), 1 << 20, INT64_C(1) << 40, 256 << 20, true,
		"the same for all users; one user is also limited to what is still free"},
	{"answers-per-uid", CONFIG_SIZE, AT(answers_per_uid), 1 << 20, INT64_C(1) << 40, 16 << 20,
		true,
		"bytes of responses that the clients of one user have not read yet; above it, further requests of the user wait"},
	{"answers-total", CONFIG_SIZE, AT(answers_total), 1 << 20, INT64_C(1) << 40, 256 << 20,
		true, "the same for all users; one user is also limited to what is still free"},
	{"jobs-per-uid", CONFIG_NUMBER, AT(jobs_per_uid), 1, INT64_C(1000000000), 100000, true,
		"unfinished jobs of one user"},
	{"submissions-per-second", CONFIG_NUMBER, AT(submissions_per_second), 1, 1000000, 2000,
		true, "submissions of one user per second, on average"},
	{"submissions-burst", CONFIG_NUMBER, AT(submissions_burst), 1, 1000000, 5000, true,
		"submissions of one user in a burst"},
	{"head-timeout", CONFIG_NUMBER, AT(head_timeout), 1, 3600, 10, true,
		"seconds a client has for the head of a request"},
	{"body-timeout", CONFIG_NUMBER, AT(body_timeout), 1, 3600, 30, true,
		"seconds a client has for the body of a request"},
	{"keep-days", CONFIG_NUMBER, AT(keep_days), 1, 36500, 30, true,
		"days that runs and finished jobs are kept; see keep-runs"},
	{"keep-runs", CONFIG_NUMBER, AT(keep_runs), 1, 1000000, 1000, true,
		"runs of an unfinished job that are kept regardless of their age"},
	{"keep-dead-days", CONFIG_NUMBER, AT(keep_dead_days), 1, 36500, 90, true,
		"days that dead letters are kept"},
	{"store-budget", CONFIG_SIZE, AT(store_budget), 0, INT64_C(1) << 50, INT64_C(2) << 30, true,
		"bytes of the SQLite store; above it, old runs of owners with more than an equal share are deleted early; 0: no limit"},
	{"owner-store-limit", CONFIG_SIZE, AT(owner_store_limit), 0, INT64_C(1) << 50,
		INT64_C(1) << 30, true,
		"bytes of the jobs, templates and runs of one user in the store; 0: no limit"},
	{"output-budget", CONFIG_SIZE, AT(output_budget), 0, INT64_C(1) << 50, INT64_C(5) << 30,
		true,
		"bytes of output of all runs; above it, the oldest output is deleted; 0: no limit"},
	{"output-limit", CONFIG_SIZE, AT(output_limit), 0, INT64_C(1) << 40, INT64_C(1) << 30, true,
		"bytes of output that are kept of one attempt; jobs cannot set a higher limit"},
	{"artifact-limit", CONFIG_SIZE, AT(artifact_limit), 4096, INT64_C(1) << 50,
		INT64_C(1) << 30, true, "bytes of one artifact, both downloaded and unpacked"},
	{"artifact-budget", CONFIG_SIZE, AT(artifact_budget), 0, INT64_C(1) << 50, INT64_C(4) << 30,
		true,
		"bytes of all artifacts on disk; above it, unused ones are removed, least recently used first"},
	{"artifact-timeout", CONFIG_NUMBER, AT(artifact_timeout), 1, 86400, 600, true,
		"seconds until the download of an artifact is given up"},
	{"archive", CONFIG_TEXT, AT(archive), 0, 0, 0, false,
		"directory, or s3://BUCKET/PREFIX, where history is written before it is deleted; default: none"},
	{"output-archive", CONFIG_YES, AT(output_archive), 0, 0, 0, false,
		"yes: the output of runs is written to the archive, too, before it is deleted"},
	{"s3-endpoint", CONFIG_TEXT, AT(s3_endpoint), 0, 0, 0, false,
		"https://HOST[:PORT] of S3-compatible storage; default: AWS"},
	{"s3-region", CONFIG_TEXT, AT(s3_region), 0, 0, 0, false,
		"region that requests to the storage are signed for; default: " S3_REGION_DEFAULT},
	{"s3-addressing", CONFIG_WORD, AT(s3_addressing), 0, 0, S3_ADDRESSING_AUTO, false,
		"bucket in the path or in the host name of requests; auto: path if s3-endpoint is set", "auto path virtual"},
	{"s3-artifacts", CONFIG_TEXT, AT(s3_artifacts), 0, 0, 0, false,
		"buckets, separated by commas, whose objects any user can fetch as artifacts with the credentials of jobsched-net; default: none"},
	{"machine-id-file", CONFIG_TEXT, AT(machine_id_file), 0, 0, 0, false,
		"file that identifies this machine, to detect a copied store; default: /etc/machine-id"},
	{"sendmail", CONFIG_TEXT, AT(sendmail), 0, 0, 0, false,
		"program that reads mail from its standard input; default: " SENDMAIL_DEFAULT},
	{"http-allow", CONFIG_TEXT, AT(http_allow), 0, 0, 0, false,
		"addresses and networks, separated by commas, that URLs of jobs may lead to although they are loopback, private or otherwise special; default: none"},
	{"http-callback-url", CONFIG_TEXT, AT(http_callback_url), 0, 0, 0, false,
		"base URL by which targets of asynchronous calls reach the API of this node, as https://node1.example.org:8443; default: there are no asynchronous calls"},
	{"http-proxy", CONFIG_TEXT, AT(http_proxy), 0, 0, 0, false,
		"URL of a proxy for the HTTP requests of jobs; the proxy then decides which addresses are allowed; default: none"},
	{"lambda-endpoint", CONFIG_TEXT, AT(lambda_endpoint), 0, 0, 0, false,
		"URL of a service that is compatible with AWS Lambda; default: that of AWS in the region of the job"},
	{"lambda-functions", CONFIG_TEXT, AT(lambda_functions), 0, 0, 0, false,
		"PATTERN or USER:PATTERN, separated by commas: the AWS Lambda functions that jobs may invoke; default: none, in user mode all"},
	{"webhook-key-file", CONFIG_TEXT, AT(webhook_key_file), 0, 0, 0, false,
		"file with the key that signs webhooks, readable only by its owner; default: webhooks are not signed"},
	{"notice-slots", CONFIG_NUMBER, AT(notice_slots), 1, 10000, 64, true,
		"notices that this node sends at the same time; one owner is also limited to the slots that are still free"},
	{"notice-retry", CONFIG_NUMBER, AT(notice_retry), 1, 86400, 60, true,
		"seconds until a failed notice is sent again; the delay grows with each try"},
	{"admin-group", CONFIG_TEXT, AT(admin_group), 0, 0, 0, false,
		"group whose members see and control the jobs of all users; default: " ADMIN_GROUP_DEFAULT},
	{"listen", CONFIG_LIST, AT(listen), 0, 0, 0, false,
		"ADDRESS:PORT where the API is also served over TCP; may be repeated; default: none"},
	{"hosts", CONFIG_TEXT, AT(hosts), 0, 0, 0, false,
		"names by which clients reach this server over TCP, separated by commas; IP addresses, localhost and the host name are always accepted"},
	{"tls-certificate", CONFIG_TEXT, AT(tls_certificate), 0, 0, 0, false,
		"PEM file with the certificate chain of the TCP listeners; needed unless they are on loopback"},
	{"tls-key", CONFIG_TEXT, AT(tls_key), 0, 0, 0, false,
		"PEM file with the key of tls-certificate; both are read again when they change"},
	{"tls-client-ca", CONFIG_TEXT, AT(tls_client_ca), 0, 0, 0, false,
		"PEM file with the CA that signs client certificates; if set, every client needs one besides its token"},
	{"jwt-key-file", CONFIG_TEXT, AT(jwt_key_file), 0, 0, 0, false,
		"JWKS, PEM public key or HS256 secret that verifies JSON web tokens; default: they are not accepted"},
	{"jwt-audience", CONFIG_TEXT, AT(jwt_audience), 0, 0, 0, false,
		"required audience (aud) of JSON web tokens; must be set with jwt-key-file"},
	{"jwt-issuer", CONFIG_TEXT, AT(jwt_issuer), 0, 0, 0, false,
		"required issuer (iss) of JSON web tokens; default: not checked"},
	{"session-lifetime", CONFIG_NUMBER, AT(session_lifetime), 60, 31536000, 43200, false,
		"seconds until a login of the page ends"},
	{"requests-per-second", CONFIG_NUMBER, AT(requests_per_second), 1, 1000000, 200, false,
		"requests over TCP with one token per second, on average"},
	{"requests-burst", CONFIG_NUMBER, AT(requests_burst), 1, 1000000, 1000, false,
		"requests over TCP with one token in a burst"},
	{"allow-file", CONFIG_TEXT, AT(allow_file), 0, 0, 0, false,
		"if this file exists, only the users it lists may submit or start jobs; default: " JOBSCHED_SYSCONFDIR
		"/allow"},
	{"deny-file", CONFIG_TEXT, AT(deny_file), 0, 0, 0, false,
		"without an allow-file, the users it lists may not submit or start jobs; default: " JOBSCHED_SYSCONFDIR
		"/deny"},
	{"metrics-jobs", CONFIG_WORD, AT(metrics_jobs), 0, 0, METRIC_JOBS_TAGGED, false,
		"jobs that have metrics of their own: none, tagged (those with a tag 'metrics'), or all", "none tagged all"},
	{"metrics-jobs-max", CONFIG_NUMBER, AT(metrics_jobs_max), 0, 100000, 1000, false,
		"largest number of jobs with metrics of their own; one owner can have a quarter of them"},
	{"metrics-textfile", CONFIG_TEXT, AT(metrics_textfile), 0, 0, 0, false,
		"file that the metrics are written to, for node_exporter; its name ends with .prom; default: none"},
	{"metrics-textfile-interval", CONFIG_NUMBER, AT(metrics_textfile_interval), 1, 3600, 15, false,
		"seconds between two writes of metrics-textfile"},
	{"log-format", CONFIG_WORD, AT(log_format), 0, 0, LOG_FORMAT_TEXT, true,
		"text, or json: one JSON object per line on standard error, for containers; the journal gets fields in both cases",
		"text json"},
	{"otlp", CONFIG_TEXT, AT(otlp), 0, 0, 0, false,
		"URL of an OpenTelemetry receiver (OTLP over HTTP, JSON) for the spans of runs; default: none"},
	{"otlp-queue", CONFIG_NUMBER, AT(otlp_queue), 1, 1000000, 4096, false,
		"spans that wait for export; further ones are dropped and counted"},
	{"otlp-interval", CONFIG_NUMBER, AT(otlp_interval), 1, 3600, 5, false,
		"seconds between two exports of spans"},
};
const size_t config_keys_count = ELEMENTS(config_keys);

static const struct {
	const char *name;
	enum log_level level;
} levels[] = {{"error", LOG_LEVEL_ERROR}, {"warning", LOG_LEVEL_WARNING}, {"info", LOG_LEVEL_INFO},
	{"debug", LOG_LEVEL_DEBUG}};

static char **text_at(struct config *c, const struct config_key *k)
{
	return (char **)((char *)c + k->offset);
}

static bool is_text(const struct config_key *k)
{
	return k->type == CONFIG_TEXT || k->type == CONFIG_LIST;
}

static int64_t *number_at(struct config *c, const struct config_key *k)
{
	return (int64_t *)((char *)c + k->offset);
}

void config_init(struct config *c)
{
	*c = (struct config){};
	for (size_t i = 0; i < config_keys_count; i++)
		if (!is_text(&config_keys[i]))
			*number_at(c, &config_keys[i]) = config_keys[i].preset;
}

void config_done(struct config *c)
{
	for (size_t i = 0; i < config_keys_count; i++)
		if (is_text(&config_keys[i]))
			free(*text_at(c, &config_keys[i]));
	*c = (struct config){};
}

static const struct config_key *key_find(const char *name)
{
	for (size_t i = 0; i < config_keys_count; i++)
		if (strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

static bool key_set_level(int64_t *at, const char *value, struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(levels); i++)
		if (strcmp(levels[i].name, value) == 0) {
			*at = levels[i].level;
			return true;
		}
	return err_set(
		e, ERR_INVALID, "'log-level' is '%.40s', not error, warning, info or debug", value);
}

static bool key_set_yes(const struct config_key *k, int64_t *at, const char *value, struct err *e)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return err_set(e, ERR_INVALID, "'%s' is '%.40s', not yes or no", k->name, value);
	*at = value[0] == 'y';
	return true;
}

const char *const config_crontabs_names[CONFIG_CRONTABS_MAX] = {"off", "shadow", "on"};

static bool key_set_crontabs(const struct config_key *k, int64_t *at, const char *value, struct err *e)
{
	for (int i = 0; i < CONFIG_CRONTABS_MAX; i++)
		if (strcmp(config_crontabs_names[i], value) == 0) {
			*at = i;
			return true;
		}
	return err_set(e, ERR_INVALID, "'%s' is '%.40s', not off, shadow or on", k->name, value);
}

static bool key_add_line(const struct config_key *k, char **at, const char *value, struct err *e)
{
	AUTO_TEXT old = *at;

	if (!*value)
		return err_set(e, ERR_INVALID, "'%s' is empty; leave the line out for the default",
			k->name);
	*at = old ? xprintf("%s\n%s", old, value) : xstrdup(value);
	return true;
}

/* The n-th word of a list; an empty text: there are fewer. */
static const char *word_at(const char *words, int64_t n, size_t *ret_len)
{
	for (; n > 0 && *words; n--) {
		words += strcspn(words, " ");
		words += strspn(words, " ");
	}
	*ret_len = strcspn(words, " ");
	return words;
}

static bool key_set_choice(const struct config_key *k, int64_t *at, const char *value, struct err *e)
{
	const char *word;
	size_t len;

	for (int64_t i = 0; word = word_at(k->words, i, &len), len > 0; i++)
		if (strlen(value) == len && strncmp(word, value, len) == 0) {
			*at = i;
			return true;
		}
	return err_set(e, ERR_INVALID, "'%s' is '%.40s', not one of: %s", k->name, value, k->words);
}

static bool percent_parse(const char *value, int64_t *ret)
{
	size_t len = strlen(value);
	AUTO_TEXT digits = len > 1 && value[len - 1] == '%' ? xstrndup(value, len - 1) : NULL;

	return digits && text_parse_int(digits, 1, 100, ret);
}

/* 'auto', 'none' and shares; a share of 75% is stored as -75. */
static bool key_set_word(const struct config_key *k, int64_t *at, const char *value)
{
	int64_t percent;

	if (strcmp(value, "auto") == 0)
		*at = k->type == CONFIG_SHARE ? CONFIG_SHARE_AUTO : 0;
	else if (k->type == CONFIG_SHARE && strcmp(value, "none") == 0)
		*at = 0;
	else if (k->type == CONFIG_SHARE && percent_parse(value, &percent))
		*at = -percent;
	else
		return false;
	return true;
}

static bool key_set_number(const struct config_key *k, int64_t *at, const char *value,
	struct err *e)
{
	int64_t n;

	if (k->type == CONFIG_SIZE ? !text_parse_size(value, &n)
				   : !text_parse_int(value, INT64_MIN, INT64_MAX, &n))
		return err_set(e, ERR_INVALID, "'%s' is '%.40s', not a number", k->name, value);
	if (n < k->min || n > k->max)
		return err_set(e, ERR_INVALID,
			"'%s' is %" PRId64 ", not between %" PRId64 " and %" PRId64, k->name, n,
			k->min, k->max);
	*at = n;
	return true;
}

static bool unknown_key(const char *key, struct err *e)
{
	AUTO_DONE(strv) names = {};
	const char *meant;

	for (size_t i = 0; i < config_keys_count; i++)
		strv_add(&names, config_keys[i].name);
	meant = edit_distance_nearest(key, &names);
	if (meant)
		return err_set(
			e, ERR_INVALID, "unknown key '%.60s'; did you mean '%s'?", key, meant);
	return err_set(
		e, ERR_INVALID, "unknown key '%.60s'; 'jobschedd --print-config' shows all", key);
}

/* The name is used in paths and on command lines. */
static bool node_name_valid(const char *name, struct err *e)
{
	size_t len = strlen(name);

	if (len <= NODE_NAME_MAX &&
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
			len)
		return true;
	return err_set(e, ERR_INVALID,
		"'node-name' is '%.80s': it may have letters, digits, '.', '_' and '-', at most %d characters",
		name, NODE_NAME_MAX);
}

static bool storage_key_check(const struct config_key *k, const char *value, struct err *e)
{
	if (k->offset == AT(archive))
		return !text_starts(value, "s3:") || s3_url_archive_check(value, e);
	if (k->offset == AT(s3_endpoint))
		return s3_url_endpoint_check(value, e);
	if (k->offset == AT(s3_region) && value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")])
		return err_set(e, ERR_INVALID, "'%.80s' is not the name of a region", value);
	return true;
}

bool config_set(struct config *c, const char *key, const char *value, struct err *e)
{
	const struct config_key *k = key_find(key);

	if (!k)
		return unknown_key(key, e);
	switch (k->type) {
	case CONFIG_TEXT:
		if (!*value)
			return err_set(e, ERR_INVALID,
				"'%s' is empty; leave the line out for the default", key);
		if (k->offset == AT(node_name) && !node_name_valid(value, e))
			return false;
		if (k->offset == AT(http_allow) && !address_guard_list_check(value, e))
			return err_wrap(e, "'http-allow'");
		if (!storage_key_check(k, value, e))
			return err_wrap(e, "'%s'", key);
		if (k->offset == AT(lambda_functions) && !lambda_functions_check(value, e))
			return err_wrap(e, "'lambda-functions'");
		if (k->offset == AT(lambda_endpoint) && !call_url_check(value, e))
			return err_wrap(e, "'lambda-endpoint'");
		free(*text_at(c, k));
		*text_at(c, k) = xstrdup(value);
		return true;
	case CONFIG_LIST:
		return key_add_line(k, text_at(c, k), value, e);
	case CONFIG_LEVEL:
		return key_set_level(number_at(c, k), value, e);
	case CONFIG_YES:
		return key_set_yes(k, number_at(c, k), value, e);
	case CONFIG_TABLES:
		return key_set_crontabs(k, number_at(c, k), value, e);
	case CONFIG_WORD:
		return key_set_choice(k, number_at(c, k), value, e);
	case CONFIG_AUTO:
	case CONFIG_SHARE:
		return key_set_word(k, number_at(c, k), value) ||
		       key_set_number(k, number_at(c, k), value, e);
	case CONFIG_NUMBER:
	case CONFIG_SIZE:
		return key_set_number(k, number_at(c, k), value, e);
	}
	return false;
}

struct reading {
	struct config *config;
	struct err *e;
};

static int on_pair(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;

	if (r->e->kind != ERR_NONE)
		return 0;
	if (*section)
		return err_set(r->e, ERR_INVALID, "sections are not supported: '[%.40s]'", section);
	return config_set(r->config, name, value, r->e);
}

#define RUN_LEASE_DEFAULT 60 /* longer than a restart or failover of the database */

int64_t config_run_lease(const struct config *c)
{
	if (c->run_lease)
		return c->run_lease;
	return c->lease > RUN_LEASE_DEFAULT ? c->lease : RUN_LEASE_DEFAULT;
}

static bool check_leases(const struct config *c, const char *path, struct err *e)
{
	if (config_run_lease(c) >= c->lease)
		return true;
	return err_set(e, ERR_INVALID,
		"%s: 'run-lease' is %" PRId64 ", shorter than 'lease', which is %" PRId64
		"; set 'run-lease = %" PRId64 "' or more",
		path, c->run_lease, c->lease, c->lease);
}

static bool config_read_file(struct config *c, const char *path, bool must_exist, struct err *e)
{
	struct err found = {};
	int line;

	errno = 0;
	line = ini_parse(path, on_pair, &(struct reading){c, &found});
	if (line == -1 && errno == ENOENT && !must_exist)
		return true;
	if (line == -1)
		return err_errno(e, errno, "could not read the configuration '%s'", path);
	return line == 0 ||
	       err_set(e, ERR_INVALID, "%s:%d: %s", path, line,
		       found.kind == ERR_NONE ? "this is not 'key = value'" : found.msg);
}

/* The files of packages, for example 'crontabs = on' of the package that replaces cron. */
static bool config_read_directory(struct config *c, const char *path, struct err *e)
{
	AUTO_TEXT pattern = xprintf("%s.d/*.conf", path);
	glob_t files = {};
	bool ok = true;

	if (glob(pattern, 0, NULL, &files) == 0)
		for (size_t i = 0; ok && i < files.gl_pathc; i++)
			ok = config_read_file(c, files.gl_pathv[i], true, e);
	globfree(&files);
	return ok;
}

bool config_read(struct config *c, const char *path, bool must_exist, struct err *e)
{
	return config_read_directory(c, path, e) && config_read_file(c, path, must_exist, e) &&
	       check_leases(c, path, e);
}

void config_reload(struct config *running, const struct config *fresh,
	struct strv *ret_need_restart)
{
	struct config *from = (struct config *)fresh;

	for (size_t i = 0; i < config_keys_count; i++) {
		const struct config_key *k = &config_keys[i];
		bool same = is_text(k)
				    ? text_equal(*text_at(running, k), *text_at(from, k))
				    : *number_at(running, k) == *number_at(from, k);

		if (!same && !k->reload)
			strv_add(ret_need_restart, k->name);
		else if (!same)
			*number_at(running, k) = *number_at(from, k);
	}
}

bool config_store_is_server(const char *store)
{
	return strstr(store, "://") != NULL;
}

char *config_store_shown(const char *store)
{
	const char *host = strstr(store, "://"), *at, *colon, *password;
	AUTO_DONE(buf) shown = {};

	if (!host)
		return xstrdup(store);
	at = memrchr(host + 3, '@', strcspn(host + 3, "/?"));
	colon = at ? memchr(host + 3, ':', (size_t)(at - host - 3)) : NULL;
	if (colon) {
		buf_add(&shown, store, (size_t)(colon + 1 - store));
		buf_str(&shown, "***");
		store = at;
	}
	password = strstr(store, "password=");
	if (password) {
		buf_add(&shown, store, (size_t)(password - store));
		buf_str(&shown, "password=***");
		store = password + strcspn(password, "&");
	}
	buf_str(&shown, store);
	return buf_steal(&shown);
}

static void print_number(const struct config_key *k, int64_t n, FILE *out)
{
	size_t len;
	const char *word = k->type == CONFIG_WORD ? word_at(k->words, n, &len) : NULL;

	if (k->type == CONFIG_YES)
		fprintf(out, "%s = %s\n", k->name, n ? "yes" : "no");
	else if (k->type == CONFIG_TABLES)
		fprintf(out, "%s = %s\n", k->name, config_crontabs_names[n]);
	else if (word)
		fprintf(out, "%s = %.*s\n", k->name, (int)len, word);
	else if (n == (k->type == CONFIG_SHARE ? CONFIG_SHARE_AUTO : 0) && k->type >= CONFIG_AUTO)
		fprintf(out, "%s = auto\n", k->name);
	else if (k->type == CONFIG_SHARE && n == 0)
		fprintf(out, "%s = none\n", k->name);
	else if (k->type == CONFIG_SHARE && n < 0)
		fprintf(out, "%s = %" PRId64 "%%\n", k->name, -n);
	else
		fprintf(out, "%s = %" PRId64 "\n", k->name, n);
}

static void print_lines(const struct config_key *k, const char *text, FILE *out)
{
	if (!text)
		fprintf(out, ";%s = \n", k->name);
	while (text && *text) {
		size_t len = strcspn(text, "\n");

		fprintf(out, "%s = %.*s\n", k->name, (int)len, text);
		text += len + (text[len] == '\n');
	}
}

void config_print(const struct config *c, FILE *out)
{
	struct config *from = (struct config *)c;

	for (size_t i = 0; i < config_keys_count; i++) {
		const struct config_key *k = &config_keys[i];
		const char *level = "info";

		fprintf(out, "; %s\n", k->help);
		if (k->type == CONFIG_LIST) {
			print_lines(k, *text_at(from, k), out);
			continue;
		}
		if (k->type == CONFIG_TEXT) {
			AUTO_TEXT text =
				*text_at(from, k) ? config_store_shown(*text_at(from, k)) : NULL;

			fprintf(out, "%s%s = %s\n", text ? "" : ";", k->name, text ? text : "");
			continue;
		}
		for (size_t n = 0; n < ELEMENTS(levels); n++)
			if ((int64_t)levels[n].level == *number_at(from, k))
				level = levels[n].name;
		if (k->type == CONFIG_LEVEL)
			fprintf(out, "%s = %s\n", k->name, level);
		else
			print_number(k, *number_at(from, k), out);
	}
}
