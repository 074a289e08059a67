/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of what the host offers: languages, policies, limits, health (doc/http.md); see schema-table.h. */
#include "web/routes/schema-shapes.h"

#define AVAILABILITY                                                                               \
	{ "available", "boolean", NULL }, { "package", "string?", "what provides it" },            \
		{ "version", "string?", NULL },                                                    \
	{                                                                                          \
		"problem", "string?", "why it is not available"                                    \
	}

static const struct schema_field version[] = {
	{ "name", "string", "for NAME@VERSION" },
	AVAILABILITY,
	{ 0 },
};

static const struct schema_field language[] = {
	{ "name", "string", NULL },
	{ "title", "string", NULL },
	{ "aliases", "[string]", "other names" },
	{ "extensions", "[string]", "of its files" },
	{ "compiled", "boolean", NULL },
	AVAILABILITY,
	{ "versions", "[LanguageVersion]", "that its file defines" },
	{ "libraries", "{string}", "libraries that are there, with their versions" },
	{ 0 },
};

static const struct schema_field languages[] = { { "languages", "[Language]", NULL }, { 0 } };

static const struct schema_field policy_limits[] = {
	{ "defaults", "{number?}", "of a request that names none" },
	{ "ceilings", "{number?}", "the most that a request may ask for" },
	{ 0 },
};

static const struct schema_field policy[] = {
	{ "name", "string", NULL },
	{ "policy", "{any}", "as its file has it" },
	{ "limits", "PolicyLimits", "that hold under it" },
	{ 0 },
};

static const struct schema_field policies[] = { { "policies", "[Policy]", NULL }, { 0 } };

static const struct schema_field limit_row[] = {
	{ "key", "string", NULL },
	{ "flag", "string?", "of `atoll run`" },
	{ "unit", "bytes|seconds|count|cores", NULL },
	{ "min", "number", NULL },
	{ "max", "number", NULL },
	{ "default", "number?", "under the default policy" },
	{ "ceiling", "number?", "under the default policy" },
	{ "help", "string", NULL },
	{ 0 },
};

static const struct schema_field limit_table[] = { { "limits", "[LimitRow]", NULL }, { 0 } };

static const struct schema_field check[] = {
	{ "name", "string", NULL },
	{ "value", "string", NULL },
	{ "verdict", "ok|warn|missing|untested", NULL },
	{ "weakens", "boolean", "Atoll itself holds less" },
	{ "why", "string?", "what the warning means" },
	{ "fix", "string?", "one command that fixes it" },
	{ 0 },
};

static const struct schema_field section[] = {
	{ "name", "string", NULL },
	{ "checks", "[Check]", NULL },
	{ 0 },
};

static const struct schema_field doctor[] = {
	{ "ok", "boolean", "the default policy can be enforced in full" },
	{ "summary", "string", NULL },
	{ "fix", "string?", "one command that fixes it" },
	{ "missing", "[string]", "layers" },
	{ "cgroup", "string?", NULL },
	{ "landlock", "integer", "the ABI in force" },
	{ "rootless", "boolean", NULL },
	{ "sections", "[CheckSection]", "checks by subject" },
	{ 0 },
};

static const struct schema_field status_only[] = {
	{ "status", "string", NULL },
	{ 0 },
};

static const struct schema_field ready[] = {
	{ "status", "string", NULL },
	{ "broker", "boolean", "sandboxes can be made" },
	{ "storage", "boolean", "results can be kept" },
	{ "draining", "boolean", "the daemon is ending" },
	{ "damaged", "integer", "histories that were damaged and are not repaired" },
	{ 0 },
};

const struct schema host_shapes[] = {
	{ "LanguageVersion", "One version of a language.", version, "*" },
	{ "Language", "A language, and whether it is there.", language, "*-libraries" },
	{ "Languages", "Languages, versions and availability.", languages, "*" },
	{ "PolicyLimits", "Limits under a policy; null: there is none.", policy_limits, "*" },
	{ "Policy", "A policy.", policy, "*" },
	{ "Policies", "Policies and the limits that hold under each.", policies, "*" },
	{ "LimitRow", "One limit.", limit_row, "*" },
	{ "LimitTable", "Every limit with bounds, default and ceiling.", limit_table, "*" },
	{ "Check", "One ability of the host.", check, "*" },
	{ "CheckSection", "Checks of one subject.", section, "*" },
	{ "Doctor", "Isolation that this host can enforce.", doctor, "*" },
	{ "Status", "One word.", status_only, "*" },
	{ "Ready", "Readiness, and the reason if the daemon is not ready.", ready, "*" },
	{ 0 },
};
