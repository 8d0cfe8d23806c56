/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a Kafka producer. */
#pragma once
#include <librdkafka/rdkafka.h>

struct err;
struct kafka_guard;
struct kafka_target;

rd_kafka_conf_t *kafka_conf_new(const struct kafka_target *t, struct kafka_guard *guard /* borrowed */, struct err *e);
/* Starts the producer and frees the configuration. NULL: *e has the reason. */
rd_kafka_t *kafka_conf_open(rd_kafka_conf_t *conf, struct err *e);
