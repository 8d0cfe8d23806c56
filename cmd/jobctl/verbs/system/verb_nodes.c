/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs for nodes. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

static void cell_text(const json_t *row, const char *key, struct buf *out)
{
	const char *text = member_text(row, key);

	buf_str(out, text ? text : "");
}

#define NODE_CELL(fn, key, put)                                                                    \
	static void fn(const json_t *row, const struct cell_style *style, struct buf *out)         \
	{                                                                                          \
		(void)style;                                                                       \
		put(row, key, out);                                                                \
	}

static void cell_number(const json_t *row, const char *key, struct buf *out)
{
	if (json_is_integer(json_object_get(row, key))) /* absent if the caller may not see it */
		buf_printf(out, "%" PRId64, member_int(row, key));
}

static bool is_gone(const json_t *row)
{
	return json_is_string(json_object_get(row, "left_at"));
}

static void cell_seconds(const json_t *row, const char *key, struct buf *out)
{
	if (is_gone(row))
		return;
	buf_printf(out, "%.1fs", json_number_value(json_object_get(row, key)));
}

static void cell_role(const json_t *row, const char *key, struct buf *out)
{
	if (json_is_true(json_object_get(row, key)))
		buf_printf(out, "leader, term %" PRId64, member_int(row, "term"));
	else
		buf_str(out, json_is_false(json_object_get(row, "may_lead")) ? "never leads" : "");
}

static void cell_words(const json_t *row, const char *key, struct buf *out)
{
	const json_t *word;
	size_t i;

	json_array_foreach(json_object_get(row, key), i, word)
		buf_printf(out, "%s%s", i ? "," : "", json_string_value(word));
}

/* A node that has left keeps its drained state. */
static void cell_whether_drained(const json_t *row, const char *key, struct buf *out)
{
	const char *state = member_text(row, key);

	cell_text(row, key, out);
	if (state && strcmp(state, "draining") != 0 &&
		json_is_true(json_object_get(row, "drained")))
		buf_str(out, ", drained");
}

NODE_CELL(cell_name, "name", cell_text)
NODE_CELL(cell_host, "host", cell_text)
NODE_CELL(cell_node_state, "state", cell_whether_drained)
NODE_CELL(cell_leads, "leads", cell_role)
NODE_CELL(cell_segments, "segments", cell_number)
NODE_CELL(cell_active, "in_flight", cell_number)
NODE_CELL(cell_lease, "lease_remains", cell_seconds)
NODE_CELL(cell_run_lease, "run_lease_remains", cell_seconds)
NODE_CELL(cell_offset, "clock_offset", cell_seconds)
NODE_CELL(cell_labels, "labels", cell_words)

/* When the node joined the cluster, or left it. */
static void cell_since(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(row, is_gone(row) ? "left_at" : "since", style, out);
}

static void put_node_name(const json_t *row, struct buf *out)
{
	cell_text(row, "name", out);
}

static const struct column columns[] = {
	{{"NODE", false, false}, "name", false, cell_name},
	{{"STATE", false, false}, "state", false, cell_node_state},
	{{"ROLE", false, false}, "leads", false, cell_leads},
	{{"HOST", false, false}, "host", false, cell_host},
	{{"SEGMENTS", true, false}, "segments", false, cell_segments},
	{{"RUNNING", true, false}, "in_flight", false, cell_active},
	{{"LEASE", true, false}, "lease_remains", false, cell_lease},
	{{"RUN-LEASE", true, false}, "run_lease_remains", true, cell_run_lease},
	{{"CLOCK", true, false}, "clock_offset", false, cell_offset},
	{{"SINCE", false, false}, "since", false, cell_since},
	{{"LABELS", false, false}, "labels", false, cell_labels},
};
static const struct row_kind nodes = {columns, ELEMENTS(columns), put_node_name};

int verb_nodes(struct ctl *c, const struct args *a)
{
	json_auto_t *answer = NULL;
	struct rows rows = {};
	struct err e = {};
	json_t *row;
	size_t i;

	(void)a;
	if (!api_call(c, "GET", "/v1/nodes", NULL, &answer, &e))
		return ctl_fail(&e);
	rows_begin(&rows, c, &nodes);
	json_array_foreach(json_object_get(answer, "nodes"), i, row) {
		if (json_is_true(json_object_get(row, "leads")))
			json_object_set(row, "term", json_object_get(answer, "term"));
		rows_add(&rows, row);
	}
	json_array_foreach(json_object_get(answer, "gone"), i, row)
		rows_add(&rows, row);
	rows_end(&rows);
	return EXIT_SUCCESS;
}

static int send_node_command(struct ctl *c, const struct args *a, const char *order,
	const char *done, const char *same)
{
	json_auto_t *answer = NULL;
	AUTO_TEXT path = NULL;
	struct err e = {};
	char *const *words;

	args_operands(a, &words);
	if (strspn(words[0], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
		strlen(words[0])) {
		err_set(&e, ERR_INVALID, "'%.128s' is not the name of a node; see 'jobctl nodes'",
			words[0]);
		return ctl_fail(&e);
	}
	path = xprintf("/v1/nodes/%s/%s", words[0], order);
	if (!api_call(c, "POST", path, NULL, &answer, &e))
		return ctl_fail(&e);
	if (render_wants_json(c))
		return render_object(c, answer);
	ctl_say("node '%s' %s%s", words[0],
		json_is_true(json_object_get(answer, "changed")) ? done : same,
		strcmp(order, "drain") == 0 && member_int(answer, "others") == 0
			? "; no other node starts runs either"
			: "");
	return EXIT_SUCCESS;
}

int verb_node_drain(struct ctl *c, const struct args *a)
{
	return send_node_command(c, a, "drain", "starts no new runs; running ones continue",
		"was already drained");
}

int verb_node_undrain(struct ctl *c, const struct args *a)
{
	return send_node_command(c, a, "undrain", "starts runs again", "was not drained");
}

int verb_node_resign(struct ctl *c, const struct args *a)
{
	return send_node_command(c, a, "resign",
		"hands over the lead at its next lease renewal: see 'jobctl nodes'",
		"is not the leader");
}
