/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the MCP conformance suite expects of a server under test: rows like those of the product, which go through the product's
 * dispatcher. Only the front `build/test/mcp/atolld` has them.
 */
#pragma once

#include "mcp/input.h"
#include "mcp/prompt.h"
#include "mcp/resource.h"
#include "mcp/tool.h"

/* A 1 × 1 PNG and a WAV without samples, in base64. */
#define FIXTURE_PNG                                                                                \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5E" \
	"rkJggg=="
#define FIXTURE_WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

/* {"type": "object", "properties": {}} */
json_t *fixture_no_input(const struct mcp_options *app);
/* Answers a tool's call with a sentence. */
int fixture_say(struct mcp_call *call, const char *text);
/* A schema from JSON's text. */
json_t *fixture_schema(const char *text);

/* --- fixture-input.c: tools that need input of the client --- */
extern const struct mcp_tool fixture_input_tools[];
int fixture_input_prompt(struct mcp_call *call, const json_t *arguments);
/* --- fixture-job.c: tools that take long --- */
extern const struct mcp_tool fixture_job_tools[];
/* --- fixture-tool.c --- */
extern const struct mcp_tool fixture_tools[];
