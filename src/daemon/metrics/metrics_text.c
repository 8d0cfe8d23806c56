/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the families and samples of metrics. */
#include "daemon/metrics/metrics_text.h"
#include "base/buf.h"
#include "base/text.h"
#include "daemon/metrics/metrics.h"
#include "store/read/metric_counts.h"
#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* ---- Accept ---- */

#define Q_MAX 1000 /* thousandths */

/* "0.5" in thousandths; an invalid weight is 0. */
static int weight_parse(const char *text, size_t len)
{
	int q = 0, digit = 100;

	if (len == 0 || (text[0] != '0' && text[0] != '1') || (len > 1 && text[1] != '.') || len > 5)
		return 0;
	q = text[0] == '1' ? Q_MAX : 0;
	for (size_t i = 2; i < len; i++, digit /= 10) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		q += digit * (text[i] - '0');
	}
	return q > Q_MAX ? 0 : q;
}

/* One element of an Accept header. */
struct media {
	const char *type;
	size_t type_len;
	const char *version; /* NULL: none */
	size_t version_len;
	int q;
};

static size_t trim(const char **text, size_t len)
{
	while (len > 0 && ((*text)[0] == ' ' || (*text)[0] == '\t')) {
		++*text;
		len--;
	}
	while (len > 0 && ((*text)[len - 1] == ' ' || (*text)[len - 1] == '\t'))
		len--;
	return len;
}

static void media_param(struct media *m, const char *text, size_t len)
{
	len = trim(&text, len);
	if (len > 2 && strncasecmp(text, "q=", 2) == 0) {
		m->q = weight_parse(text + 2, len - 2);
	} else if (len > 8 && strncasecmp(text, "version=", 8) == 0) {
		m->version = text + 8;
		m->version_len = len - 8;
	}
}

static struct media media_parse(const char *text, size_t len)
{
	size_t end = strcspn(text, ";,");
	struct media m = {.type = text, .q = Q_MAX};

	if (end > len)
		end = len;
	m.type_len = trim(&m.type, end);
	while (end < len) {
		size_t from = end + 1;

		end = from + strcspn(text + from, ";,");
		if (end > len)
			end = len;
		media_param(&m, text + from, end - from);
	}
	return m;
}

static bool media_is(const struct media *m, const char *type)
{
	return m->type_len == strlen(type) && strncasecmp(m->type, type, m->type_len) == 0;
}

static bool version_is(const struct media *m, const char *version)
{
	return m->version_len == strlen(version) && strncmp(m->version, version, m->version_len) == 0;
}

enum metrics_format metrics_text_negotiate(const char *accept)
{
	int text = 0, open = 0;

	while (accept && *accept) {
		size_t len = strcspn(accept, ",");
		struct media m = media_parse(accept, len);

		if (media_is(&m, "application/openmetrics-text") && m.q > open &&
			(!m.version || version_is(&m, "1.0.0") || version_is(&m, "0.0.1")))
			open = m.q;
		if ((media_is(&m, "text/plain") || media_is(&m, "text/*") || media_is(&m, "*/*")) && m.q > text)
			text = m.q;
		accept += len + (accept[len] == ',');
	}
	return open > 0 && open >= text ? METRICS_OPENMETRICS : METRICS_TEXT;
}

const char *metrics_text_type(enum metrics_format f)
{
	return f == METRICS_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
					: "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- samples ---- */

struct writer {
	struct buf *out;
	enum metrics_format format;
	const struct metric_desc *desc;
};

static void write_head(const struct writer *w)
{
	static const char *const types[] = {[METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge",
		[METRIC_HISTOGRAM] = "histogram", [METRIC_INFO] = "info"};
	const struct metric_desc *d = w->desc;
	bool open = w->format == METRICS_OPENMETRICS;
	const char *suffix = open ? "" : d->type == METRIC_COUNTER ? "_total" : d->type == METRIC_INFO ? "_info" : "";
	const char *type = !open && d->type == METRIC_INFO ? "gauge" : types[d->type];

	buf_printf(w->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", d->name, suffix, d->help, d->name, suffix, type);
	if (open && d->unit)
		buf_printf(w->out, "# UNIT %s %s\n", d->name, d->unit);
}

/* Exact: the stored number with the decimals of the divisor, without trailing zeros. */
static void write_number(struct buf *out, int64_t value, int64_t divisor)
{
	char digits[24];
	int n = 0;

	if (value == METRICS_UNKNOWN) {
		buf_str(out, "NaN");
		return;
	}
	buf_printf(out, "%s%" PRId64, value < 0 && value / divisor == 0 ? "-" : "", value / divisor);
	for (int64_t rest = value % divisor < 0 ? -(value % divisor) : value % divisor, d = divisor / 10;
		d > 0 && rest > 0; rest %= d, d /= 10)
		digits[n++] = (char)('0' + rest / d);
	if (n > 0) {
		buf_char(out, '.');
		buf_add(out, digits, (size_t)n);
	}
}

static void write_label(struct buf *out, const char *name, const char *value, bool *any)
{
	buf_printf(out, "%s%s=\"", *any ? "," : "{", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			buf_char(out, '\\');
		if (*value == '\n')
			buf_str(out, "\\n");
		else
			buf_char(out, *value);
	}
	buf_char(out, '"');
	*any = true;
}

static void write_sample(const struct writer *w, const char *suffix, const char *labels, int64_t value, int64_t divisor)
{
	buf_printf(w->out, "%s%s%s ", w->desc->name, suffix, labels);
	write_number(w->out, value, divisor);
	buf_char(w->out, '\n');
}

static void write_histogram(const struct writer *w, struct buf *labels, const int64_t *cells)
{
	const struct metric_desc *d = w->desc;
	size_t n = metric_bucket_count(d);
	int64_t count = 0;

	for (size_t b = 0; b <= n; b++) {
		count += cells[b];
		buf_printf(w->out, "%s_bucket", d->name);
		if (labels->len > 0) {
			buf_add(w->out, labels->data, labels->len - 1);
			buf_str(w->out, ",le=\"");
		} else {
			buf_str(w->out, "{le=\"");
		}
		if (b < n)
			write_number(w->out, d->buckets[b], d->divisor);
		else
			buf_str(w->out, "+Inf");
		if (b < n && d->buckets[b] % d->divisor == 0) /* the canonical form of OpenMetrics */
			buf_str(w->out, ".0");
		buf_printf(w->out, "\"} %" PRId64 "\n", count);
	}
	write_sample(w, "_sum", labels->len ? labels->data : "", cells[n + 1], d->divisor);
	write_sample(w, "_count", labels->len ? labels->data : "", count, 1);
}

/* False: the labels have no series for these values. */
static bool write_labels(struct buf *out, const struct metric_desc *d, const struct metrics *m, const size_t at[2])
{
	bool any = false;

	for (int k = 0; k < 2 && d->labels[k]; k++) {
		const struct metric_label *l = d->labels[k];
		const char *value = l->value(m, at[k], 0);

		if (!value)
			return false;
		write_label(out, l->name, value, &any);
		if (l->second)
			write_label(out, l->second, l->value(m, at[k], 1), &any);
	}
	if (any)
		buf_char(out, '}');
	return true;
}

static void write_family(const struct writer *w, const struct metrics_snapshot *s, enum metric id)
{
	const struct metrics *m = metrics_snapshot_source(s);
	const struct metric_desc *d = w->desc;
	const int64_t *cells = metrics_snapshot_cells(s, id);
	size_t first = metric_label_count(d, 0, metrics_routes(m)), second = metric_label_count(d, 1, metrics_routes(m));

	for (size_t i = 0; i < first; i++)
		for (size_t j = 0; j < second; j++, cells += metric_width(d)) {
			AUTO_DONE(buf) labels = {};

			if (!write_labels(&labels, d, m, (const size_t[]){i, j}))
				continue;
			if (d->type == METRIC_HISTOGRAM)
				write_histogram(w, &labels, cells);
			else
				write_sample(w, d->type == METRIC_COUNTER ? "_total" : "",
					labels.len ? labels.data : "", *cells, d->divisor);
		}
}

/* ---- series of type info, of queues and of jobs ---- */

static void write_info(const struct writer *w, enum metric id, const struct metrics_text_labels *l)
{
	bool any = false;

	buf_printf(w->out, "%s_info", w->desc->name);
	if (id == METRIC_BUILD) {
		write_label(w->out, "version", l->version, &any);
	} else {
		write_label(w->out, "node", l->node, &any);
		write_label(w->out, "backend", l->backend, &any);
	}
	buf_str(w->out, "} 1\n");
}

static void write_queues(const struct writer *w, enum metric id, const struct metric_counts *c)
{
	for (size_t i = 0; i < c->n_queues; i++) {
		bool any = false;

		buf_str(w->out, w->desc->name);
		write_label(w->out, "queue", c->queues[i].name, &any);
		buf_printf(w->out, "} %" PRId64 "\n", id == METRIC_QUEUE_QUEUED ? c->queues[i].queued : c->queues[i].active);
	}
}

static int64_t job_value(const struct metric_job *j, enum metric id)
{
	switch (id) {
	case METRIC_JOB_SUCCESS:
		return j->success_at;
	case METRIC_JOB_FAILURE:
		return j->failure_at;
	case METRIC_JOB_MISSED:
		return j->missed_at;
	case METRIC_JOB_NEXT:
		return j->next;
	default:
		return j->took;
	}
}

static void write_jobs(const struct writer *w, enum metric id, const struct metric_counts *c)
{
	for (size_t i = 0; i < c->n_jobs; i++) {
		const struct metric_job *j = &c->jobs[i];
		bool any = false;

		buf_printf(w->out, "%s{job=\"%" PRId64 "\"", w->desc->name, j->id);
		any = true;
		write_label(w->out, "name", j->name ? j->name : "", &any);
		write_label(w->out, "owner", j->owner ? j->owner : "", &any);
		buf_str(w->out, "} ");
		write_number(w->out, job_value(j, id), w->desc->divisor);
		buf_char(w->out, '\n');
	}
}

void metrics_text_write(struct buf *out, enum metrics_format f, const struct metrics_snapshot *s,
	const struct metric_counts *counts, const struct metrics_text_labels *labels)
{
	for (int i = 0; i < METRIC_MAX; i++) {
		enum metric id = (enum metric)i;
		struct writer w = {out, f, &metric_table[i]};

		if (w.desc->scope != METRIC_OF_NODE && !counts)
			continue;
		write_head(&w);
		if (w.desc->type == METRIC_INFO)
			write_info(&w, id, labels);
		else if (id == METRIC_QUEUE_QUEUED || id == METRIC_QUEUE_ACTIVE)
			write_queues(&w, id, counts);
		else if (w.desc->scope == METRIC_OF_JOB)
			write_jobs(&w, id, counts);
		else
			write_family(&w, s, id);
	}
	if (f == METRICS_OPENMETRICS)
		buf_str(out, "# EOF\n");
}
