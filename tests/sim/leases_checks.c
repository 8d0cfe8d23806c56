/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of sim_leases, checked after each step, and the journal that judge_leases.py reads. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/cluster/cluster.h"
#include "sim/leases.h"
#include "store/ops/node/leases.h"
#include "store/read/list/list_nodes.h"
#include <inttypes.h>
#include <stdarg.h>

void fault_found(struct world *w, const char *format, ...)
{
	va_list ap;

	if (w->failure[0])
		return;
	va_start(ap, format);
	vsnprintf(w->failure, sizeof(w->failure), format, ap);
	va_end(ap);
}

/* One line of the journal: time in microseconds, kind, number of the node, further words. */
void journal(struct world *w, const char *kind, const struct node *n, const char *format, ...)
{
	va_list ap;

	fprintf(w->journal, "%" PRId64 " %s %d", w->now - BEGIN, kind, (int)(n - w->nodes));
	va_start(ap, format);
	vfprintf(w->journal, format, ap);
	va_end(ap);
	putc('\n', w->journal);
}

/* A node that is not open in the store was closed. Its spawner must have killed its runs before. */
void check_reaped(struct world *w, struct store *s)
{
	AUTO_DONE(node_list) list = {};
	struct err e = {};

	if (!list_nodes_open(s, &list, &e)) {
		fault_found(w, "could not list nodes: %s", e.msg);
		return;
	}
	for (int i = 0; i < w->n_nodes; i++) {
		struct node *n = &w->nodes[i];
		bool found = !n->id || !n->cluster;

		for (size_t j = 0; j < list.n && !found; j++)
			found = text_equal(list.v[j].id, n->id);
		if (!found && n->kill_at && world_time(n, n->kill_at) > w->now)
			fault_found(w, "node %s was closed %" PRId64 " ms before its spawner kills its runs", n->name,
				(world_time(n, n->kill_at) - w->now) / USEC_MSEC);
	}
}

void check_term(struct world *w, const struct node *n, const struct op_lease *l)
{
	int64_t node = n - w->nodes + 1;

	if (l->term < w->term)
		fault_found(w, "the term went back from %" PRId64 " to %" PRId64, w->term, l->term);
	if (!l->leads)
		return;
	if (l->term == w->term && w->term_node && w->term_node != node)
		fault_found(w, "two nodes lead in term %" PRId64, l->term);
	if (l->term > w->term)
		w->terms++;
	w->term = l->term;
	w->term_node = node;
}

/* Beliefs that ended are written first: they may have ended before this step, and new ones begin with it. */
void journal_beliefs(struct world *w)
{
	for (int on = 0; on < 2; on++)
		for (int i = 0; i < w->n_nodes; i++) {
			struct node *n = &w->nodes[i];
			bool trusted = n->cluster && cluster_trusted(n->cluster), leads = n->cluster && cluster_leads(n->cluster);

			if (leads != n->leads && leads == on) {
				n->leads = leads;
				journal(w, on ? "lead" : "unlead", n, " %s", n->id);
			}
			if (trusted != n->trusted && trusted == on) {
				n->trusted = trusted;
				journal(w, on ? "trust" : "distrust", n, " %s", n->id);
			}
		}
}

/* The open nodes and their segments, as the store has them. */
void journal_members(struct world *w, struct store *s)
{
	AUTO_DONE(node_list) list = {};
	struct err e = {};

	if (!list_nodes_open(s, &list, &e))
		return;
	fprintf(w->journal, "%" PRId64 " members", w->now - BEGIN);
	for (size_t i = 0; i < list.n; i++)
		fprintf(w->journal, " %s=%" PRId64, list.v[i].id, (int64_t)list.v[i].segments);
	putc('\n', w->journal);
}

static bool is_healthy(const struct world *w, const struct node *n)
{
	return n->cluster && n->fault == FAULT_NONE && w->now - n->fault_ended > SETTLED;
}

void check_leaders(struct world *w)
{
	int leaders = 0;
	bool usable = false, healthy = false;

	for (int i = 0; i < w->n_nodes; i++) {
		const struct node *n = &w->nodes[i];
		bool leads = n->cluster && cluster_leads(n->cluster);

		leaders += leads;
		usable = usable || (leads && n->fault != FAULT_PAUSE);
		healthy = healthy || is_healthy(w, n);
	}
	if (leaders > 1)
		fault_found(w, "%d nodes lead at one time", leaders);
	if (usable || !healthy)
		w->led_at = w->now;
	if (w->now - w->led_at > w->longest)
		w->longest = w->now - w->led_at;
	if (w->now - w->led_at > TAKEOVER)
		fault_found(w, "no leader for %" PRId64 " ms while a healthy node was there", (w->now - w->led_at) / USEC_MSEC);
}
