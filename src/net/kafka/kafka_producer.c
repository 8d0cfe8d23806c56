/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, shares and closes the producers of librdkafka; passes their delivery reports to the loop. */
#include "net/kafka/kafka_producer.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/text.h"
#include "net/kafka/kafka_conf.h"
#include "net/kafka/kafka_guard.h"
#include "net/net_frame.h"
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>

#define IDLE_LIMIT (5 * USEC_MIN)   /* a producer without messages is closed after this time */
#define IDLE_CHECK (30 * USEC_SEC)
#define PRODUCERS_MAX 32            /* each has a thread per broker */
#define EXIT_WAIT_MS 3000           /* at the end of the process */
#define EXIT_STEP_MS 10

struct producer {
	struct kafka_producers *all;      /* borrowed */
	unsigned char id[SHA256_LEN];     /* of the target, with its secrets */
	rd_kafka_t *rk;                   /* owned */
	rd_kafka_queue_t *queue;          /* owned */
	struct kafka_guard guard;         /* used by the threads of librdkafka */
	int wakeup;                       /* owned; librdkafka writes to it when the queue has an event */
	sd_event_source *source;
	struct kafka_message *messages;
	usec_t idle_since;                /* boottime; 0: it has messages */
	bool retired;                     /* closed when it has no more messages */
	bool serving;                     /* its events are being handled */
	char error[256];                  /* the last error of a connection */
	struct producer *next;
};

struct kafka_message {
	struct producer *producer; /* borrowed */
	void *owner;               /* NULL: dropped */
	struct kafka_message *next;
};

struct kafka_producers {
	sd_event *ev;              /* borrowed */
	kafka_ended_fn *fn;
	struct producer *first;
	size_t n;
	sd_event_source *idle_timer;
	atomic_int closing;        /* threads that close producers */
};

/* ---- close ---- */

static void producer_free(struct producer *p)
{
	struct kafka_message *next;

	if (p->queue)
		rd_kafka_queue_destroy(p->queue);
	if (p->rk)
		rd_kafka_destroy(p->rk); /* after this, no callback uses the guard */
	for (struct kafka_message *m = p->messages; m; m = next) {
		next = m->next;
		free(m);
	}
	kafka_guard_done(&p->guard);
	auto_fd_close(&p->wakeup);
	free(p);
}

static void *close_thread(void *arg)
{
	struct producer *p = arg;
	atomic_int *closing = &p->all->closing;

	producer_free(p);
	atomic_fetch_sub(closing, 1);
	return NULL;
}

/* A thread closes it, because librdkafka waits for its own threads, and these may be resolving names. */
static void producer_close(struct producer *p)
{
	struct kafka_producers *all = p->all;
	pthread_attr_t attr;
	pthread_t t;

	for (struct producer **at = &all->first; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			all->n--;
			break;
		}
	p->source = sd_event_source_disable_unref(p->source);
	rd_kafka_queue_io_event_enable(p->queue, -1, NULL, 0);
	atomic_fetch_add(&all->closing, 1);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &attr, close_thread, p) != 0)
		close_thread(p);
	pthread_attr_destroy(&attr);
}

static void producer_check_use(struct producer *p)
{
	if (p->messages) {
		p->idle_since = 0;
		return;
	}
	if (!p->idle_since)
		p->idle_since = clock_boot(&clock_system);
	if (p->retired && !p->serving)
		producer_close(p);
}

static int on_idle(sd_event_source *source, uint64_t usec, void *arg)
{
	struct kafka_producers *all = arg;
	usec_t now = clock_boot(&clock_system);
	struct producer *next;

	(void)usec;
	for (struct producer *p = all->first; p; p = next) {
		next = p->next;
		if (p->idle_since && now - p->idle_since >= IDLE_LIMIT)
			producer_close(p);
	}
	sd_event_source_set_time_relative(source, IDLE_CHECK);
	sd_event_source_set_enabled(source, all->first ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
	return 0;
}

/* ---- reports ---- */

static void message_end(struct kafka_message *m, const struct kafka_report *r)
{
	struct producer *p = m->producer;
	kafka_ended_fn *fn = p->all->fn;
	void *owner = m->owner;

	for (struct kafka_message **at = &p->messages; *at; at = &(*at)->next)
		if (*at == m) {
			*at = m->next;
			break;
		}
	free(m);
	if (owner)
		fn(owner, r);
}

/* Ends all messages. Returns false, because the producer cannot be used again. */
static bool producer_fail(struct producer *p, const struct kafka_report *r)
{
	p->retired = true;
	for (struct kafka_message *m = p->messages; m; m = m->next) {
		void *owner = m->owner;

		m->owner = NULL; /* librdkafka still has the message */
		if (owner)
			p->all->fn(owner, r);
	}
	return false;
}

void kafka_message_explain(struct kafka_message *m, struct kafka_report *ret)
{
	struct producer *p = m->producer;
	char refused[KAFKA_GUARD_TEXT];

	*ret = (struct kafka_report){.code = RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, .refused = kafka_guard_refused(&p->guard, refused)};
	if (ret->refused)
		net_frame_text(p->error, sizeof(p->error), refused);
	ret->error = p->error[0] ? p->error : "the brokers did not acknowledge the message in time";
}

static void on_delivery(struct producer *p, const rd_kafka_message_t *m)
{
	struct kafka_report r = {.code = m->err, .partition = m->partition, .offset = m->offset};

	r.error = m->err ? rd_kafka_err2str(m->err) : NULL;
	if (m->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
		kafka_message_explain(m->_private, &r);
	/* the next call asks the brokers again whether the topic exists */
	if (m->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || m->err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
		m->err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || rd_kafka_fatal_error(p->rk, NULL, 0))
		p->retired = true;
	if (!m->err)
		p->error[0] = '\0';
	message_end(m->_private, &r);
}

/* False: the producer cannot be used again. */
static bool on_error(struct producer *p, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t code = rd_kafka_event_error(event);
	char text[KAFKA_GUARD_TEXT];
	struct kafka_report r = {.code = code, .error = text};

	if (rd_kafka_event_error_is_fatal(event)) {
		r.code = rd_kafka_fatal_error(p->rk, text, sizeof(text));
		return producer_fail(p, &r);
	}
	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		r.refused = kafka_guard_refused(&p->guard, text);
		return !r.refused || producer_fail(p, &r);
	}
	net_frame_text(p->error, sizeof(p->error), rd_kafka_event_error_string(event));
	net_frame_text(text, sizeof(text), p->error);
	if (code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
		return producer_fail(p, &r);
	return true;
}

static bool event_handle(struct producer *p, rd_kafka_event_t *event)
{
	const rd_kafka_message_t *m;

	switch (rd_kafka_event_type(event)) {
	case RD_KAFKA_EVENT_DR:
		while ((m = rd_kafka_event_message_next(event)))
			on_delivery(p, m);
		return true;
	case RD_KAFKA_EVENT_ERROR:
		return on_error(p, event);
	default:
		return true;
	}
}

static int on_producer_events(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct producer *p = arg;
	rd_kafka_event_t *event;
	uint64_t count;

	(void)source;
	(void)events;
	(void)!read(fd, &count, sizeof(count));
	p->serving = true;
	while ((event = rd_kafka_queue_poll(p->queue, 0))) {
		bool open = event_handle(p, event);

		rd_kafka_event_destroy(event);
		if (!open) {
			producer_close(p);
			return 0;
		}
	}
	p->serving = false;
	producer_check_use(p);
	return 0;
}

/* ---- open ---- */

static void id_add(struct sha256 *s, const void *data, size_t len)
{
	uint64_t n = len;

	sha256_add(s, &n, sizeof(n));
	sha256_add(s, data ? data : "", len);
}

static void id_of_target(const struct kafka_target *t, unsigned char id[SHA256_LEN])
{
	const char *const texts[] = {t->brokers, t->allow, t->sasl};
	const struct buf *const secrets[] = {t->user, t->password, t->ca, t->cert, t->key};
	struct sha256 s;

	sha256_init(&s);
	for (size_t i = 0; i < ELEMENTS(texts); i++)
		id_add(&s, texts[i], texts[i] ? strlen(texts[i]) : 0);
	for (size_t i = 0; i < ELEMENTS(secrets); i++)
		id_add(&s, secrets[i] ? secrets[i]->data : NULL, secrets[i] ? secrets[i]->len : 0);
	id_add(&s, &t->tls, sizeof(t->tls));
	id_add(&s, &t->timeout, sizeof(t->timeout));
	sha256_end(&s, id);
}

static bool producer_watch(struct producer *p, struct err *e)
{
	static const uint64_t one = 1;
	int r;

	p->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wakeup < 0)
		return err_errno(e, errno, "could not make an event descriptor");
	r = sd_event_add_io(p->all->ev, &p->source, p->wakeup, EPOLLIN, on_producer_events, p);
	if (r < 0)
		return err_errno(e, -r, "could not watch an event descriptor");
	p->queue = rd_kafka_queue_get_main(p->rk);
	rd_kafka_queue_io_event_enable(p->queue, p->wakeup, &one, sizeof(one));
	/* librdkafka reports the first event of an empty queue only, and the queue may have one already */
	(void)!write(p->wakeup, &one, sizeof(one));
	return true;
}

static bool producer_open(struct kafka_producers *all, const struct kafka_target *t, struct producer **ret, struct err *e)
{
	struct producer *p = xcalloc(1, sizeof(*p));
	rd_kafka_conf_t *conf;

	p->all = all;
	p->wakeup = -1;
	id_of_target(t, p->id);
	kafka_guard_init(&p->guard, t->allow);
	conf = kafka_conf_new(t, &p->guard, e);
	p->rk = conf ? kafka_conf_open(conf, e) : NULL;
	if (!p->rk || !producer_watch(p, e)) {
		p->source = sd_event_source_disable_unref(p->source);
		producer_free(p);
		return false;
	}
	p->next = all->first;
	all->first = p;
	if (all->n++ == 0) {
		sd_event_source_set_time_relative(all->idle_timer, IDLE_CHECK);
		sd_event_source_set_enabled(all->idle_timer, SD_EVENT_ONESHOT);
	}
	*ret = p;
	return true;
}

/* Makes room for one more. */
static bool oldest_close(struct kafka_producers *all, struct err *e)
{
	struct producer *oldest = NULL;

	if (all->n < PRODUCERS_MAX)
		return true;
	for (struct producer *p = all->first; p; p = p->next)
		if (p->idle_since && (!oldest || p->idle_since < oldest->idle_since))
			oldest = p;
	if (!oldest)
		return err_set(e, ERR_BUSY, "jobsched-net has connections to too many Kafka clusters");
	producer_close(oldest);
	return true;
}

static struct producer *producer_get(struct kafka_producers *all, const struct kafka_target *t, struct err *e)
{
	unsigned char id[SHA256_LEN];
	struct producer *p = all->first;

	id_of_target(t, id);
	while (p && (p->retired || memcmp(p->id, id, sizeof(id)) != 0))
		p = p->next;
	if (!p && !(oldest_close(all, e) && producer_open(all, t, &p, e)))
		return NULL;
	return p;
}

/* ---- messages ---- */

static rd_kafka_headers_t *record_headers(const struct kafka_record *r)
{
	rd_kafka_headers_t *h = rd_kafka_headers_new(r->headers_n);

	for (size_t i = 0; i < r->headers_n; i++) {
		size_t name = strcspn(r->headers[i], ":");
		const char *value = r->headers[i] + name + (r->headers[i][name] == ':');

		value += strspn(value, " \t");
		rd_kafka_header_add(h, r->headers[i], (ssize_t)name, value, -1);
	}
	return h;
}

bool kafka_producers_send(struct kafka_producers *all, const struct kafka_target *t, const struct kafka_record *r, void *owner,
	struct kafka_message **ret, int *ret_code, struct err *e)
{
	struct producer *p = producer_get(all, t, e);
	rd_kafka_headers_t *headers;
	struct kafka_message *m;
	rd_kafka_resp_err_t code;

	*ret_code = 0;
	if (!p)
		return false;
	headers = record_headers(r);
	m = xcalloc(1, sizeof(*m));
	*m = (struct kafka_message){.producer = p, .owner = owner, .next = p->messages};
	code = rd_kafka_producev(p->rk, RD_KAFKA_V_TOPIC(r->topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
		RD_KAFKA_V_KEY(r->key, r->key ? strlen(r->key) : 0), RD_KAFKA_V_VALUE((void *)r->value, r->value_len),
		RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(m), RD_KAFKA_V_END);
	if (code) {
		rd_kafka_headers_destroy(headers);
		free(m);
		*ret_code = code;
		p->retired |= code != RD_KAFKA_RESP_ERR__QUEUE_FULL && code != RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
		producer_check_use(p);
		return err_set(e, ERR_INVALID, "%s", rd_kafka_err2str(code));
	}
	p->messages = m;
	p->idle_since = 0;
	*ret = m;
	return true;
}

void kafka_message_drop(struct kafka_message *m)
{
	m->owner = NULL;
	rd_kafka_purge(m->producer->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* ---- all producers ---- */

bool kafka_producers_new(struct sd_event *ev, kafka_ended_fn *fn, struct kafka_producers **ret, struct err *e)
{
	AUTO(kafka_producers) *all = xcalloc(1, sizeof(*all));
	int r = sd_event_add_time(ev, &all->idle_timer, CLOCK_BOOTTIME, 0, USEC_SEC, on_idle, all);

	all->ev = ev;
	all->fn = fn;
	if (r < 0 || (r = sd_event_source_set_enabled(all->idle_timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	*ret = STEAL(all);
	return true;
}

void kafka_producers_free(struct kafka_producers *all)
{
	if (!all)
		return;
	while (all->first)
		producer_close(all->first);
	for (int ms = 0; ms < EXIT_WAIT_MS && atomic_load(&all->closing) > 0; ms += EXIT_STEP_MS)
		usleep(EXIT_STEP_MS * 1000);
	sd_event_source_disable_unref(all->idle_timer);
	if (atomic_load(&all->closing) == 0)
		free(all); /* otherwise a thread still counts down in it */
}
