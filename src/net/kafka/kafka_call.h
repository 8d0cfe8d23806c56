/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are Kafka messages. */
#pragma once

struct net_call_type;

extern const struct net_call_type kafka_call_type;
