/* SPDX-License-Identifier: Apache-2.0 */
/* See version.h. The order of the checks is that of the specification: a request with several faults gets the first one's error. */
#include "mcp/version.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "mcp/call.h"

enum { DATE_LENGTH = 10, HEADER_DECODED_MAX = 16 << 10 };

const char *const mcp_legacy_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
					    NULL };

const char *mcp_legacy_version(struct span text)
{
	for (const char *const *v = mcp_legacy_versions; *v; v++)
		if (span_is(text, *v))
			return *v;
	return NULL;
}

bool mcp_version_is_modern(struct span text)
{
	static const char shape[] = "dddd-dd-dd";

	if (text.len != DATE_LENGTH)
		return false;
	for (size_t i = 0; i < DATE_LENGTH; i++)
		if (shape[i] == 'd' ? text.data[i] < '0' || text.data[i] > '9'
				    : text.data[i] != shape[i])
			return false;
	return memcmp(text.data, MCP_MODERN_VERSION, DATE_LENGTH) >= 0;
}

bool mcp_is_modern(struct span version)
{
	return mcp_version_is_modern(span_trim(version));
}

static const json_t *meta_of(const struct mcp_message *m)
{
	return json_object_get(m->params, "_meta");
}

static struct span span_of_json(const json_t *text)
{
	return (struct span){ json_string_value(text), json_string_length(text) };
}

enum mcp_era mcp_era_of(const struct mcp_message *m, const struct mcp_headers *headers)
{
	if (m->kind == MCP_RESPONSE)
		return MCP_LEGACY;
	if (json_object_get(meta_of(m), MCP_META_VERSION))
		return MCP_MODERN;
	return headers && mcp_version_is_modern(span_trim(headers->version)) ? MCP_MODERN
									     : MCP_LEGACY;
}

static struct mcp_refusal refuse_version(enum mcp_outcome outcome, int code, const char *fmt, ...)
	_printf_(3, 4);

static struct mcp_refusal refuse_version(enum mcp_outcome outcome, int code, const char *fmt, ...)
{
	struct mcp_refusal r = { .outcome = outcome, .code = code };
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(r.text, sizeof(r.text), fmt, args);
	va_end(args);
	return r;
}

static const struct mcp_refusal accepted = { .outcome = MCP_ANSWERED };

static struct mcp_refusal judge_meta(const struct mcp_message *m)
{
	const json_t *meta = meta_of(m);

	if (!json_is_object(meta))
		return refuse_version(MCP_BAD_META, MCP_INVALID_PARAMS,
				      "params._meta: give an object");
	if (!json_is_string(json_object_get(meta, MCP_META_VERSION)))
		return refuse_version(MCP_BAD_META, MCP_INVALID_PARAMS,
				      "params._meta: give " MCP_META_VERSION " as a text");
	if (!json_is_object(json_object_get(meta, MCP_META_ABLE)))
		return refuse_version(MCP_BAD_META, MCP_INVALID_PARAMS,
				      "params._meta: give " MCP_META_ABLE " as an object");
	return accepted;
}

/* A header's value as plain text; "=?base64?…?=" is decoded. -EINVAL: it cannot be. */
static int header_text(struct span value, char **ret, size_t *ret_len)
{
	static const char begin[] = "=?base64?", end[] = "?=";
	const size_t n_begin = sizeof(begin) - 1, n_end = sizeof(end) - 1;
	bool coded = value.len >= n_begin + n_end && memcmp(value.data, begin, n_begin) == 0 &&
		     memcmp(value.data + value.len - n_end, end, n_end) == 0;
	char *text;
	int r = 0;

	if (coded)
		value = (struct span){ value.data + n_begin, value.len - n_begin - n_end };
	if (value.len > HEADER_DECODED_MAX)
		return -EINVAL;
	text = malloc(base64_decoded_max(value.len) + value.len);
	if (!text)
		return -ENOMEM;
	if (coded)
		r = base64_decode(value.data, value.len, text, ret_len);
	else
		memcpy(text, value.data, *ret_len = value.len);
	if (r < 0) {
		free(text);
		return -EINVAL;
	}
	*ret = text;
	return 0;
}

static struct mcp_refusal compare_header(const char *header, struct span value, struct span body)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0;

	if (!value.data)
		return refuse_version(MCP_HEADER_MISMATCH, MCP_HEADERS_DISAGREE,
				      "the header %s is missing", header);
	if (header_text(span_trim(value), &text, &n) < 0)
		return refuse_version(MCP_HEADER_MISMATCH, MCP_HEADERS_DISAGREE,
				      "the header %s cannot be decoded", header);
	if (!body.data || n != body.len || memcmp(text, body.data, n) != 0)
		return refuse_version(MCP_HEADER_MISMATCH, MCP_HEADERS_DISAGREE,
				      "the header %s and the body disagree", header);
	return accepted;
}

static struct mcp_refusal judge_version(struct span version)
{
	struct mcp_refusal r = accepted;

	if (span_is(version, MCP_MODERN_VERSION))
		return r;
	r = refuse_version(MCP_UNSUPPORTED_VERSION, MCP_VERSION_UNSUPPORTED,
			   "Unsupported protocol version: %.64s", version.data);
	r.data = json_pack("{s:[s], s:s%}", "supported", MCP_MODERN_VERSION, "requested",
			   version.data, version.len);
	return r;
}

struct mcp_refusal mcp_judge_modern(const struct mcp_message *m, const struct mcp_headers *headers,
				    const char *name_key)
{
	struct mcp_refusal r = judge_meta(m);
	struct span version, name;

	if (r.outcome != MCP_ANSWERED)
		return r;
	version = span_of_json(json_object_get(meta_of(m), MCP_META_VERSION));
	/* Header lines that are there must agree, before the version is judged; that none is missing is judged after it. */
	if (headers && headers->version.data)
		r = compare_header("MCP-Protocol-Version", headers->version, version);
	if (r.outcome == MCP_ANSWERED && headers && headers->method.data)
		r = compare_header("Mcp-Method", headers->method, span_of(m->method));
	if (r.outcome == MCP_ANSWERED)
		r = judge_version(version);
	if (r.outcome != MCP_ANSWERED || !headers)
		return r;
	if (!headers->version.data)
		return compare_header("MCP-Protocol-Version", headers->version, version);
	if (!headers->method.data)
		return compare_header("Mcp-Method", headers->method, version);
	name = span_of_json(name_key ? json_object_get(m->params, name_key) : NULL);
	return name.data ? compare_header("Mcp-Name", headers->name, name) : r;
}

/* --- arguments in header lines --- */

/* A number in a header equals one in the body by value. */
static bool number_agrees(struct span value, const json_t *body)
{
	char text[64], *end;
	double number;

	if (!json_is_number(body) || value.len == 0 || value.len >= sizeof(text))
		return false;
	memcpy(text, value.data, value.len);
	text[value.len] = '\0';
	if (strspn(text, "-0123456789.eE+") != value.len)
		return false;
	number = strtod(text, &end);
	return *end == '\0' && isfinite(number) && number == json_number_value(body);
}

static struct mcp_refusal judge_param(const char *name, const json_t *body,
				      const struct mcp_headers *headers)
{
	struct span value = headers->param(headers->data, name);
	char header[96];

	(void)snprintf(header, sizeof(header), "Mcp-Param-%.64s", name);
	if (json_is_number(body) && value.data)
		return number_agrees(span_trim(value), body)
			       ? accepted
			       : compare_header(header, value, (struct span){ NULL, 0 });
	if (json_is_boolean(body))
		return compare_header(header, value,
				      span_of(json_is_true(body) ? "true" : "false"));
	return compare_header(header, value, span_of_json(body));
}

struct mcp_refusal mcp_judge_params(const json_t *schema, const json_t *arguments,
				    const struct mcp_headers *headers)
{
	const json_t *properties = json_object_get(schema, "properties");
	struct mcp_refusal r = accepted;
	const char *key;
	json_t *property;

	json_object_foreach((json_t *)(uintptr_t)properties, key, property)
	{
		const char *name = json_string_value(json_object_get(property, "x-mcp-header"));
		const json_t *body = json_object_get(arguments, key);

		if (!name || !body || json_is_null(body) || r.outcome != MCP_ANSWERED)
			continue;
		r = judge_param(name, body, headers);
	}
	return r;
}
