/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Kafka cluster of librdkafka's mock brokers, for tests. The arguments are topics. The first line of the output is 'brokers
 * HOST:PORT,…'. Each message in one of the topics is a line 'message TOPIC PARTITION OFFSET KEY VALUE NAME=VALUE…' with key
 * and values in hexadecimal digits, '-' for a key that is absent. The lines of the input are commands, each answered by 'ok':
 *   errors API CODE N      the next N requests with this API key are answered with the error
 *   clear API              removes the errors that are left
 *   without API            the brokers do not support this API
 *   topic TOPIC CODE       metadata requests for the topic are answered with the error
 *   rtt MS                 each broker delays its answers
 *   down, up               all brokers close their connections and refuse new ones; or accept them again
 * The program ends with its input.
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BROKERS 3
#define PARTITIONS 4
#define ERRORS_MAX 64
#define WAIT_MS 50

static rd_kafka_t *client_new(rd_kafka_type_t type, const char *brokers)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *rk;

	if (brokers) {
		rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof(why));
		rd_kafka_conf_set(conf, "group.id", "test", why, sizeof(why));
		rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", why, sizeof(why));
	}
	rd_kafka_conf_set(conf, "log_level", "0", why, sizeof(why));
	rk = rd_kafka_new(type, conf, why, sizeof(why));
	if (!rk) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	return rk;
}

static void put_hex(const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		printf("%02x", ((const unsigned char *)data)[i]);
}

static void put_message(const rd_kafka_message_t *m)
{
	rd_kafka_headers_t *headers = NULL;
	const void *value;
	const char *name;
	size_t len;

	printf("message %s %d %lld ", rd_kafka_topic_name(m->rkt), (int)m->partition, (long long)m->offset);
	if (m->key)
		put_hex(m->key, m->key_len);
	else
		putchar('-');
	putchar(' ');
	put_hex(m->payload, m->len);
	if (rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
		for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
			printf(" %s=", name);
			put_hex(value, len);
		}
	putchar('\n');
}

static void command_run(rd_kafka_mock_cluster_t *cluster, const char *line)
{
	rd_kafka_resp_err_t errors[ERRORS_MAX];
	char topic[256];
	int api, code, n;

	if (sscanf(line, "errors %d %d %d", &api, &code, &n) == 3 && n <= ERRORS_MAX) {
		for (int i = 0; i < n; i++)
			errors[i] = (rd_kafka_resp_err_t)code;
		rd_kafka_mock_push_request_errors_array(cluster, (int16_t)api, (size_t)n, errors);
	} else if (sscanf(line, "clear %d", &api) == 1) {
		rd_kafka_mock_clear_request_errors(cluster, (int16_t)api);
	} else if (sscanf(line, "without %d", &api) == 1) {
		rd_kafka_mock_set_apiversion(cluster, (int16_t)api, -1, -1);
	} else if (sscanf(line, "topic %255s %d", topic, &code) == 2) {
		rd_kafka_mock_topic_set_error(cluster, topic, (rd_kafka_resp_err_t)code);
	} else if (sscanf(line, "rtt %d", &n) == 1) {
		for (int i = 1; i <= BROKERS; i++)
			rd_kafka_mock_broker_set_rtt(cluster, i, n);
	} else if (strncmp(line, "down", 4) == 0 || strncmp(line, "up", 2) == 0) {
		for (int i = 1; i <= BROKERS; i++)
			(void)(line[0] == 'd' ? rd_kafka_mock_broker_set_down(cluster, i) : rd_kafka_mock_broker_set_up(cluster, i));
	} else {
		fprintf(stderr, "unknown command: %s", line);
		exit(1);
	}
	puts("ok");
}

static void topics_read(rd_kafka_t *consumer, rd_kafka_mock_cluster_t *cluster, char **topics, int n)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n * PARTITIONS);

	for (int i = 0; i < n; i++) {
		rd_kafka_mock_topic_create(cluster, topics[i], PARTITIONS, BROKERS);
		for (int p = 0; p < PARTITIONS; p++)
			rd_kafka_topic_partition_list_add(list, topics[i], p)->offset = RD_KAFKA_OFFSET_BEGINNING;
	}
	rd_kafka_assign(consumer, list);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_poll_set_consumer(consumer);
}

int main(int argc, char **argv)
{
	rd_kafka_t *host = client_new(RD_KAFKA_PRODUCER, NULL), *consumer;
	rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(host, BROKERS);
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[512];

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	consumer = client_new(RD_KAFKA_CONSUMER, rd_kafka_mock_cluster_bootstraps(cluster));
	topics_read(consumer, cluster, argv + 1, argc - 1);
	printf("brokers %s\n", rd_kafka_mock_cluster_bootstraps(cluster));
	for (;;) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(consumer, WAIT_MS);

		if (m && !m->err)
			put_message(m);
		if (m)
			rd_kafka_message_destroy(m);
		if (poll(&input, 1, 0) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			break;
		command_run(cluster, line);
	}
	_exit(0); /* without waiting for the brokers */
}
