/* SPDX-License-Identifier: Apache-2.0 */
/* Resources and prompts of the conformance suite, and the tables of this front. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "atoll/daemon/front.h"

json_t *fixture_schema(const char *text)
{
	return json_loads(text, 0, NULL);
}

json_t *fixture_no_input(const struct mcp_options *app _unused_)
{
	return fixture_schema("{\"type\": \"object\", \"properties\": {}}");
}

int fixture_say(struct mcp_call *call, const char *text)
{
	mcp_call_answer(call, (struct mcp_answer){
				      .content = json_pack("[o]", mcp_text(text, strlen(text))) });
	return 0;
}

/* --- resources --- */

static int read_text(struct mcp_call *call, const struct mcp_uri *uri)
{
	mcp_call_result(call, json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri->text,
					"mimeType", "text/plain", "text",
					"This is the content of the static text resource."));
	return 0;
}

static int read_binary(struct mcp_call *call, const struct mcp_uri *uri)
{
	mcp_call_result(call, json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri->text,
					"mimeType", "image/png", "blob", FIXTURE_PNG));
	return 0;
}

static int read_template(struct mcp_call *call, const struct mcp_uri *uri)
{
	const char *id = mcp_uri_value(uri, "id");
	json_t *data = json_pack("{s:s, s:b, s:o}", "id", id, "templateTest", 1, "data",
				 json_sprintf("Data for ID: %s", id));
	char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;

	json_decref(data);
	mcp_call_result(call,
			text ? json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri->text,
					 "mimeType", "application/json", "text", text)
			     : NULL);
	free(text);
	return 0;
}

static const struct mcp_resource fixture_resources[] = {
	{ .uri = "test://static-text",
	  .name = "static-text",
	  .description = "Static text",
	  .mime_type = "text/plain",
	  .read = read_text },
	{ .uri = "test://static-binary",
	  .name = "static-binary",
	  .description = "Static image",
	  .mime_type = "image/png",
	  .read = read_binary },
	{ .uri = "test://watched-resource",
	  .name = "watched-resource",
	  .description = "A resource to subscribe to",
	  .mime_type = "text/plain",
	  .read = read_text },
	{ .uri = "test://template/{id}/data",
	  .name = "template",
	  .description = "Data by id",
	  .mime_type = "application/json",
	  .read = read_template },
	{ 0 },
};

/* --- prompts --- */

static int get_simple(struct mcp_call *call, const json_t *arguments _unused_)
{
	mcp_call_result(call, json_pack("{s:[o]}", "messages",
					mcp_user_says("This is a simple prompt for testing.")));
	return 0;
}

static int get_with_arguments(struct mcp_call *call, const json_t *arguments)
{
	json_t *text = json_sprintf("Prompt with arguments: arg1='%s', arg2='%s'",
				    json_string_value(json_object_get(arguments, "arg1")),
				    json_string_value(json_object_get(arguments, "arg2")));

	mcp_call_result(call,
			json_pack("{s:[o]}", "messages", mcp_user_says(json_string_value(text))));
	json_decref(text);
	return 0;
}

static int get_with_resource(struct mcp_call *call, const json_t *arguments)
{
	mcp_call_result(call,
			json_pack("{s:[{s:s, s:{s:s, s:{s:O, s:s, s:s}}}, o]}", "messages", "role",
				  "user", "content", "type", "resource", "resource", "uri",
				  json_object_get(arguments, "resourceUri"), "mimeType",
				  "text/plain", "text", "Embedded resource content for testing.",
				  mcp_user_says("Please process the embedded resource above.")));
	return 0;
}

static int get_with_image(struct mcp_call *call, const json_t *arguments _unused_)
{
	mcp_call_result(call, json_pack("{s:[{s:s, s:o}, o]}", "messages", "role", "user",
					"content", mcp_image(FIXTURE_PNG, "image/png"),
					mcp_user_says("Please analyze the image above.")));
	return 0;
}

static const struct mcp_prompt fixture_prompts[] = {
	{ .name = "test_simple_prompt", .description = "Without arguments", .get = get_simple },
	{ .name = "test_prompt_with_arguments",
	  .description = "With two arguments",
	  .arguments = { { "arg1", "First test argument", true, NULL },
			 { "arg2", "Second test argument", true, NULL } },
	  .get = get_with_arguments },
	{ .name = "test_prompt_with_embedded_resource",
	  .description = "With a resource",
	  .arguments = { { "resourceUri", "URI of the resource to embed", true, NULL } },
	  .get = get_with_resource },
	{ .name = "test_prompt_with_image", .description = "With an image", .get = get_with_image },
	{ .name = "test_input_required_result_prompt",
	  .description = "With input of the client",
	  .get = fixture_input_prompt },
	{ 0 },
};

/* --- the front's tables --- */

static const struct mcp_tables tables[] = {
	{ .tools = fixture_tools,
	  .resources = fixture_resources,
	  .prompts = fixture_prompts,
	  .changes = true },
	{ .tools = fixture_input_tools },
	{ .tools = fixture_job_tools },
};
const struct mcp_tables *const front_mcp_tables[] = { &mcp_product_tables, &tables[0], &tables[1],
						      &tables[2], NULL };
