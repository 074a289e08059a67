/* SPDX-License-Identifier: Apache-2.0 */
/* Tools about this host: its languages, and what its policies allow. */
#include "mcp/execute/execute-004.h"
#include "mcp/tool-shapes.h"
#include "run/executor.h"

#include <string.h>

/* --- list_languages --- */

static void on_languages(void *data, json_t *tree, const struct error *err)
{
	work_replied(data, tree, tree ? NULL : err);
}

static bool has_sessions(const struct mcp_options *app, const char *name)
{
	const struct tool_language *l = app->languages;

	while (l->name && strcmp(l->name, name) != 0)
		l++;
	return l->name && l->has_sessions;
}

/* Those that are there. */
static json_t *libraries_of(const json_t *language)
{
	json_t *made = json_object(), *version;
	const char *name;

	json_object_foreach(json_object_get(language, "libraries"), name, version)
	{
		if (json_is_string(version))
			(void)json_object_set(made, name, version);
	}
	return made;
}

static json_t *brief_language(const struct mcp_options *app, const json_t *l)
{
	const char *name = json_string_value(json_object_get(l, "name"));
	json_t *version = json_object_get(l, "version");
	bool available = json_is_true(json_object_get(l, "available"));

	return json_pack(
		"{s:s, s:O, s:O, s:b, s:O, s:O, s:b, s:o, s:o}", "name", name, "title",
		json_object_get(l, "title"), "aliases", json_object_get(l, "aliases"), "available",
		available, "version", json_is_string(version) ? version : json_null(), "compiled",
		json_object_get(l, "compiled"), "sessions", has_sessions(app, name), "libraries",
		libraries_of(l), "install",
		available ? json_null()
			  : json_sprintf("apt install %s",
					 json_string_value(json_object_get(l, "package"))));
}

static json_t *brief_languages(const struct mcp_options *app, const json_t *tree)
{
	json_t *list = json_array(), *one;
	size_t i;

	json_array_foreach(json_object_get(tree, "languages"), i, one)
	{
		if (json_array_append_new(list, brief_language(app, one)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return json_pack("{s:o}", "languages", list);
}

json_t *run_list_languages(struct mcp_work *w, struct error *err)
{
	struct work_reply reply = { .work = w };
	int r = executor_ask(w->app->executor, EXECUTOR_LANGUAGES,
			     (struct executor_asker){ &reply, on_languages }, err);
	json_auto_t *tree = work_await(&reply, r, err);

	return tree ? brief_languages(w->app, tree) : NULL;
}

/* --- explain_policy --- */

static json_t *policy_names(const struct mcp_work *w)
{
	json_t *policies = NULL, *names = json_array(), *one;
	size_t i;

	if (executor_policies(w->app->executor, &policies, NULL) < 0)
		return names;
	json_array_foreach(policies, i, one)(void)
		json_array_append(names, json_object_get(one, "name"));
	json_decref(policies);
	return names;
}

static json_t *rules_of(const json_t *decision)
{
	json_t *list = json_array(), *row;
	const char *field;

	json_object_foreach((json_t *)(uintptr_t)decision, field, row)(void)
		json_array_append_new(list, json_pack("{s:s, s:O, s:O}", "field", field, "value",
						      json_object_get(row, "value"), "rule",
						      json_object_get(row, "rule")));
	return list;
}

json_t *run_explain_policy(struct mcp_work *w, struct error *err)
{
	/* The arguments as a request: with code, which no policy looks at. */
	json_auto_t *request = json_pack("{s:s, s:s}", "language", "python", "code", "0");
	json_auto_t *decision = NULL;
	int r = request && json_object_update(request, w->arguments) == 0
			? executor_explain(w->app->executor, request, &decision, err)
			: error_oom(err);

	if (r < 0 && err->code != ERROR_INPUT && err->code != ERROR_POLICY &&
	    err->code != ERROR_RUNTIME)
		return NULL;
	return json_pack("{s:b, s:s?, s:s?, s:o, s:o}", "allowed", r == 0, "refusal",
			 r < 0 ? err->text : NULL, "field",
			 r < 0 && err->field[0] ? err->field : NULL, "rules", rules_of(decision),
			 "policies", policy_names(w));
}
