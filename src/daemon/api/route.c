/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the route of a request and parses its query parameters. */
#include "daemon/api/route.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include <string.h>

/* ---- the path ---- */

/*
 * Whether 'path' matches the pattern. *ret_piece is the component that matches the braces;
 * borrowed, with its length.
 */
static bool path_matches(
	const char *pattern, const char *path, const char **ret_piece, size_t *ret_len)
{
	*ret_piece = NULL;
	while (*pattern) {
		if (*pattern == '{') {
			size_t len = strcspn(path, "/");

			if (len == 0)
				return false;
			*ret_piece = path;
			*ret_len = len;
			path += len;
			pattern = strchr(pattern, '}') + 1;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return *path == '\0';
}

static void allow_add(struct buf *allow, const char *method)
{
	if (allow->len > 0)
		buf_str(allow, ", ");
	buf_str(allow, method);
	if (strcmp(method, "GET") == 0)
		buf_str(allow, ", HEAD");
}

enum route_match route_find(const char *method, const char *path, const struct route **ret,
	char *params[ROUTE_PARAMS_MAX], struct buf *ret_allow)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	const struct route *found = NULL;
	const char *piece = NULL;
	size_t len = 0;

	for (size_t i = 0; i < routes_count; i++) {
		const char *p;
		size_t n = 0;

		if (!path_matches(routes[i].path, path, &p, &n))
			continue;
		/*
		 * a fixed path has precedence over one with braces: 'bulk' is not the name of a job
		 * here
		 */
		if (strcmp(routes[i].method, wanted) == 0 && (!found || !p)) {
			found = &routes[i];
			piece = p;
			len = n;
		}
		allow_add(ret_allow, routes[i].method);
	}
	if (!found)
		return ret_allow->len > 0 ? ROUTE_NO_METHOD : ROUTE_NO_PATH;
	if (piece)
		params[0] = xstrndup(piece, len);
	*ret = found;
	return ROUTE_FOUND;
}

/* ---- query parameters ---- */

static bool read_query_states(
	const struct query_param *p, const char *text, int64_t *bits, struct err *e)
{
	for (;;) {
		size_t len = strcspn(text, ",");
		AUTO_TEXT word = xstrndup(text, len);
		enum job_state job;
		enum run_state run;

		if (p->type == QUERY_JOB_STATES && job_state_parse(word, &job))
			*bits |= INT64_C(1) << job;
		else if (p->type == QUERY_RUN_STATES && run_state_parse(word, &run))
			*bits |= INT64_C(1) << run;
		else
			return err_field(e, p->name, "there is no state '%.40s'", word);
		if (!text[len])
			return true;
		text += len + 1;
	}
}

static bool read_query_bool(
	const struct query_param *p, const char *text, int64_t *ret, struct err *e)
{
	*ret = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
	if (*ret || strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
		return true;
	return err_field(e, p->name, "'%s' must be true or false", p->name);
}

static bool read_query_time(
	const struct query_param *p, const char *text, int64_t *ret, struct err *e)
{
	struct err why = {};

	if (rfc3339_parse(text, ret, &why))
		return true;
	return err_field(e, p->name, "'%s': %s", p->name, why.msg);
}

static bool read_query_value(const struct query_param *p, struct query_value *v, struct err *e)
{
	switch (p->type) {
	case QUERY_TEXT:
		return true;
	case QUERY_NUMBER:
		if (text_parse_int(v->text, p->min, p->max, &v->number))
			return true;
		return err_field(e, p->name, "'%s' must be a whole number from %lld to %lld",
			p->name, (long long)p->min, (long long)p->max);
	case QUERY_BOOL:
		return read_query_bool(p, v->text, &v->number, e);
	case QUERY_TIME:
		return read_query_time(p, v->text, &v->number, e);
	case QUERY_TAG:
		if (strchr(v->text, '=') && v->text[0] != '=')
			return true;
		return err_field(e, p->name, "'%s' must be KEY=VALUE", p->name);
	case QUERY_JOB_STATES:
	case QUERY_RUN_STATES:
		return read_query_states(p, v->text, &v->number, e);
	case QUERY_TYPE_MAX:
		break;
	}
	return false;
}

bool route_query_add(const struct route *route, struct query_value values[ROUTE_QUERY_MAX],
	const char *name, const char *value, struct err *e)
{
	for (size_t i = 0; i < ROUTE_QUERY_MAX && route->query[i].name; i++) {
		const struct query_param *p = &route->query[i];
		struct query_value *v = &values[i];

		if (strcmp(p->name, name) != 0)
			continue;
		if (v->given && p->type != QUERY_JOB_STATES && p->type != QUERY_RUN_STATES)
			return err_field(e, p->name, "'%s' is given twice", p->name);
		v->given = true;
		free(v->text);
		v->text = xstrdup(value);
		return read_query_value(p, v, e);
	}
	return err_field(e, name, "unknown parameter '%.60s'", name);
}
