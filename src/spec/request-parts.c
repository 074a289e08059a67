/* SPDX-License-Identifier: Apache-2.0 */
/* The structured parts of a request: variables, stages, invoke. */
#include "spec/request-read.h"

#include <stdio.h>
#include <string.h>

#include "spec/knob.h"

enum { STAGE_NAME_MAX = 63, NAME_MAX_BYTES = 256 };

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS	"0123456789"

static bool is_variable_name(const char *name)
{
	return *name && !strchr(DIGITS, *name) && name[strspn(name, LETTERS DIGITS "_")] == '\0';
}

int request_read_env(const struct reader *r, const json_t *value, struct var_list *ret)
{
	struct var_list list = { .n = 0 };
	const char *name;
	const json_t *text;

	if (!json_is_object(value))
		return reader_refuse(
			r, "%s is not an object of names and values, such as {\"LANG\": \"C\"}",
			quote_json(value).text);
	if (json_object_size(value) > REQUEST_ENV_MAX)
		return reader_refuse(r, "there are %zu variables, more than the %d allowed",
				     json_object_size(value), REQUEST_ENV_MAX);
	list.vars = arena_alloc(r->arena, json_object_size(value) * sizeof(*list.vars));
	if (!list.vars)
		return reader_no_memory(r);
	json_object_foreach((json_t *)(uintptr_t)value, name, text)
	{
		struct request_var *var = &list.vars[list.n++];
		struct reader at = reader_at(r, name);
		int e;

		if (!is_variable_name(name))
			return reader_refuse(r,
					     "'%s' is not a variable name (letters, digits and "
					     "_, not starting with a digit)",
					     quote_text(name).text);
		var->name = name;
		e = read_string(&at, text, REQUEST_WORD_MAX, &var->value);
		if (e < 0)
			return e;
		if (strlen(name) + 1 + strlen(var->value) > REQUEST_WORD_MAX)
			return reader_refuse(&at, "name and value have more than %d bytes",
					     REQUEST_WORD_MAX);
	}
	*ret = list;
	return 0;
}

int request_check_words(const struct reader *r, const char *const *words, struct var_list env)
{
	size_t total = 0;

	for (; words && *words; words++)
		total += strlen(*words) + 1;
	for (size_t i = 0; i < env.n; i++)
		total += strlen(env.vars[i].name) + strlen(env.vars[i].value) + 2;
	if (total > REQUEST_WORDS_MAX)
		return reader_refuse(r,
				     "arguments and variables have %zu bytes together, more than "
				     "the %d allowed; pass large data as stdin or files",
				     total, REQUEST_WORDS_MAX);
	return 0;
}

static int stage_name(const struct reader *r, const struct key_rule *rule _unused_,
		      const json_t *value, void *object)
{
	struct request_stage *stage = object;
	int e = read_string(r, value, STAGE_NAME_MAX, &stage->name);

	if (e < 0)
		return e;
	if (!*stage->name || stage->name[strspn(stage->name, LETTERS DIGITS "_.-")])
		return reader_refuse(r, "'%s' is not a stage name (letters, digits, _ . -)",
				     quote_text(stage->name).text);
	return 0;
}

static int stage_stdin(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value, void *object)
{
	struct request_stage *stage = object;

	return request_read_bytes(r, value, &stage->stdin_data);
}

static int stage_env(const struct reader *r, const struct key_rule *rule _unused_,
		     const json_t *value, void *object)
{
	struct request_stage *stage = object;
	struct var_list list;
	int e = request_read_env(r, value, &list);

	if (e < 0)
		return e;
	stage->env = list.vars;
	stage->n_env = list.n;
	return 0;
}

static int stage_limits(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request_stage *stage = object;

	return limits_parse_at(r->field, value, &stage->limits, &stage->limits_set, r->err);
}

static const struct key_rule stage_rules[] = {
	{ .key = "name", .read = stage_name },
	{ .key = "code",
	  .read = read_text,
	  .offset = offsetof(struct request_stage, code),
	  .max = REQUEST_CODE_MAX },
	{ .key = "argv",
	  .read = read_words,
	  .offset = offsetof(struct request_stage, argv),
	  .max = REQUEST_WORD_MAX,
	  .max_count = REQUEST_ARGS_MAX },
	{ .key = "stdin", .read = stage_stdin },
	{ .key = "env", .read = stage_env },
	{ .key = "limits", .read = stage_limits },
};

/* A stage without a name is named after its position. */
static int default_name(const struct reader *r, struct request_stage *stage, size_t index)
{
	char name[32];
	int n = snprintf(name, sizeof(name), "stage-%zu", index + 1);

	stage->name = arena_strndup(r->arena, name, (size_t)MAX(n, 0));
	return stage->name ? 0 : reader_no_memory(r);
}

static int read_stage(const struct reader *r, const json_t *value, struct request_stage *stage)
{
	struct var_list env;
	int e = read_object(r, value, KEY_TABLE(stage_rules), stage);

	if (e < 0)
		return e;
	if (!stage->code == !stage->argv)
		return reader_refuse(r, "give exactly one of code and argv");
	if (stage->argv && (!stage->argv[0] || !*stage->argv[0]))
		return reader_refuse(r, "argv names no program");
	env = (struct var_list){ stage->env, stage->n_env };
	return request_check_words(r, stage->argv, env);
}

int request_read_stages(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request *req = object;
	size_t n = json_array_size(value);

	if (!json_is_array(value))
		return reader_refuse(r,
				     "%s is not a list of stages, such as [{\"name\": \"build\", "
				     "\"argv\": [\"make\"]}]",
				     quote_json(value).text);
	if (n > REQUEST_STAGES_MAX)
		return reader_refuse(r, "there are %zu stages, more than the %d allowed", n,
				     REQUEST_STAGES_MAX);
	req->stages = arena_alloc(r->arena, n * sizeof(*req->stages));
	if (!req->stages)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++) {
		struct request_stage *stage = &req->stages[i];
		struct reader at = reader_index(r, i);
		int e = read_stage(&at, json_array_get(value, i), stage);

		if (e == 0 && !stage->name)
			e = default_name(&at, stage, i);
		if (e < 0)
			return e;
		for (size_t k = 0; k < i; k++)
			if (strcmp(req->stages[k].name, stage->name) == 0)
				return reader_refuse(&at, "the name '%s' is taken by another stage",
						     stage->name);
	}
	req->n_stages = n;
	return 0;
}

static int invoke_params(const struct reader *r, const struct key_rule *rule _unused_,
			 const json_t *value, void *object)
{
	struct request *req = object;

	if (!json_is_object(value))
		return reader_refuse(r, "%s is not an object of names and values",
				     quote_json(value).text);
	req->invoke_params = value;
	return 0;
}

static const struct key_rule invoke_rules[] = {
	{ .key = "class",
	  .read = read_text,
	  .offset = offsetof(struct request, invoke_class),
	  .max = NAME_MAX_BYTES },
	{ .key = "method",
	  .read = read_text,
	  .offset = offsetof(struct request, invoke_method),
	  .max = NAME_MAX_BYTES },
	{ .key = "params", .read = invoke_params },
};

int request_read_invoke(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request *req = object;
	int e = read_object(r, value, KEY_TABLE(invoke_rules), req);

	if (e < 0)
		return e;
	if (!req->invoke_class || !req->invoke_method)
		return reader_refuse(r, "class and method are both needed");
	return 0;
}
