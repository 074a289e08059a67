/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a Python session. Its runner holds them (runners/python/session_tools.py); here they are checked, so that a word that the
 * runner would not know is refused instead of permitting everything.
 */
#include "session/session-private.h"

#include <string.h>

static int check_modules(const char *field, const json_t *names, struct error *err)
{
	size_t i;
	json_t *name;

	if (!json_is_array(names))
		return error_field(err, field, "%s: give a list of modules", field);
	json_array_foreach(names, i, name) if (json_string_length(name) == 0) return error_field(
		err, field, "%s: give a list of modules", field);
	return 0;
}

static int check_imports(const char *field, const json_t *imports, struct error *err)
{
	const json_t *allow = json_object_get(imports, "allow"),
		     *deny = json_object_get(imports, "deny");
	int r;

	if (!json_is_object(imports) || json_object_size(imports) != (size_t)(!!allow + !!deny))
		return error_field(err, field, "%s: give a list of modules as allow, or as deny",
				   field);
	r = allow ? check_modules("rules.imports.allow", allow, err) : 0;
	if (r >= 0 && deny)
		r = check_modules("rules.imports.deny", deny, err);
	return r;
}

static int check_switch(const char *field, const json_t *value, struct error *err)
{
	return json_is_boolean(value) ? 0
				      : error_field(err, field, "%s: give true or false", field);
}

static const struct rule_key {
	const char *key, *field;
	int (*check)(const char *field, const json_t *value, struct error *err);
} rule_keys[] = {
	{ "imports", "rules.imports", check_imports },
	{ "filesystem", "rules.filesystem", check_switch },
	{ "subprocess", "rules.subprocess", check_switch },
};

static int check_rule(const char *key, const json_t *value, struct error *err)
{
	char field[80];

	for (size_t i = 0; i < ARRAY_SIZE(rule_keys); i++)
		if (strcmp(rule_keys[i].key, key) == 0)
			return rule_keys[i].check(rule_keys[i].field, value, err);
	(void)snprintf(field, sizeof(field), "rules.%.64s", key);
	return error_field(err, field,
			   "%s: rules of a session are imports, filesystem and subprocess", field);
}

static int check_rules(const struct session *s, struct error *err)
{
	const char *key;
	json_t *value;
	int r = 0;

	if (s->rules && strcmp(s->language, "python") != 0)
		return error_field(err, "rules", "rules: only Python sessions have rules");
	json_object_foreach(s->rules, key, value)
	{
		r = check_rule(key, value, err);
		if (r < 0)
			break;
	}
	return r;
}

int session_decide_rules(struct session *s, const json_t *imports, struct error *err)
{
	json_t *rules;
	int r = check_rules(s, err);

	if (r < 0 || !imports)
		return r;
	if (json_object_get(s->rules, "imports"))
		return error_refuse(err, "rules",
				    "rules: the policy %.64s decides imports; leave them out",
				    s->policy);
	rules = s->rules ? json_copy(s->rules) : json_object();
	if (!rules || json_object_set_new(rules, "imports", json_deep_copy(imports)) < 0) {
		json_decref(rules);
		return error_oom(err);
	}
	json_decref(s->rules);
	s->rules = rules;
	return 0;
}
