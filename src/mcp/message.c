/* SPDX-License-Identifier: Apache-2.0 */
/* See message.h. */
#include "mcp/message.h"

#include <stdio.h>
#include <string.h>

#include "mcp/call.h"
#include "spec/result.h"
#include "spec/yaml.h"

static int message_fault(struct mcp_fault *fault, enum mcp_code code, const json_t *id,
			 const char *text)
{
	*fault = (struct mcp_fault){ .code = code, .id = json_incref((json_t *)(uintptr_t)id) };
	(void)snprintf(fault->text, sizeof(fault->text), "%.255s", text);
	return -EINVAL;
}

const char *mcp_plain_text(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* What is wrong with the shape of an object, or NULL. */
static const char *judge_shape(const struct mcp_message *m, const json_t *method)
{
	const char *version = json_string_value(json_object_get(m->root, "jsonrpc"));
	const json_t *params = json_object_get(m->root, "params");

	if (!version || strcmp(version, "2.0") != 0)
		return "jsonrpc: give \"2.0\"";
	if (json_object_get(m->root, "id") && !m->id)
		return "id: give a text or an integer";
	if (method && !json_is_string(method))
		return "method: give a text";
	if (method && (m->result || m->error))
		return "a message has either a method or a result or an error";
	if (params && !json_is_object(params))
		return "params: give an object";
	if (!method && !m->result == !m->error)
		return "give a method, a result or an error";
	if (!method && !m->id && m->result)
		return "id: a result needs the id of its request";
	return NULL;
}

static int read_object(struct mcp_message *m, struct mcp_fault *fault)
{
	const json_t *id = json_object_get(m->root, "id");
	const json_t *method = json_object_get(m->root, "method");
	const char *wrong;

	m->id = json_is_string(id) || json_is_integer(id) ? (json_t *)(uintptr_t)id : NULL;
	m->result = json_object_get(m->root, "result");
	m->error = json_object_get(m->root, "error");
	m->params = json_object_get(m->root, "params");
	wrong = judge_shape(m, method);
	if (wrong)
		return message_fault(fault, MCP_INVALID_REQUEST, m->id, wrong);
	/* No method is named by a text with a NUL, nor by an empty one. */
	m->method = method && !mcp_plain_text(method) ? "" : json_string_value(method);
	m->kind = !method ? MCP_RESPONSE : m->id ? MCP_REQUEST : MCP_NOTIFICATION;
	return 0;
}

/* json_parse() takes objects and lists only; other JSON is JSON, and no message. */
static bool is_scalar(struct span text)
{
	json_t *root = json_loadb(text.data ? text.data : "", text.len,
				  JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	bool scalar = root && !json_is_object(root) && !json_is_array(root);

	json_decref(root);
	return scalar;
}

int mcp_message_read(struct span text, struct mcp_message *ret, struct mcp_fault *fault)
{
	const struct document doc = { "message", text.data ? text.data : "", text.len };
	struct mcp_message m = { 0 };
	struct error err = { 0 };
	int r;

	if (!json_has_few_values(text))
		return message_fault(fault, MCP_INVALID_REQUEST, NULL,
				     "the message has too many values");
	if (json_parse(&doc, &m.root, &err) < 0)
		return is_scalar(text) ? message_fault(fault, MCP_INVALID_REQUEST, NULL,
						       "a message is an object")
				       : message_fault(fault, MCP_PARSE_ERROR, NULL, err.text);
	if (json_is_array(m.root))
		r = message_fault(fault, MCP_INVALID_REQUEST, NULL,
				  "batches are not supported: send one message at a time");
	else
		r = read_object(&m, fault);
	if (r < 0) {
		json_decref(m.root);
		return r;
	}
	*ret = m;
	return 0;
}

void mcp_message_done(struct mcp_message *m)
{
	json_decref(m->root);
	*m = (struct mcp_message){ 0 };
}

static json_t *id_or_null(const json_t *id)
{
	return id ? json_incref((json_t *)(uintptr_t)id) : json_null();
}

json_t *mcp_make_result(const json_t *id, json_t *result)
{
	return json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id_or_null(id), "result",
			 result);
}

json_t *mcp_make_error(const json_t *id, int code, const char *text, json_t *data)
{
	return json_pack("{s:s, s:o, s:{s:i, s:s, s:o*}}", "jsonrpc", "2.0", "id", id_or_null(id),
			 "error", "code", code, "message", text, "data", data);
}

json_t *mcp_make_notification(const char *method, json_t *params)
{
	return json_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method, "params", params);
}

json_t *mcp_make_request(const json_t *id, const char *method, json_t *params)
{
	return json_pack("{s:s, s:o, s:s, s:o*}", "jsonrpc", "2.0", "id", id_or_null(id), "method",
			 method, "params", params);
}

char *mcp_message_text(json_t *tree)
{
	char *text = tree ? json_dumps(tree, JSON_COMPACT | result_json_flags(NULL)) : NULL;

	json_decref(tree);
	return text;
}
