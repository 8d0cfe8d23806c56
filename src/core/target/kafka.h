/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of calls that are Kafka messages. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;

#define KAFKA_TARGET_MAX 2048
#define KAFKA_BROKERS_MAX 32
#define KAFKA_TOPIC_MAX 249 /* limit of the brokers */
#define KAFKA_KEY_MAX 4096
#define KAFKA_BROKER_MAX 280 /* HOST:PORT */

/* Checks of the fields. They set *e with the field. */
bool kafka_target_check(const char *text, struct err *e); /* BROKER[:PORT],…/TOPIC */
bool kafka_mechanism_check(const char *text, struct err *e);

/* The topic of a valid target, and the length of its broker list. */
const char *kafka_target_topic(const char *target, size_t *ret_brokers);

/*
 * The host of the next broker of a valid target, from *at on, without port and brackets. *at moves behind the broker. False:
 * there is none.
 */
bool kafka_broker_next(const char *target, size_t *at, char *ret_host, size_t size);
