/* SPDX-License-Identifier: Apache-2.0 */
/* See resource.h: which row a URI belongs to, and the lists. */
#include "mcp/resource.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "mcp/mcp-private.h"

static bool is_template(const struct mcp_resource *row)
{
	return strchr(row->uri, '{');
}

const char *mcp_uri_value(const struct mcp_uri *uri, const char *name)
{
	for (size_t i = 0; i < uri->n; i++)
		if (strcmp(uri->variables[i].name, name) == 0)
			return uri->variables[i].value;
	return NULL;
}

/* --- matching --- */

static int uri_hex_digit(char c)
{
	return c >= '0' && c <= '9'		    ? c - '0'
	       : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
						    : -1;
}

/* Decodes %XX in place; a value with NUL, or with a lone %, is none. */
static bool decode_value(char *value)
{
	char *out = value;

	for (const char *in = value; *in; in++) {
		int high, low;

		if (*in != '%') {
			*out++ = *in;
			continue;
		}
		high = uri_hex_digit(in[1]);
		low = high < 0 ? -1 : uri_hex_digit(in[2]);
		if (low < 0 || (high == 0 && low == 0))
			return false;
		*out++ = (char)(high * 16 + low);
		in += 2;
	}
	*out = '\0';
	return true;
}

/* One row being compared; text is a copy whose variables are cut out in place. */
struct uri_match {
	const char *pattern;
	char *text;
	struct mcp_uri *uri;
};

static bool match_variable(struct uri_match *m)
{
	const char *end = strchr(m->pattern, '}');
	bool rest = m->pattern[1] == '+';
	char *stop = rest ? m->text + strlen(m->text) : m->text + strcspn(m->text, "/?#");
	struct mcp_uri *uri = m->uri;

	if (!end || stop == m->text || uri->n == MCP_URI_VARIABLES || (*stop && *stop != end[1]))
		return false;
	uri->variables[uri->n].name = m->pattern + 1 + rest;
	uri->variables[uri->n++].value = m->text;
	m->pattern = end + 1;
	m->text = stop;
	if (*stop) {
		*m->text++ = '\0';
		m->pattern++;
	}
	return true;
}

static bool match_row(const char *pattern, char *text, struct mcp_uri *ret)
{
	struct uri_match m = { pattern, text, ret };

	ret->n = 0;
	while (*m.pattern) {
		if (*m.pattern == '{') {
			if (!match_variable(&m))
				return false;
		} else if (*m.pattern++ != *m.text++) {
			return false;
		}
	}
	return *m.text == '\0';
}

/* A variable's name ends with its brace: names are compared with the row's literal, so a copy is made of neither. */
static bool decode_all(struct mcp_uri *uri, char *names)
{
	for (size_t i = 0; i < uri->n; i++) {
		size_t n = strcspn(uri->variables[i].name, "}");

		memcpy(names, uri->variables[i].name, n);
		names[n] = '\0';
		uri->variables[i].name = names;
		names += n + 1;
		if (!decode_value((char *)(uintptr_t)uri->variables[i].value))
			return false;
	}
	return true;
}

static bool match_uri(const struct mcp_resource *row, const char *text, struct mcp_uri *ret,
		      char *work)
{
	size_t n = strlen(text) + 1;

	memcpy(work, text, n);
	memcpy(work + n, text, n);
	ret->text = work;
	return match_row(row->uri, work + n, ret) && decode_all(ret, work + 2 * n);
}

const struct mcp_resource *mcp_resource_find(const struct mcp *m, const char *text,
					     struct mcp_uri *ret, char **ret_text)
{
	size_t n = strlen(text) + 1;
	char *work;

	if (n > MCP_URI_MAX)
		return NULL;
	work = malloc(2 * n + MCP_URI_MAX);
	for (const struct mcp_tables *const *t = m->options.tables; work && *t; t++)
		for (const struct mcp_resource *row = (*t)->resources; row && row->uri; row++)
			if (match_uri(row, text, ret, work)) {
				*ret_text = work;
				return row;
			}
	free(work);
	return NULL;
}

const struct mcp_resource *mcp_template_find(const struct mcp *m, const char *uri_template)
{
	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		for (const struct mcp_resource *row = (*t)->resources; row && row->uri; row++)
			if (strcmp(row->uri, uri_template) == 0)
				return row;
	return NULL;
}

/* --- lists --- */

json_t *mcp_resources_listed(const struct mcp *m, bool templates)
{
	json_t *list = json_array();

	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		for (const struct mcp_resource *row = (*t)->resources; row && row->uri; row++)
			if (is_template(row) == templates &&
			    json_array_append_new(
				    list,
				    json_pack("{s:s, s:s, s:s*, s:s*, s:s*}",
					      templates ? "uriTemplate" : "uri", row->uri, "name",
					      row->name, "title", row->title, "description",
					      row->description, "mimeType", row->mime_type)) < 0) {
				json_decref(list);
				return NULL;
			}
	return list;
}

int mcp_answer_templates_list(struct mcp_call *call, const json_t *params)
{
	return mcp_answer_whole_list(call, "resourceTemplates", call->mcp->lists.templates, params);
}

/* The template whose instances are listed: at most one has a list. */
static const struct mcp_resource *listing_row(const struct mcp *m)
{
	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		for (const struct mcp_resource *row = (*t)->resources; row && row->uri; row++)
			if (row->list)
				return row;
	return NULL;
}

int mcp_answer_resources_list(struct mcp_call *call, const json_t *params)
{
	const struct mcp_resource *row = listing_row(call->mcp);
	const json_t *cursor = json_object_get(params, "cursor");
	json_t *list = cursor ? json_array() : json_copy(call->mcp->lists.resources);
	_cleanup_free_ char *next = NULL;
	int r = list ? 0 : -ENOMEM;

	if (cursor && (!json_is_string(cursor) || !row)) {
		json_decref(list);
		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.cursor: there is no such page",
			      NULL);
		return 0;
	}
	if (r == 0 && row)
		r = row->list(call, json_string_value(cursor), list, &next);
	if (r < 0) {
		json_decref(list);
		if (r == -EINVAL)
			mcp_call_fail(call, MCP_INVALID_PARAMS,
				      "params.cursor: there is no such page", NULL);
		return r == -EINVAL ? 0 : r;
	}
	mcp_call_result(call, json_pack("{s:o, s:s*}", "resources", list, "nextCursor", next));
	return 0;
}

static int begin_read(struct mcp_call *call, const struct mcp_uri *uri, mcp_run *run)
{
	json_t *arguments = json_pack("{s:s}", "uri", uri->text);
	int r = arguments ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < uri->n; i++)
		if (json_object_set_new(arguments, uri->variables[i].name,
					json_string(uri->variables[i].value)) < 0)
			r = -EINVAL;
	if (r == 0)
		r = work_begin(call, arguments, run);
	json_decref(arguments);
	if (r != -EINVAL)
		return r;
	mcp_call_no_resource(call, uri->text); /* a value that is not UTF-8 */
	return 0;
}

int mcp_answer_resources_read(struct mcp_call *call, const json_t *params)
{
	const char *text = mcp_plain_text(json_object_get(params, "uri"));
	const struct mcp_resource *row;

	if (!text) {
		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.uri: give a URI", NULL);
		return 0;
	}
	row = mcp_resource_find(call->mcp, text, &call->resource.uri, &call->resource.text);
	if (!row) {
		mcp_call_no_resource(call, text);
		return 0;
	}
	return row->run ? begin_read(call, &call->resource.uri, row->run)
			: row->read(call, &call->resource.uri);
}
