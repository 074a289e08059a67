/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See router.h. A few dozen rows are compared one by one. Of the patterns that match a path, the most literal
 * wins: its rank has two bits a segment (plain 3, {name} 2, {name...} 1), the first segment highest.
 */
#include "web/http/router.h"

#include "base/buf.h"

#include <stdio.h>

enum { RANK_SEGMENTS = 30, JOINED_BYTES_MAX = 8192 };

enum part_kind { PART_PLAIN = 3, PART_ONE = 2, PART_REST = 1 };

static enum part_kind part_kind(struct span part)
{
	if (part.len < 2 || part.data[0] != '{')
		return PART_PLAIN;
	return part.len > 5 && memcmp(part.data + part.len - 4, "...}", 4) == 0 ? PART_REST
										: PART_ONE;
}

static bool rest_is_full(const struct uri *uri, size_t from)
{
	for (size_t i = from; i < uri->n_segments; i++)
		if (uri->segments[i][0])
			return true;
	return false;
}

/* The rank of the pattern for this path; 0: no match. */
static uint64_t route_rank(const char *pattern, const struct uri *uri)
{
	struct span rest = span_of(pattern + 1), part;
	uint64_t value = 1;
	size_t i = 0;

	while (rest.len > 0 && span_split(&rest, '/', &part)) {
		enum part_kind kind = part_kind(part);

		if (i >= uri->n_segments || i >= RANK_SEGMENTS)
			return 0;
		value = value << 2 | kind;
		if (kind == PART_REST)
			return rest_is_full(uri, i) ? value << 2 * (RANK_SEGMENTS - 1 - i) : 0;
		if (kind == PART_PLAIN ? !span_is(part, uri->segments[i]) : !uri->segments[i][0])
			return 0;
		i++;
	}
	return i == uri->n_segments ? value << 2 * (RANK_SEGMENTS - i) : 0;
}

static int join_rest(const struct uri *uri, size_t from, struct route_match *m)
{
	_cleanup_buf_ struct buf b = { 0 };
	int r = 0;

	buf_init(&b, JOINED_BYTES_MAX);
	for (size_t i = from; r >= 0 && i < uri->n_segments; i++)
		r = buf_printf(&b, "%s%s", i > from ? "/" : "", uri->segments[i]);
	if (r < 0)
		return r;
	m->joined = buf_take(&b);
	return m->joined ? 0 : -ENOMEM;
}

static int read_params(const struct uri *uri, struct route_match *m)
{
	struct span rest = span_of(m->route->pattern + 1), part;

	for (size_t i = 0; rest.len > 0 && span_split(&rest, '/', &part); i++) {
		enum part_kind kind = part_kind(part);
		size_t marks = kind == PART_REST ? 5 : 2;
		int r;

		if (kind == PART_PLAIN || m->n_params == ROUTE_PARAMS_MAX)
			continue;
		if (kind == PART_REST) {
			r = join_rest(uri, i, m);
			if (r < 0)
				return r;
		}
		m->params[m->n_params++] = (struct route_param){
			.name = { part.data + 1, part.len - marks },
			.value = kind == PART_REST ? m->joined : uri->segments[i],
		};
	}
	return 0;
}

/* All rows, table after table; NULL after the last. */
static const struct route *next_row(const struct router *router, size_t *table, size_t *row)
{
	for (; *table < router->n_tables; (*table)++, *row = 0) {
		const struct route *r = &router->tables[*table][*row];

		(*row)++;
		if (r->pattern)
			return r;
	}
	return NULL;
}

int router_match(const struct router *router, enum http_method method, const struct uri *uri,
		 struct route_match *ret)
{
	enum http_method wanted = method == HTTP_HEAD ? HTTP_GET : method;
	struct route_match m = { 0 };
	const struct route *row;
	size_t table = 0, at = 0;
	uint64_t best = 0;
	int r;

	/* The most literal pattern decides for all methods, so that Allow and dispatch agree. */
	while ((row = next_row(router, &table, &at)))
		best = MAX(best, route_rank(row->pattern, uri));
	for (table = at = 0; best > 0 && (row = next_row(router, &table, &at));) {
		bool streams = row->flags & (ROUTE_STREAMS | ROUTE_UPGRADES);

		if (route_rank(row->pattern, uri) != best)
			continue;
		m.path_known = true;
		m.flags |= row->flags;
		m.methods |= 1U << row->method | 1U << HTTP_OPTIONS;
		if (row->method == HTTP_GET && !streams)
			m.methods |= 1U << HTTP_HEAD;
		if (row->method == wanted && !(method == HTTP_HEAD && streams))
			m.route = row;
	}
	r = m.route ? read_params(uri, &m) : 0;
	if (r < 0) {
		route_match_done(&m);
		return r;
	}
	*ret = m;
	return 0;
}

void route_match_done(struct route_match *m)
{
	free(TAKE_PTR(m->joined));
}

const char *route_match_param(const struct route_match *m, const char *name)
{
	for (size_t i = 0; i < m->n_params; i++)
		if (span_is(m->params[i].name, name))
			return m->params[i].value;
	return NULL;
}

void router_allow(uint32_t methods, char ret[ROUTER_ALLOW])
{
	size_t len = 0;

	ret[0] = '\0';
	for (enum http_method m = HTTP_OTHER + 1; m < _HTTP_METHOD_MAX; m++)
		if (methods & 1U << m)
			len += (size_t)snprintf(ret + len, ROUTER_ALLOW - len, "%s%s",
						len ? ", " : "", http_method_name(m));
}

uint32_t router_methods(const struct router *router)
{
	uint32_t methods = 1U << HTTP_OPTIONS | 1U << HTTP_HEAD;
	const struct route *row;
	size_t table = 0, at = 0;

	while ((row = next_row(router, &table, &at)))
		methods |= 1U << row->method;
	return methods;
}

int router_each(const struct router *router, int (*fn)(void *data, const struct route *route),
		void *data)
{
	const struct route *row;
	size_t table = 0, at = 0;
	int r = 0;

	while (r >= 0 && (row = next_row(router, &table, &at)))
		if (!(row->flags & ROUTE_HIDDEN))
			r = fn(data, row);
	return r < 0 ? r : 0;
}
