/* SPDX-License-Identifier: Apache-2.0 */
/* Finds all secret values with an Aho-Corasick automaton. */
#include "exec/worker/output/secret_mask.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdint.h>
#include <string.h>

#define BASE64_LINE 76  /* as base64(1) and mail write it */
#define CHUNK (64 << 10)
/* A longer value is usually a file, which is encoded alone, so its forms after other bytes are not stored. */
#define AFTER_OTHERS_MAX 4096
/* Of a value: after 0, 1 or 2 other bytes of a group of three, each in both alphabets. */
#define BASE64_FORMS 6

/*
 * A state is a prefix of a value: the longest prefix that is a suffix of the output so far. 0: the
 * empty prefix.
 */
struct reexec_state {
	uint32_t parent, fail;
	uint32_t depth; /* bytes of the prefix */
	uint32_t hit;   /* bytes of the longest value that ends here; 0: none */
	unsigned char byte;
};

struct edge {
	uint32_t from, to; /* to 0: free slot of the hash table */
};

struct range {
	int64_t start, end;
	bool joined; /* continues the masked range before it */
};

struct secret_mask {
	struct reexec_state *states;
	uint32_t n, cap;
	struct edge *edges;
	uint32_t edges_cap;  /* a power of two */
	uint32_t first[256]; /* the edges of state 0 */
	uint32_t half;       /* a prefix of at least this many bytes is never passed on unmasked */

	uint32_t at;         /* the state now */
	struct buf held;     /* from 'taken' on: bytes [base, pos) of the output */
	size_t taken;
	int64_t base, pos;
	struct range *hidden; /* elements [hidden_from, hidden_n): sorted, disjoint */
	size_t hidden_from, hidden_n, hidden_cap;
	bool starred;        /* MASK_TEXT was written for the first range */
	bool tail_hidden;    /* the byte before 'base' was masked */
};

/* ---- the automaton ---- */

static uint32_t edge_place(const struct secret_mask *m, uint32_t from, unsigned char byte)
{
	uint64_t h = (((uint64_t)from << 8) | byte) * UINT64_C(0x9E3779B97F4A7C15);
	uint32_t i = (uint32_t)(h >> 32) & (m->edges_cap - 1);

	while (m->edges[i].to &&
		(m->edges[i].from != from || m->states[m->edges[i].to].byte != byte))
		i = (i + 1) & (m->edges_cap - 1);
	return i;
}

static uint32_t edge_get(const struct secret_mask *m, uint32_t from, unsigned char byte)
{
	return from ? m->edges[edge_place(m, from, byte)].to : m->first[byte];
}

static uint32_t automaton_step(const struct secret_mask *m, uint32_t from, unsigned char byte)
{
	uint32_t to;

	while (!(to = edge_get(m, from, byte)) && from)
		from = m->states[from].fail;
	return to;
}

static uint32_t state_add(struct secret_mask *m, uint32_t from, unsigned char byte)
{
	uint32_t to = edge_get(m, from, byte);

	if (to)
		return to;
	to = m->n++;
	m->states[to] = (struct reexec_state){
		.parent = from, .depth = m->states[from].depth + 1, .byte = byte};
	if (from)
		m->edges[edge_place(m, from, byte)] = (struct edge){from, to};
	else
		m->first[byte] = to;
	return to;
}

static void pattern_add(struct secret_mask *m, const char *p, size_t len)
{
	uint32_t at = 0;

	for (size_t i = 0; i < len; i++)
		at = state_add(m, at, (unsigned char)p[i]);
	m->states[at].hit = (uint32_t)len;
	if (m->half > (len + 1) / 2)
		m->half = (uint32_t)(len + 1) / 2;
}

/* Computes the failure links, shorter prefixes first. */
static void link_states(struct secret_mask *m)
{
	uint32_t *order = xcalloc(m->n, sizeof(*order)), *begin = xcalloc(m->n + 1, sizeof(*begin));

	for (uint32_t i = 0; i < m->n; i++)
		begin[m->states[i].depth + 1]++;
	for (uint32_t d = 1; d <= m->n; d++)
		begin[d] += begin[d - 1];
	for (uint32_t i = 0; i < m->n; i++)
		order[begin[m->states[i].depth]++] = i;
	for (uint32_t i = 1; i < m->n; i++) {
		struct reexec_state *s = &m->states[order[i]];

		s->fail = s->parent ? automaton_step(m, m->states[s->parent].fail, s->byte) : 0;
		if (!s->hit)
			s->hit = m->states[s->fail].hit;
	}
	free(order);
	free(begin);
}

/* ---- the masked forms of a value ---- */

static size_t without_line_ends(const char *p, size_t len)
{
	while (len && (p[len - 1] == '\n' || p[len - 1] == '\r'))
		len--;
	return len;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void lines_add(struct secret_mask *m, const char *p, size_t len)
{
	for (const char *end = p + len, *next; p < end; p = next) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));

		stop = stop ? stop : end;
		next = stop + 1;
		while (p < stop && is_blank(*p))
			p++;
		while (p < stop && is_blank(stop[-1]))
			stop--;
		if (stop - p >= MASK_LINE_MIN)
			pattern_add(m, p, (size_t)(stop - p));
	}
}

/* The alphabet of URLs (RFC 4648, section 5), in which tokens are often written. */
static void to_url_alphabet(char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = p[i] == '+' ? '-' : p[i] == '/' ? '_' : p[i];
}

/*
 * Adds the last characters of a base64 form, after 'before'. The last character can contain bits of
 * the byte that follows the value in the encoded data, for example of a line end, so every value of
 * these bits is added. Later characters depend on the following data only.
 */
static void base64_tail_add(struct secret_mask *m, const char *before, const char *tail, bool url)
{
	char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	AUTO_TEXT text = xprintf("%s%s", before, tail);
	size_t len = strlen(text), plain = strcspn(text, "=");
	const char *first;
	size_t forms = len - plain == 2 ? 16 : len - plain == 1 ? 4 : 1;

	if (url)
		to_url_alphabet(alphabet, strlen(alphabet));
	first = strchr(alphabet, text[plain - 1]);
	pattern_add(m, text, len);
	for (size_t i = 0; i < forms; i++) {
		text[plain - 1] = first[i];
		pattern_add(m, text, plain);
	}
	explicit_bzero(text, len);
}

/*
 * Each line of 76 characters is a pattern. A short last line is matched together with the line
 * before it.
 */
static void base64_lines_add(struct secret_mask *m, const char *text, bool url)
{
	static const char *const ends[] = {"", "\n", "\r\n"};
	size_t last = (strcspn(text, "=") - 1) / BASE64_LINE * BASE64_LINE;

	for (size_t i = 0; i < last; i += BASE64_LINE)
		pattern_add(m, text + i, BASE64_LINE);
	if (last == 0 || strcspn(text + last, "=") >= MASK_LINE_MIN) {
		base64_tail_add(m, "", text + last, url);
		return;
	}
	for (size_t i = 0; i < ELEMENTS(ends); i++) {
		AUTO_TEXT before = xprintf("%.*s%s", BASE64_LINE, text + last - BASE64_LINE, ends[i]);

		base64_tail_add(m, before, text + last, url);
		explicit_bzero(before, strlen(before));
	}
}

/*
 * The form of a value after 'before' other bytes of a group, as in base64("user:" + value). The first
 * character of the value, which has bits of those bytes too, is left out.
 */
static void base64_add(struct secret_mask *m, const char *p, size_t len, size_t before)
{
	AUTO_DONE(buf) data = {};
	AUTO_DONE(buf) text = {};
	char *form;

	buf_add(&data, "\0\0", before);
	buf_add(&data, p, len);
	buf_base64(&text, data.data, data.len);
	form = text.data + (before ? before + 1 : 0);
	base64_lines_add(m, form, false);
	to_url_alphabet(form, strlen(form));
	base64_lines_add(m, form, true);
	explicit_bzero(data.data, data.cap);
	explicit_bzero(text.data, text.cap);
}

struct secret_mask *secret_mask_new(const struct secret_mask_value *values, size_t n)
{
	AUTO(secret_mask) *m = xcalloc(1, sizeof(*m));
	size_t bytes = 0;

	/*
	 * the value, its lines and its base64 forms, which have at most 3 tails with up to 16 forms,
	 * 2 paddings and a line end each
	 */
	for (size_t i = 0; i < n; i++)
		bytes += values[i].len * 2 + (values[i].len + 2) / 3 * 4 * (values[i].len > AFTER_OTHERS_MAX ? 2 : BASE64_FORMS);
	m->cap = (uint32_t)(bytes + n * BASE64_FORMS * (4 + 3 * (BASE64_LINE + 2 + 16 + 2)) + 1);
	m->half = MASK_MIN;
	m->n = 1;
	m->states = xcalloc(m->cap, sizeof(*m->states));
	for (m->edges_cap = 16; m->edges_cap < 2 * m->cap;)
		m->edges_cap *= 2;
	m->edges = xcalloc(m->edges_cap, sizeof(*m->edges));
	for (size_t i = 0; i < n; i++) {
		const char *p = values[i].data;
		size_t len = without_line_ends(p, values[i].len);

		if (len < MASK_MIN)
			continue;
		pattern_add(m, p, len);
		if (memchr(p, '\n', len))
			lines_add(m, p, len);
		for (size_t before = 0; before < (len > AFTER_OTHERS_MAX ? 1 : 3); before++)
			base64_add(m, p, len, before);
	}
	if (m->n == 1)
		return NULL;
	link_states(m);
	return STEAL(m);
}

void secret_mask_free(struct secret_mask *m)
{
	if (!m)
		return;
	explicit_bzero(m->states, m->cap * sizeof(*m->states));
	if (m->held.data)
		explicit_bzero(m->held.data, m->held.cap);
	buf_done(&m->held);
	free(m->states);
	free(m->edges);
	free(m->hidden);
	free(m);
}

/* ---- the stream ---- */

/* The ends of ranges never decrease, so only the last ranges can overlap the new one. */
static void range_hide(struct secret_mask *m, int64_t start, int64_t end)
{
	struct range new = {.start = start, .end = end};

	if (start < m->base) {
		new.start = m->base;
		new.joined = m->tail_hidden;
	}
	while (m->hidden_n > m->hidden_from && m->hidden[m->hidden_n - 1].end > new.start) {
		const struct range *last = &m->hidden[--m->hidden_n];

		if (last->start <= new.start) {
			new.start = last->start;
			new.joined |= last->joined;
		}
	}
	if (m->hidden_from == m->hidden_n)
		m->hidden_from = m->hidden_n = 0;
	if (m->hidden_n == m->hidden_cap) {
		m->hidden_cap = m->hidden_cap ? 2 * m->hidden_cap : 16;
		m->hidden = xrealloc(m->hidden, m->hidden_cap * sizeof(*m->hidden));
	}
	m->hidden[m->hidden_n++] = new;
}

static void held_consume(struct secret_mask *m, int64_t n)
{
	m->base += n;
	m->taken += (size_t)n;
}

static void emit_hidden(struct secret_mask *m, int64_t limit, secret_mask_out_fn *out, void *arg)
{
	const struct range *h = &m->hidden[m->hidden_from];
	int64_t end = h->end < limit ? h->end : limit;

	if (!m->starred && !h->joined)
		out(MASK_TEXT, sizeof(MASK_TEXT) - 1, arg);
	m->starred = end < h->end;
	m->tail_hidden = true;
	if (end == h->end)
		m->hidden_from++;
	held_consume(m, end - m->base);
}

static void emit(struct secret_mask *m, int64_t limit, secret_mask_out_fn *out, void *arg)
{
	while (m->base < limit) {
		const struct range *h =
			m->hidden_from < m->hidden_n ? &m->hidden[m->hidden_from] : NULL;
		int64_t end = h && h->start < limit ? h->start : limit;

		if (h && h->start <= m->base) {
			emit_hidden(m, limit, out, arg);
			continue;
		}
		out(m->held.data + m->taken, (size_t)(end - m->base), arg);
		m->tail_hidden = false;
		held_consume(m, end - m->base);
	}
	if (m->taken && m->taken * 2 >= m->held.len) { /* amortized: constant time per byte */
		memmove(m->held.data, m->held.data + m->taken, m->held.len - m->taken);
		m->held.len -= m->taken;
		m->taken = 0;
	}
}

static void chunk_write(struct secret_mask *m, const unsigned char *p, size_t len,
	secret_mask_out_fn *out, void *arg)
{
	buf_add(&m->held, p, len);
	for (size_t i = 0; i < len; i++) {
		m->at = automaton_step(m, m->at, p[i]);
		m->pos++;
		if (m->states[m->at].hit)
			range_hide(m, m->pos - m->states[m->at].hit, m->pos);
	}
	emit(m, m->pos - m->states[m->at].depth, out, arg);
}

void secret_mask_write(
	struct secret_mask *m, const void *data, size_t len, secret_mask_out_fn *out, void *arg)
{
	const unsigned char *p = data;

	for (size_t n; len; p += n, len -= n) {
		n = len < CHUNK ? len : CHUNK;
		chunk_write(m, p, n, out, arg);
	}
}

bool secret_mask_holds(const struct secret_mask *m)
{
	return m->base < m->pos;
}

void secret_mask_held(const struct secret_mask *m, secret_mask_out_fn *out, void *arg)
{
	if (secret_mask_holds(m))
		out(m->held.data + m->taken, (size_t)(m->pos - m->base), arg);
}

void secret_mask_release(struct secret_mask *m, secret_mask_out_fn *out, void *arg)
{
	uint32_t depth = m->states[m->at].depth;

	if (depth >= m->half && secret_mask_holds(m))
		range_hide(m, m->pos - depth, m->pos);
	emit(m, m->pos, out, arg);
}
