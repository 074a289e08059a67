/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of what the host offers: languages, policies, limits, health (doc/http.md); see schema-table.h. */
#include "web/routes/schema-shapes.h"

#define AVAILABILITY                                                                               \
	{ "available", "boolean", NULL }, { "package", "string?", "what provides it" },            \
		{ "version", "string?", NULL },                                                    \
	{                                                                                          \
		"problem", "string?", "why it is not available"                                    \
	}

const struct schema host_shapes[] = {
	{ "LanguageVersion", "One version of a language.",
	  FIELDS({ "name", "string", "for NAME@VERSION" }, AVAILABILITY), "*" },
	{ "Language", "A language, and whether it is there.",
	  FIELDS({ "name", "string", NULL }, { "title", "string", NULL },
		 { "aliases", "[string]", "other names" },
		 { "extensions", "[string]", "of its files" }, { "compiled", "boolean", NULL },
		 AVAILABILITY, { "versions", "[LanguageVersion]", "that its file defines" },
		 { "libraries", "{string}", "libraries that are there, with their versions" }),
	  "*-libraries" },
	{ "Languages", "Languages, versions and availability.",
	  FIELDS({ "languages", "[Language]", NULL }), "*" },
	{ "PolicyLimits", "Limits under a policy; null: there is none.",
	  FIELDS({ "defaults", "{number?}", "of a request that names none" },
		 { "ceilings", "{number?}", "the most that a request may ask for" }),
	  "*" },
	{ "Policy", "A policy.",
	  FIELDS({ "name", "string", NULL }, { "policy", "{any}", "as its file has it" },
		 { "limits", "PolicyLimits", "that hold under it" }),
	  "*" },
	{ "Policies", "Policies and the limits that hold under each.",
	  FIELDS({ "policies", "[Policy]", NULL }), "*" },
	{ "LimitRow", "One limit.",
	  FIELDS({ "key", "string", NULL }, { "flag", "string?", "of `atoll run`" },
		 { "unit", "bytes|seconds|count|cores", NULL }, { "min", "number", NULL },
		 { "max", "number", NULL }, { "default", "number?", "under the default policy" },
		 { "ceiling", "number?", "under the default policy" }, { "help", "string", NULL }),
	  "*" },
	{ "LimitTable", "Every limit with bounds, default and ceiling.",
	  FIELDS({ "limits", "[LimitRow]", NULL }), "*" },
	{ "Check", "One ability of the host.",
	  FIELDS({ "name", "string", NULL }, { "value", "string", NULL },
		 { "verdict", "ok|warn|missing|untested", NULL },
		 { "weakens", "boolean", "Atoll itself holds less" },
		 { "why", "string?", "what the warning means" },
		 { "fix", "string?", "one command that fixes it" }),
	  "*" },
	{ "CheckSection", "Checks of one subject.",
	  FIELDS({ "name", "string", NULL }, { "checks", "[Check]", NULL }), "*" },
	{ "Doctor", "Isolation that this host can enforce.",
	  FIELDS({ "ok", "boolean", "the default policy can be enforced in full" },
		 { "summary", "string", NULL }, { "fix", "string?", "one command that fixes it" },
		 { "missing", "[string]", "layers" }, { "cgroup", "string?", NULL },
		 { "landlock", "integer", "the ABI in force" }, { "rootless", "boolean", NULL },
		 { "sections", "[CheckSection]", "checks by subject" }),
	  "*" },
	{ "Status", "One word.", FIELDS({ "status", "string", NULL }), "*" },
	{ "Ready", "Readiness, and the reason if the daemon is not ready.",
	  FIELDS({ "status", "string", NULL }, { "broker", "boolean", "sandboxes can be made" },
		 { "storage", "boolean", "results can be kept" },
		 { "draining", "boolean", "the daemon is ending" },
		 { "damaged", "integer", "histories that were damaged and are not repaired" }),
	  "*" },
	{ 0 },
};
