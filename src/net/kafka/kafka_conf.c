/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a target into properties of librdkafka. */
#include "net/kafka/kafka_conf.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "net/kafka/kafka_guard.h"
#include "net/kafka/kafka_producer.h"
#include <inttypes.h>

#define TOPIC_WAIT_MS 10000 /* for the creation of a topic, before it counts as unknown */

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text; /* errors are reported with the call */
}

struct property {
	const char *name, *value; /* NULL: not set */
};

static bool properties_set(rd_kafka_conf_t *conf, const struct property *list, size_t n, struct err *e)
{
	char text[256];

	for (size_t i = 0; i < n; i++)
		if (list[i].value &&
			rd_kafka_conf_set(conf, list[i].name, list[i].value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
			return err_set(e, ERR_INVALID, "librdkafka refuses '%s': %s", list[i].name, text);
	return true;
}

static const char *secret_text(const struct buf *b)
{
	return b ? b->data ? b->data : "" : NULL;
}

static bool target_set(rd_kafka_conf_t *conf, const struct kafka_target *t, struct err *e)
{
	int64_t ms = t->timeout / USEC_MSEC > 1 ? t->timeout / USEC_MSEC : 1;
	int64_t wait = ms / 2 < TOPIC_WAIT_MS ? ms / 2 : TOPIC_WAIT_MS;
	AUTO_TEXT timeout = xprintf("%" PRId64, ms);
	AUTO_TEXT topic_wait = xprintf("%" PRId64, wait);
	const struct property list[] = {
		{"bootstrap.servers", t->brokers},
		{"client.id", "jobsched"},
		{"enable.idempotence", "true"}, /* retries of librdkafka neither repeat nor reorder messages */
		{"acks", "all"},
		{"linger.ms", "0"},
		{"message.timeout.ms", timeout},
		{"message.max.bytes", "4000000"}, /* the brokers have their own limit */
		{"topic.metadata.propagation.max.ms", topic_wait},
		{"security.protocol", t->sasl ? t->tls ? "sasl_ssl" : "sasl_plaintext" : t->tls ? "ssl" : "plaintext"},
		{"sasl.mechanisms", t->sasl},
		{"sasl.username", secret_text(t->user)},
		{"sasl.password", secret_text(t->password)},
		{"ssl.ca.pem", secret_text(t->ca)},
		{"ssl.certificate.pem", secret_text(t->cert)},
		{"ssl.key.pem", secret_text(t->key)},
		{"ssl.endpoint.identification.algorithm", t->tls ? "https" : NULL},
	};

	return properties_set(conf, list, ELEMENTS(list), e);
}

rd_kafka_conf_t *kafka_conf_new(const struct kafka_target *t, struct kafka_guard *guard, struct err *e)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	rd_kafka_conf_set_opaque(conf, guard);
	rd_kafka_conf_set_connect_cb(conf, kafka_guard_connect);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
	if (target_set(conf, t, e))
		return conf;
	rd_kafka_conf_destroy(conf);
	return NULL;
}

rd_kafka_t *kafka_conf_open(rd_kafka_conf_t *conf, struct err *e)
{
	char text[256];
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));

	if (!rk) {
		err_set(e, ERR_INVALID, "could not start a Kafka producer: %s", text);
		rd_kafka_conf_destroy(conf);
	}
	return rk;
}
