/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that invoke AWS Lambda functions. */
#pragma once

struct net_call_type;

extern const struct net_call_type lambda_call_type;
