/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the daemon to S3-compatible storage. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct aws_credentials;
struct err;
struct request;
struct s3_requests;
struct sd_event;

bool s3_requests_new(struct sd_event *ev /* borrowed */, struct aws_credentials *keys /* borrowed */, struct s3_requests **ret,
	struct err *e);
void s3_requests_free(struct s3_requests *all);
AUTO_DEFINE(s3_requests);

/* Ends the request later through request_end(). False: the payload is not valid. */
bool s3_request_start(struct request *r, struct s3_requests *all, struct err *e);
void s3_request_drop(struct request *r); /* ends its work without request_end() */
