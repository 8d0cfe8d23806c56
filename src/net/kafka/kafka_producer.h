/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka producers, shared by the calls with the same brokers, credentials and time limit. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct kafka_message;
struct kafka_producers;
struct sd_event;

struct kafka_target { /* all borrowed; NULL: none */
	const char *brokers;
	const char *allow;     /* http-allow */
	const char *sasl;      /* mechanism */
	const struct buf *user, *password;
	bool tls;
	const struct buf *ca, *cert, *key;
	usec_t timeout;        /* from the acceptance of a message to its delivery report */
};

struct kafka_record { /* borrowed */
	const char *topic;
	const char *key;            /* NULL: none */
	const void *value;
	size_t value_len;
	char *const *headers;       /* Name: value */
	size_t headers_n;
};

/* How a message ended. */
struct kafka_report {
	int code;          /* rd_kafka_resp_err_t; 0: the brokers have the message */
	const char *error;
	bool refused;      /* an address of a broker was refused */
	int32_t partition;
	int64_t offset;
};

typedef void kafka_ended_fn(void *owner, const struct kafka_report *r);

bool kafka_producers_new(struct sd_event *ev /* borrowed */, kafka_ended_fn *fn, struct kafka_producers **ret, struct err *e);
void kafka_producers_free(struct kafka_producers *all); /* waits a few seconds at most */
AUTO_DEFINE(kafka_producers);

/*
 * Queues a copy of the record. The function 'fn' is called once with the owner, later and from the loop, unless the message is
 * dropped before. False: *ret_code is the error of librdkafka, or 0 if there is no producer.
 */
bool kafka_producers_send(struct kafka_producers *all, const struct kafka_target *t, const struct kafka_record *r, void *owner,
	struct kafka_message **ret, int *ret_code, struct err *e);
/* Why the message has not been delivered yet. The text is valid until the next event. */
void kafka_message_explain(struct kafka_message *m, struct kafka_report *ret);
/*
 * The owner no longer wants the message. It is not sent if that has not happened yet. Other messages of the same producer may
 * end with RD_KAFKA_RESP_ERR__PURGE_QUEUE or RD_KAFKA_RESP_ERR__PURGE_INFLIGHT; their owners send them again.
 */
void kafka_message_drop(struct kafka_message *m);
