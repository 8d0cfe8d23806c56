/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are HTTP requests: one libcurl transfer per call. */
#pragma once

struct net_call_type;

extern const struct net_call_type http_call_type;
