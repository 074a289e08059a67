/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of the conformance suite that answer by themselves, at once or in steps of 50 ms. */
#include "fixture.h"

#include <string.h>

#include "base/clock.h"
#include "base/loop/loop.h"

static int call_text(struct mcp_call *call, const json_t *arguments _unused_)
{
	return fixture_say(call, "This is a simple text response for testing.");
}

static json_t *embedded(const char *uri, const char *type, const char *text)
{
	return json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "resource", "resource", "uri", uri,
			 "mimeType", type, "text", text);
}

static int answer_content(struct mcp_call *call, json_t *content)
{
	mcp_call_answer(call, (struct mcp_answer){ .content = content });
	return 0;
}

static int call_image(struct mcp_call *call, const json_t *arguments _unused_)
{
	return answer_content(call, json_pack("[o]", mcp_image(FIXTURE_PNG, "image/png")));
}

static int call_audio(struct mcp_call *call, const json_t *arguments _unused_)
{
	return answer_content(call, json_pack("[{s:s, s:s, s:s}]", "type", "audio", "data",
					      FIXTURE_WAV, "mimeType", "audio/wav"));
}

static int call_resource(struct mcp_call *call, const json_t *arguments _unused_)
{
	return answer_content(call,
			      json_pack("[o]", embedded("test://embedded-resource", "text/plain",
							"This is an embedded resource content.")));
}

static int call_mixed(struct mcp_call *call, const json_t *arguments _unused_)
{
	static const char text[] = "Multiple content types test:";

	return answer_content(
		call, json_pack("[o, o, o]", mcp_text(text, sizeof(text) - 1),
				mcp_image(FIXTURE_PNG, "image/png"),
				embedded("test://mixed-content-resource", "application/json",
					 "{\"test\":\"data\",\"value\":123}")));
}

static int call_error(struct mcp_call *call, const json_t *arguments _unused_)
{
	struct error err = { 0 };

	(void)!error_set(&err, ERROR_INTERNAL, EIO,
			 "This tool intentionally returns an error for testing");
	mcp_call_refuse(call, &err);
	return 0;
}

/* --- three steps --- */

struct steps {
	struct mcp_call *call;
	struct source *timer;
	int at;
	void (*step)(struct mcp_call *call, int at);
};

static void steps_free(void *data)
{
	struct steps *s = data;

	s->timer = source_free(s->timer);
	free(s);
}

static int on_step(void *data, uint32_t events _unused_)
{
	struct steps *s = data;

	s->step(s->call, s->at++);
	if (s->at == 3)
		return fixture_say(s->call, "The tool has gone through its three steps.");
	source_set_time(s->timer, clock_now_ns() + 50 * NS_PER_MS);
	return 0;
}

static int take_steps(struct mcp_call *call, void (*step)(struct mcp_call *call, int at))
{
	static const struct mcp_call_ops ops = { .free = steps_free };
	struct steps *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct steps){ .call = call, .step = step };
	if (loop_add_timer(mcp_call_app(call)->loop, clock_now_ns(), (struct handler){ on_step, s },
			   &s->timer) < 0) {
		free(s);
		return -ENOMEM;
	}
	mcp_call_set(call, s, &ops);
	return 0;
}

static void log_step(struct mcp_call *call, int at)
{
	static const char *const words[] = { "Tool execution started", "Tool processing data",
					     "Tool execution completed" };

	mcp_call_log(call, MCP_LOG_INFO, "fixture", json_string(words[at]));
}

static void progress_step(struct mcp_call *call, int at)
{
	mcp_call_progress(call, 50.0 * at, 100, NULL);
}

static int call_logging(struct mcp_call *call, const json_t *arguments _unused_)
{
	return take_steps(call, log_step);
}

static int call_progress(struct mcp_call *call, const json_t *arguments _unused_)
{
	return take_steps(call, progress_step);
}

static int call_tool_change(struct mcp_call *call, const json_t *arguments _unused_)
{
	mcp_lists_changed(mcp_call_server(call), MCP_TOOLS_CHANGED);
	return fixture_say(call, "The tools have changed.");
}

static int call_prompt_change(struct mcp_call *call, const json_t *arguments _unused_)
{
	mcp_lists_changed(mcp_call_server(call), MCP_PROMPTS_CHANGED);
	return fixture_say(call, "The prompts have changed.");
}

static json_t *header_input(const struct mcp_options *app _unused_)
{
	return fixture_schema("{\"type\": \"object\", \"properties\": {\"region\": {\"type\": "
			      "\"string\", \"x-mcp-header\": \"Region\"}}, \"required\": "
			      "[\"region\"]}");
}

static json_t *wide_input(const struct mcp_options *app _unused_)
{
	return fixture_schema(
		"{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"type\": "
		"\"object\", \"$defs\": {\"address\": {\"$anchor\": \"addressDef\", \"type\": "
		"\"object\", \"properties\": {\"street\": {\"type\": \"string\"}, \"city\": "
		"{\"type\": \"string\"}}}}, \"properties\": {\"name\": {\"type\": \"string\"}, "
		"\"address\": {\"$ref\": \"#/$defs/address\"}, \"contactMethod\": {\"type\": "
		"\"string\", \"enum\": [\"phone\", \"email\"]}, \"phone\": {\"type\": \"string\"}, "
		"\"email\": {\"type\": \"string\"}}, \"allOf\": [{\"anyOf\": [{\"required\": "
		"[\"phone\"]}, {\"required\": [\"email\"]}]}], \"if\": {\"properties\": "
		"{\"contactMethod\": {\"const\": \"phone\"}}, \"required\": [\"contactMethod\"]}, "
		"\"then\": {\"required\": [\"phone\"]}, \"else\": {\"required\": [\"email\"]}, "
		"\"additionalProperties\": false}");
}

#define PLAIN(name_, call_)                                                                        \
	{                                                                                          \
		.name = (name_), .title = (name_),                                                 \
		.description = "A tool of the conformance suite",                                  \
		.input_schema = fixture_no_input, .call = (call_)                                  \
	}

const struct mcp_tool fixture_tools[] = {
	PLAIN("test_simple_text", call_text),
	PLAIN("test_image_content", call_image),
	PLAIN("test_audio_content", call_audio),
	PLAIN("test_embedded_resource", call_resource),
	PLAIN("test_multiple_content_types", call_mixed),
	PLAIN("test_tool_with_logging", call_logging),
	PLAIN("test_logging_tool", call_logging),
	PLAIN("test_error_handling", call_error),
	PLAIN("test_tool_with_progress", call_progress),
	PLAIN("test_reconnection", call_progress),
	PLAIN("test_trigger_tool_change", call_tool_change),
	PLAIN("test_trigger_prompt_change", call_prompt_change),
	{ .name = "test_header",
	  .title = "Header",
	  .description = "Repeats an argument in a header",
	  .input_schema = header_input,
	  .call = call_text },
	{ .name = "json_schema_2020_12_tool",
	  .title = "Schema",
	  .description = "Tool with JSON Schema 2020-12 features",
	  .input_schema = wide_input,
	  .call = call_text },
	{ 0 },
};
