/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of the conformance suite that need input of the client: each looks for it, and asks when it is not there. */
#include "fixture.h"

#include <string.h>

/* An elicitation that asks for some properties. */
static json_t *form(const char *message, const char *properties)
{
	json_t *schema = fixture_schema(properties);

	return json_pack("{s:s, s:{s:s, s:s, s:o}}", "method", "elicitation/create", "params",
			 "mode", "form", "message", message, "requestedSchema", schema);
}

static json_t *one_text(const char *message, const char *name)
{
	return json_pack("{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s}}, s:[s]}}}", "method",
			 "elicitation/create", "params", "mode", "form", "message", message,
			 "requestedSchema", "type", "object", "properties", name, "type", "string",
			 "required", name);
}

static json_t *confirm(void)
{
	return form("Please confirm", "{\"type\": \"object\", \"properties\": {\"ok\": {\"type\": "
				      "\"boolean\"}}, \"required\": [\"ok\"]}");
}

static json_t *sampling(const char *text)
{
	return json_pack("{s:s, s:{s:[{s:s, s:{s:s, s:s}}], s:i}}", "method",
			 "sampling/createMessage", "params", "messages", "role", "user", "content",
			 "type", "text", "text", text, "maxTokens", 100);
}

static json_t *roots(void)
{
	return json_pack("{s:s, s:{}}", "method", "roots/list", "params");
}

/* Says what came, after some words. */
static int say_input(struct mcp_call *call, const char *words, const json_t *input)
{
	char *text = json_dumps(input, JSON_COMPACT);
	json_t *all = json_sprintf("%s%s", words, text ? text : "");

	free(text);
	(void)fixture_say(call, json_string_value(all));
	json_decref(all);
	return 0;
}

/* --- one question --- */

static const json_t *content_of(const struct mcp_call *call, const char *key)
{
	return json_object_get(mcp_call_input(call, key), "content");
}

static int call_elicitation_result(struct mcp_call *call, const json_t *arguments _unused_)
{
	const char *name = json_string_value(
		json_object_get(content_of(call, "user_name"), "name"));
	json_t *text;

	if (!name)
		return mcp_call_ask(
			call,
			json_pack("{s:o}", "user_name", one_text("What is your name?", "name")),
			NULL);
	text = json_sprintf("Hello, %s!", name);
	(void)fixture_say(call, json_string_value(text));
	json_decref(text);
	return 0;
}

static int call_sampling_result(struct mcp_call *call, const json_t *arguments _unused_)
{
	const json_t *input = mcp_call_input(call, "capital_question");

	if (!input)
		return mcp_call_ask(call,
				    json_pack("{s:o}", "capital_question",
					      sampling("What is the capital of France?")),
				    NULL);
	return say_input(call, "LLM response: ", json_object_get(input, "content"));
}

static int call_roots_result(struct mcp_call *call, const json_t *arguments _unused_)
{
	const json_t *input = mcp_call_input(call, "client_roots");

	if (!input)
		return mcp_call_ask(call, json_pack("{s:o}", "client_roots", roots()), NULL);
	return say_input(call, "Roots: ", json_object_get(input, "roots"));
}

static int call_state_result(struct mcp_call *call, const json_t *arguments _unused_)
{
	if (!mcp_call_state(call) || !mcp_call_input(call, "confirm"))
		return mcp_call_ask(call, json_pack("{s:o}", "confirm", confirm()),
				    json_pack("{s:s}", "step", "confirm"));
	return fixture_say(call, "state-ok");
}

/* --- several --- */

static int call_multiple_result(struct mcp_call *call, const json_t *arguments _unused_)
{
	if (!mcp_call_input(call, "user_name") || !mcp_call_input(call, "greeting") ||
	    !mcp_call_input(call, "client_roots"))
		return mcp_call_ask(call,
				    json_pack("{s:o, s:o, s:o}", "user_name",
					      one_text("What is your name?", "name"), "greeting",
					      sampling("Generate a greeting"), "client_roots",
					      roots()),
				    json_pack("{s:i}", "round", 1));
	return say_input(call, "Inputs: ", mcp_call_input(call, "user_name"));
}

static int call_rounds_result(struct mcp_call *call, const json_t *arguments _unused_)
{
	const json_t *name = json_object_get(content_of(call, "step1"), "name");
	const json_t *before = json_object_get(mcp_call_state(call), "name");

	if (before && mcp_call_input(call, "step2"))
		return say_input(call, "Done: ", content_of(call, "step2"));
	if (name)
		return mcp_call_ask(
			call,
			json_pack("{s:o}", "step2",
				  one_text("Step 2: What is your favorite color?", "color")),
			json_pack("{s:i, s:O}", "round", 2, "name", name));
	return mcp_call_ask(
		call, json_pack("{s:o}", "step1", one_text("Step 1: What is your name?", "name")),
		json_pack("{s:i}", "round", 1));
}

/* Only what the client has declared. */
static int call_able_result(struct mcp_call *call, const json_t *arguments _unused_)
{
	const json_t *able = mcp_call_able(call);
	json_t *requests = json_object();

	if (mcp_call_input(call, "greeting") || mcp_call_input(call, "user_name"))
		return fixture_say(call, "Thank you.");
	if (json_object_get(able, "sampling"))
		(void)json_object_set_new(requests, "greeting", sampling("Generate a greeting"));
	if (json_object_get(able, "elicitation"))
		(void)json_object_set_new(requests, "user_name",
					  one_text("What is your name?", "name"));
	return mcp_call_ask(call, requests, NULL);
}

static int call_missing_capability(struct mcp_call *call, const json_t *arguments _unused_)
{
	if (!mcp_call_input(call, "question"))
		return mcp_call_ask(call, json_pack("{s:o}", "question", sampling("Hello?")), NULL);
	return fixture_say(call, "The client can sample.");
}

/* --- legacy: the same over the connection of the call --- */

static int call_sampling(struct mcp_call *call, const json_t *arguments)
{
	const json_t *input = mcp_call_input(call, "prompt");
	const char *prompt = json_string_value(json_object_get(arguments, "prompt"));

	if (!input)
		return mcp_call_ask(
			call, json_pack("{s:o}", "prompt", sampling(prompt ? prompt : "")), NULL);
	return say_input(call, "LLM response: ", json_object_get(input, "content"));
}

static int ask_form(struct mcp_call *call, const char *message, const char *schema,
		    const char *words)
{
	const json_t *input = mcp_call_input(call, "form");

	if (!input)
		return mcp_call_ask(call, json_pack("{s:o}", "form", form(message, schema)), NULL);
	return say_input(call, words, input);
}

static int call_elicitation(struct mcp_call *call, const json_t *arguments)
{
	const char *message = json_string_value(json_object_get(arguments, "message"));

	return ask_form(call, message ? message : "Please provide your information",
			"{\"type\": \"object\", \"properties\": {\"username\": {\"type\": "
			"\"string\", \"description\": \"User's response\"}, \"email\": {\"type\": "
			"\"string\", \"description\": \"User's email address\"}}, \"required\": "
			"[\"username\", \"email\"]}",
			"User response: ");
}

static int call_defaults(struct mcp_call *call, const json_t *arguments _unused_)
{
	return ask_form(
		call, "Please review",
		"{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", "
		"\"default\": \"John Doe\"}, \"age\": {\"type\": \"integer\", \"default\": 30}, "
		"\"score\": {\"type\": \"number\", \"default\": 95.5}, \"status\": {\"type\": "
		"\"string\", \"enum\": [\"active\", \"inactive\", \"pending\"], \"default\": "
		"\"active\"}, \"verified\": {\"type\": \"boolean\", \"default\": true}}}",
		"Elicitation completed: ");
}

static int call_enums(struct mcp_call *call, const json_t *arguments _unused_)
{
	return ask_form(
		call, "Please choose",
		"{\"type\": \"object\", \"properties\": {\"untitledSingle\": {\"type\": "
		"\"string\", \"enum\": [\"option1\", \"option2\", \"option3\"]}, "
		"\"titledSingle\": {\"type\": \"string\", \"oneOf\": [{\"const\": \"value1\", "
		"\"title\": \"First Option\"}, {\"const\": \"value2\", \"title\": \"Second "
		"Option\"}, {\"const\": \"value3\", \"title\": \"Third Option\"}]}, "
		"\"legacyEnum\": {\"type\": \"string\", \"enum\": [\"opt1\", \"opt2\", \"opt3\"], "
		"\"enumNames\": [\"Option One\", \"Option Two\", \"Option Three\"]}, "
		"\"untitledMulti\": {\"type\": \"array\", \"items\": {\"type\": \"string\", "
		"\"enum\": [\"option1\", \"option2\", \"option3\"]}}, \"titledMulti\": {\"type\": "
		"\"array\", \"items\": {\"anyOf\": [{\"const\": \"value1\", \"title\": \"First "
		"Choice\"}, {\"const\": \"value2\", \"title\": \"Second Choice\"}, {\"const\": "
		"\"value3\", \"title\": \"Third Choice\"}]}}}}",
		"Elicitation completed: ");
}

int fixture_input_prompt(struct mcp_call *call, const json_t *arguments _unused_)
{
	const char *context = json_string_value(
		json_object_get(content_of(call, "user_context"), "context"));

	if (!context)
		return mcp_call_ask(
			call,
			json_pack("{s:o}", "user_context",
				  one_text("What context should the prompt use?", "context")),
			NULL);
	mcp_call_result(call, json_pack("{s:[o]}", "messages", mcp_user_says(context)));
	return 0;
}

static json_t *prompt_input(const struct mcp_options *app _unused_)
{
	return fixture_schema("{\"type\": \"object\", \"properties\": {\"prompt\": {\"type\": "
			      "\"string\"}}, \"required\": [\"prompt\"]}");
}

static json_t *message_input(const struct mcp_options *app _unused_)
{
	return fixture_schema("{\"type\": \"object\", \"properties\": {\"message\": {\"type\": "
			      "\"string\"}}, \"required\": [\"message\"]}");
}

#define ASKING(name_, schema_, call_)                                                              \
	{                                                                                          \
		.name = (name_), .title = (name_),                                                 \
		.description = "A tool of the conformance suite", .input_schema = (schema_),       \
		.call = (call_)                                                                    \
	}

const struct mcp_tool fixture_input_tools[] = {
	ASKING("test_sampling", prompt_input, call_sampling),
	ASKING("test_elicitation", message_input, call_elicitation),
	ASKING("test_elicitation_sep1034_defaults", fixture_no_input, call_defaults),
	ASKING("test_elicitation_sep1330_enums", fixture_no_input, call_enums),
	ASKING("test_missing_capability", fixture_no_input, call_missing_capability),
	ASKING("test_streaming_elicitation", fixture_no_input, call_elicitation_result),
	ASKING("test_input_required_result_elicitation", fixture_no_input, call_elicitation_result),
	ASKING("test_input_required_result_sampling", fixture_no_input, call_sampling_result),
	ASKING("test_input_required_result_list_roots", fixture_no_input, call_roots_result),
	ASKING("test_input_required_result_request_state", fixture_no_input, call_state_result),
	ASKING("test_input_required_result_tampered_state", fixture_no_input, call_state_result),
	ASKING("test_input_required_result_multiple_inputs", fixture_no_input,
	       call_multiple_result),
	ASKING("test_input_required_result_multi_round", fixture_no_input, call_rounds_result),
	ASKING("test_input_required_result_capabilities", fixture_no_input, call_able_result),
	{ 0 },
};
