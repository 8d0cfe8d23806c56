/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the credential provider that need no network. */
#pragma once
#include <stdbool.h>

struct aws_keys;
struct err;

/* False without an error: this source has no keys. */
bool aws_sources_environment(struct aws_keys *ret, struct err *e);
bool aws_sources_file(struct aws_keys *ret, struct err *e);

/* The keys of one section of a credentials file. False: see *e. */
bool aws_sources_profile(const char *text, const char *profile, struct aws_keys *ret, struct err *e);
/* The answer of a container or instance endpoint, a JSON object. */
bool aws_sources_json(const char *text, struct aws_keys *ret, struct err *e);

/* URL of the container endpoint; NULL: there is none. The caller frees it. */
char *aws_sources_container_url(void);
/* Value of its Authorization header; NULL without an error: none. The caller frees it. */
char *aws_sources_container_token(struct err *e);
/* URL of the metadata service without a slash at the end; NULL: it is disabled. The caller frees it. */
char *aws_sources_instance_url(void);
