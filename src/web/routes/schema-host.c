/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of what the host offers: languages, policies, limits, health (doc/http.md); see schema-table.h. */
#include "web/routes/schema-table.h"

#define AVAILABILITY                                                                               \
	{ "available", "boolean" }, { "package", "string?", "what provides it" },                  \
		{ "version", "string?" },                                                          \
	{                                                                                          \
		"problem", "string?", "why it is not available"                                    \
	}

const struct schema host_shapes[] = {
	{ "LanguageVersion", "One version of a language.",
	  FIELDS({ "name", "string", "for NAME@VERSION" }, AVAILABILITY), "*" },
	{ "Language", "A language, and whether it is there.",
	  FIELDS({ "name", "string" }, { "title", "string" },
		 { "aliases", "[string]", "other names" },
		 { "extensions", "[string]", "of its files" }, { "compiled", "boolean" },
		 AVAILABILITY, { "versions", "[LanguageVersion]", "that its file defines" },
		 { "libraries", "{string}", "libraries that are there, with their versions" }),
	  "*-libraries" },
	{ "Languages", "Languages, versions and availability.",
	  FIELDS({ "languages", "[Language]" }), "*" },
	{ "PolicyLimits", "Limits under a policy; null: there is none.",
	  FIELDS({ "defaults", "{number?}", "of a request that names none" },
		 { "ceilings", "{number?}", "the most that a request may ask for" }),
	  "*" },
	{ "Policy", "A policy.",
	  FIELDS({ "name", "string" }, { "policy", "{any}", "as its file has it" },
		 { "limits", "PolicyLimits", "that hold under it" }),
	  "*" },
	{ "Policies", "Policies and the limits that hold under each.",
	  FIELDS({ "policies", "[Policy]" }), "*" },
	{ "LimitRow", "One limit.",
	  FIELDS({ "key", "string" }, { "flag", "string?", "of `atoll run`" },
		 { "unit", "bytes|seconds|count|cores" }, { "min", "number" }, { "max", "number" },
		 { "default", "number?", "under the default policy" },
		 { "ceiling", "number?", "under the default policy" }, { "help", "string" }),
	  "*" },
	{ "LimitTable", "Every limit with bounds, default and ceiling.",
	  FIELDS({ "limits", "[LimitRow]" }), "*" },
	{ "Check", "One ability of the host.",
	  FIELDS({ "name", "string" }, { "value", "string" },
		 { "verdict", "ok|warn|missing|untested" },
		 { "weakens", "boolean", "Atoll itself holds less" },
		 { "why", "string?", "what the warning means" },
		 { "fix", "string?", "one command that fixes it" }),
	  "*" },
	{ "CheckSection", "Checks of one subject.",
	  FIELDS({ "name", "string" }, { "checks", "[Check]" }), "*" },
	{ "Doctor", "Isolation that this host can enforce.",
	  FIELDS({ "ok", "boolean", "the default policy can be enforced in full" },
		 { "summary", "string" }, { "fix", "string?", "one command that fixes it" },
		 { "missing", "[string]", "layers" }, { "cgroup", "string?" },
		 { "landlock", "integer", "the ABI in force" }, { "rootless", "boolean" },
		 { "sections", "[CheckSection]", "checks by subject" }),
	  "*" },
	{ "Status", "One word.", FIELDS({ "status", "string" }), "*" },
	{ "Ready", "Readiness, and the reason if the daemon is not ready.",
	  FIELDS({ "status", "string" }, { "broker", "boolean", "sandboxes can be made" },
		 { "storage", "boolean", "results can be kept" },
		 { "draining", "boolean", "the daemon is ending" },
		 { "damaged", "integer", "histories that were damaged and are not repaired" }),
	  "*" },
	{ 0 },
};
