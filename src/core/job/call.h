/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: jobs that are requests of jobsched-net instead of commands. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job_spec;

enum call_kind { CALL_NONE /* a command */, CALL_HTTP, CALL_KAFKA, CALL_LAMBDA, CALL_KIND_MAX };
enum call_kind call_kind_of(const struct job_spec *s);

#define CALL_URL_MAX 4096
#define CALL_HEADERS_MAX 32
#define CALL_SIGN_MAX 4
#define CALL_BODY_MAX (1 << 20)

/* Checks of the fields. They set *e with the field. */
bool call_method_check(const char *text, struct err *e);
bool call_url_check(const char *text, struct err *e);
bool call_header_check(const char *text, struct err *e);
bool call_statuses_check(const char *text, struct err *e);
bool call_pattern_check(const char *text, struct err *e);
bool call_secret_name_check(const char *text, struct err *e);

/* Checks that involve several fields: a call has no command, and each secret it uses is declared. */
bool call_check(const struct job_spec *s, struct err *e);

/*
 * Whether the job may be submitted: an address in its URL or broker list is not refused by the guard ('allow': http-allow; NULL:
 * empty; with a proxy the guard does not apply to URLs), and a call of root has no secrets, because files of root are opened for
 * approved commands only. A host name is not resolved: its addresses are checked at each connection. The owner may invoke the
 * Lambda function.
 */
struct call_rules {
	const char *allow;
	bool proxy, of_root;
	const char *functions; /* lambda-functions; NULL: none */
	bool callbacks; /* asynchronous calls are possible */
	const char *buckets; /* of artifacts in S3-compatible storage; NULL: none */
};
bool call_submission_check(const struct job_spec *s, const struct call_rules *r, const char *owner, struct err *e);

/*
 * The host of a URL that call_url_check() accepted, without brackets. False: it does not fit, or it contains a
 * reference to a secret.
 */
bool call_url_host(const char *url, char *ret, size_t size);

/*
 * Classifies a status. 'expected': a list of statuses that mean success; NULL: 200-299. 408, 425, 429
 * and 5xx are temporary; other statuses are final.
 */
enum call_verdict { CALL_SUCCEEDED, CALL_TEMPORARY, CALL_FINAL };
enum call_verdict call_status_judge(const char *expected, int status);

/*
 * The next reference {secret:NAME} in the text, from *at on. *at moves behind it. False: there is
 * none.
 */
bool call_secret_next(const char *text, size_t *at, size_t *ret_from, const char **ret_name,
	size_t *ret_len);
