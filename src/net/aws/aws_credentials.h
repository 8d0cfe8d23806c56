/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials for AWS and compatible services, found as the AWS tools find them. */
/*
 * The sources, in this order, are named by the environment of jobsched-net:
 *   environment   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *   file          AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials, section AWS_PROFILE or 'default'
 *   container     AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI, with AWS_CONTAINER_AUTHORIZATION_TOKEN or _TOKEN_FILE
 *   instance      the metadata service of the machine (IMDSv2), unless AWS_EC2_METADATA_DISABLED is 'true';
 *                 AWS_EC2_METADATA_SERVICE_ENDPOINT replaces its address
 * Keys are cached until five minutes before they expire; keys of a file for a minute.
 */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>

struct aws_credentials;
struct err;
struct sd_event;

struct aws_keys {
	char *id, *secret;  /* owned */
	char *token;        /* owned; NULL: none */
	usec_t expires_at;  /* wall clock; USEC_NEVER: not known */
};
void aws_keys_done(struct aws_keys *k); /* overwrites the secret */

bool aws_credentials_new(struct sd_event *ev /* borrowed */, struct aws_credentials **ret, struct err *e);
void aws_credentials_free(struct aws_credentials *c); /* waiting callbacks are not called */
AUTO_DEFINE(aws_credentials);

/* The keys are borrowed for the time of the call; NULL: 'e' has the reason. */
typedef void aws_credentials_fn(const struct aws_keys *k, const struct err *e, void *arg);
/* Calls 'fn' once: at once if the keys are in the cache, otherwise later from the loop or at once. Never blocks on the network. */
void aws_credentials_get(struct aws_credentials *c, aws_credentials_fn *fn, void *arg);
void aws_credentials_cancel(struct aws_credentials *c, const void *arg); /* 'fn' with this argument is not called any more */
/* A service has refused the keys: the next aws_credentials_get() reads them again, at most once every ten seconds. */
void aws_credentials_refused(struct aws_credentials *c);
