/* SPDX-License-Identifier: Apache-2.0 */
/* Checks broker lists, topics and SASL mechanisms. */
#include "core/target/kafka.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <string.h>

static const char topic_characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

/* Length of the host at the start of the text, with its brackets; 0: there is none. */
static size_t host_length(const char *text)
{
	size_t n;

	if (text[0] != '[')
		return strspn(text, topic_characters);
	n = strspn(text + 1, "0123456789abcdefABCDEF:.");
	return n > 1 && text[n + 1] == ']' ? n + 2 : 0;
}

/* Length of HOST[:PORT] at the start of the text; 0: it is not one. */
static size_t broker_length(const char *text)
{
	size_t n = host_length(text), digits;

	if (n == 0 || n > KAFKA_BROKER_MAX - 8 || text[n] != ':')
		return n > KAFKA_BROKER_MAX - 8 ? 0 : n;
	digits = strspn(text + n + 1, "0123456789");
	return digits >= 1 && digits <= 5 ? n + 1 + digits : 0;
}

static bool topic_valid(const char *topic)
{
	size_t len = strlen(topic);

	return len > 0 && len <= KAFKA_TOPIC_MAX && strspn(topic, topic_characters) == len && strcmp(topic, ".") != 0 &&
		strcmp(topic, "..") != 0;
}

bool kafka_target_check(const char *text, struct err *e)
{
	const char *at = text;
	size_t brokers = 0, len;

	while ((len = broker_length(at)) > 0 && ++brokers <= KAFKA_BROKERS_MAX) {
		at += len;
		if (*at != ',')
			break;
		at++;
	}
	if (brokers == 0 || brokers > KAFKA_BROKERS_MAX || len == 0 || *at != '/')
		return err_field(e, "kafka", "'%.200s' is not BROKERS/TOPIC, as kafka1.example.org:9092,kafka2.example.org:9092/orders", text);
	if (!topic_valid(at + 1))
		return err_field(e, "kafka", "'%.200s' is not a topic: up to %d letters, digits, '.', '_' and '-'", at + 1, KAFKA_TOPIC_MAX);
	return true;
}

bool kafka_mechanism_check(const char *text, struct err *e)
{
	static const char *const known[] = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"};

	for (size_t i = 0; i < ELEMENTS(known); i++)
		if (strcmp(text, known[i]) == 0)
			return true;
	return err_field(e, "sasl", "'%.40s' is not PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", text);
}

const char *kafka_target_topic(const char *target, size_t *ret_brokers)
{
	size_t len = strcspn(target, "/");

	*ret_brokers = len;
	return target + len + (target[len] == '/');
}

bool kafka_broker_next(const char *target, size_t *at, char *ret_host, size_t size)
{
	const char *from = target + *at;
	size_t len = broker_length(from), host = host_length(from);
	bool brackets = *from == '[';

	if (len == 0 || host >= size)
		return false;
	*at += len + (from[len] == ',');
	memcpy(ret_host, from + brackets, host - 2 * brackets);
	ret_host[host - 2 * brackets] = '\0';
	return true;
}
