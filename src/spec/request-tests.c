/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program is judged: `tests`, `groups`, `stop_at`, `interactor`. Each key is read by itself; request_link_tests() then
 * finds the group of each test. A group may need others, whose tests must stand before its own: so the order of the list is an
 * order in which all of them can be decided, and no group can need itself.
 */
#include "spec/request-read.h"

#include <string.h>

#include "spec/knob.h"

const char *const interactor_files[_CHECKER_FILE_MAX + 1] = { [CHECKER_INPUT] = "input.txt",
							      [CHECKER_OUTPUT] = "/tmp/output.txt",
							      [CHECKER_EXPECTED] = "expected.txt" };

static const char *const scorings[_SCORING_MAX] = {
	[SCORING_SUM] = "sum", [SCORING_ALL] = "all", [SCORING_MIN] = "min"
};
static const char *const stops[_STOP_MAX] = {
	[STOP_NEVER] = "never", [STOP_GROUP] = "group", [STOP_FIRST] = "first"
};

/* The index of the word that value is, or -1. */
static int word_index(const json_t *value, const char *const *words, int n)
{
	for (int i = 0; json_is_string(value) && i < n; i++)
		if (strcmp(json_string_value(value), words[i]) == 0)
			return i;
	return -1;
}

static int read_label(const struct reader *r, const struct key_rule *rule, const json_t *value,
		      void *object)
{
	const char **to = (const char **)((char *)object + rule->offset);
	int e = read_string(r, value, REQUEST_TEST_NAME_MAX, to);

	return e < 0 || **to ? e : reader_refuse(r, "it is empty");
}

static int test_stdin(const struct reader *r, const struct key_rule *rule _unused_,
		      const json_t *value, void *object)
{
	struct request_test *test = object;

	return request_read_bytes(r, value, &test->stdin_data);
}

static int test_expected(const struct reader *r, const struct key_rule *rule _unused_,
			 const json_t *value, void *object)
{
	struct request_test *test = object;

	return request_read_bytes(r, value, &test->expected);
}

static int test_env(const struct reader *r, const struct key_rule *rule _unused_,
		    const json_t *value, void *object)
{
	struct request_test *test = object;
	struct var_list list;
	int e = request_read_env(r, value, &list);

	if (e < 0)
		return e;
	test->env = list.vars;
	test->n_env = list.n;
	return 0;
}

static int test_files(const struct reader *r, const struct key_rule *rule _unused_,
		      const json_t *value, void *object)
{
	struct request_test *test = object;
	struct file_list list;
	int e = request_read_file_list(r, value, &list);

	if (e < 0)
		return e;
	test->files = list.files;
	test->n_files = list.n;
	return 0;
}

static int test_limits(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value, void *object)
{
	struct request_test *test = object;

	return limits_parse_at(r->field, value, &test->limits, &test->limits_set, r->err);
}

/* A whole number, as of tests and of groups. */
static int read_points(const struct reader *r, const struct key_rule *rule, const json_t *value,
		       void *object)
{
	int64_t points = json_integer_value(value);

	if (!json_is_integer(value) || points < 0 || points > REQUEST_POINTS_MAX)
		return reader_refuse(r, "%s is not a whole number from 0 to %d",
				     quote_json(value).text, REQUEST_POINTS_MAX);
	*(int64_t *)(void *)((char *)object + rule->offset) = points;
	return 0;
}

static int test_checker(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request_test *test = object;

	return request_read_checker(r, value, test->previous, &test->checker);
}

#define TEST_MEMBER(name) .offset = offsetof(struct request_test, name)
static const struct key_rule test_rules[] = {
	{ .key = "name", .read = read_label, TEST_MEMBER(name) },
	{ .key = "stdin", .read = test_stdin },
	{ .key = "expected", .read = test_expected },
	{ .key = "args",
	  .read = read_words,
	  TEST_MEMBER(args),
	  .max = REQUEST_WORD_MAX,
	  .max_count = REQUEST_ARGS_MAX },
	{ .key = "env", .read = test_env },
	{ .key = "files", .read = test_files },
	{ .key = "limits", .read = test_limits },
	{ .key = "points", .read = read_points, TEST_MEMBER(points) },
	{ .key = "group", .read = read_label, TEST_MEMBER(group_name) },
	{ .key = "checker", .read = test_checker },
};

/* Of other judges. */
static const struct key_hint test_hints[] = {
	{ "input", "stdin" },
	{ "output", "expected" },
	{ "answer", "expected" },
	{ "expected_output", "expected" },
	{ "score", "points" },
	{ "weight", "points" },
	{ "subtask", "group" },
	{ "time_limit", "limits.timeout, or limits.cpu_time" },
	{ "memory_limit", "limits.memory" },
	{ 0 },
};

int request_read_tests(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value, void *object)
{
	struct request *req = object;
	size_t n = json_array_size(value);

	if (!json_is_array(value))
		return reader_refuse(r,
				     "%s is not a list of tests, such as [{\"stdin\": \"2\", "
				     "\"expected\": \"4\"}]",
				     quote_json(value).text);
	if (n > REQUEST_TESTS_MAX)
		return reader_refuse(r, "there are %zu tests, more than the %d allowed", n,
				     REQUEST_TESTS_MAX);
	req->tests = arena_alloc(r->arena, n * sizeof(*req->tests));
	if (!req->tests)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++) {
		struct request_test *test = &req->tests[i];
		struct reader at = reader_index(r, i);
		int e;

		test->points = -1;
		test->previous = i > 0 ? test[-1].checker.program : NULL;
		req->n_tests = i + 1; /* its checker's program is freed, also if it is refused */
		e = read_object(
			&at, json_array_get(value, i),
			(struct key_table){ test_rules, ARRAY_SIZE(test_rules), test_hints }, test);
		if (e < 0)
			return e;
	}
	return 0;
}

static int group_needs(const struct reader *r, const struct key_rule *rule _unused_,
		       const json_t *value, void *object)
{
	const struct key_rule words = { .offset = offsetof(struct request_group, needs),
					.max = REQUEST_TEST_NAME_MAX,
					.max_count = REQUEST_GROUPS_MAX };

	return read_words(r, &words, value, object);
}

static int group_scoring(const struct reader *r, const struct key_rule *rule _unused_,
			 const json_t *value, void *object)
{
	struct request_group *group = object;
	int i = word_index(value, scorings, _SCORING_MAX);

	if (i < 0)
		return reader_refuse(r, "%s is not sum, all or min", quote_json(value).text);
	group->scoring = (enum scoring)i;
	group->has_scoring = true;
	return 0;
}

#define GROUP_MEMBER(name) .offset = offsetof(struct request_group, name)
static const struct key_rule group_rules[] = {
	{ .key = "name", .read = read_label, GROUP_MEMBER(name) },
	{ .key = "needs", .read = group_needs },
	{ .key = "points", .read = read_points, GROUP_MEMBER(points) },
	{ .key = "scoring", .read = group_scoring },
};

/* The index of the group with that name; n_groups: there is none. */
static size_t find_group(const struct request *req, const char *name)
{
	size_t i = 0;

	while (i < req->n_groups && strcmp(req->groups[i].name, name) != 0)
		i++;
	return i;
}

int request_read_groups(const struct reader *r, const struct key_rule *rule _unused_,
			const json_t *value, void *object)
{
	struct request *req = object;
	size_t n = json_array_size(value);

	if (!json_is_array(value))
		return reader_refuse(r,
				     "%s is not a list of groups, such as [{\"name\": \"large\", "
				     "\"needs\": [\"small\"], \"points\": 60}]",
				     quote_json(value).text);
	if (n > REQUEST_GROUPS_MAX)
		return reader_refuse(r, "there are %zu groups, more than the %d allowed", n,
				     REQUEST_GROUPS_MAX);
	req->groups = arena_alloc(r->arena, n * sizeof(*req->groups));
	if (!req->groups)
		return reader_no_memory(r);
	for (size_t i = 0; i < n; i++) {
		struct request_group *group = &req->groups[i];
		struct reader at = reader_index(r, i);
		int e;

		group->points = -1;
		e = read_object(&at, json_array_get(value, i), KEY_TABLE(group_rules), group);
		if (e < 0)
			return e;
		if (!group->name)
			return reader_refuse(&at, "it has no name");
		if (find_group(req, group->name) < req->n_groups)
			return reader_refuse(&at, "the name '%s' is taken by another group",
					     quote_text(group->name).text);
		/* With points of its own, a group is a subtask: usually all of it, or nothing. */
		if (!group->has_scoring && group->points >= 0)
			group->scoring = SCORING_ALL;
		req->n_groups++;
	}
	return 0;
}

int request_read_stop_at(const struct reader *r, const struct key_rule *rule _unused_,
			 const json_t *value, void *object)
{
	struct request *req = object;
	int i = word_index(value, stops, _STOP_MAX);

	if (i < 0)
		return reader_refuse(r, "%s is not first, group or never", quote_json(value).text);
	req->stop_at = (enum stop_at)i;
	return 0;
}

int request_read_interactor(const struct reader *r, const struct key_rule *rule _unused_,
			    const json_t *value, void *object)
{
	struct request *req = object;

	return request_read_program(r, (json_t *)(uintptr_t)value, interactor_files,
				    &req->interactor);
}

bool request_group_needs(const struct request *req, size_t group, size_t needed)
{
	const char **needs = group < req->n_groups ? req->groups[group].needs : NULL;

	while (needs && *needs && strcmp(*needs, req->groups[needed].name) != 0)
		needs++;
	return needs && *needs;
}

/* Without `groups`, the names that tests give are the groups. */
static int name_groups(const struct reader *r, struct request *req)
{
	bool given = req->n_groups > 0;

	if (!given)
		req->groups = arena_alloc(r->arena, req->n_tests * sizeof(*req->groups));
	if (!req->groups)
		return reader_no_memory(r);
	for (size_t i = 0; i < req->n_tests; i++) {
		struct request_test *test = &req->tests[i];
		struct reader tests = reader_at(r, "tests"), at = reader_index(&tests, i);

		if (!test->group_name)
			continue;
		test->group = find_group(req, test->group_name);
		if (test->group < req->n_groups)
			continue;
		if (given)
			return reader_refuse(&at, "its group '%s' is not among groups",
					     quote_text(test->group_name).text);
		req->groups[req->n_groups++] = (struct request_group){ .name = test->group_name,
								       .points = -1 };
	}
	/* Their number is known now. */
	for (size_t i = 0; i < req->n_tests; i++)
		if (!req->tests[i].group_name)
			req->tests[i].group = req->n_groups;
	return 0;
}

/* The index of the first test of a group, or of the last one; n_tests: it has none. */
static size_t edge_test(const struct request *req, size_t group, bool last)
{
	size_t found = req->n_tests;

	for (size_t i = 0; i < req->n_tests; i++)
		if (req->tests[i].group == group && (last || found == req->n_tests))
			found = i;
	return found;
}

static int check_groups(const struct reader *r, const struct request *req)
{
	for (size_t g = 0; g < req->n_groups; g++) {
		struct reader groups = reader_at(r, "groups"), at = reader_index(&groups, g);
		size_t first = edge_test(req, g, false);

		if (first == req->n_tests)
			return reader_refuse(&at, "no test is of the group '%s'",
					     quote_text(req->groups[g].name).text);
		for (const char **name = req->groups[g].needs; name && *name; name++) {
			size_t needed = find_group(req, *name);

			if (needed == req->n_groups)
				return reader_refuse(&at,
						     "it needs '%s', which is not among groups",
						     quote_text(*name).text);
			if (edge_test(req, needed, true) >= first)
				return reader_refuse(
					&at, "it needs '%s': put the tests of that before its own",
					quote_text(*name).text);
		}
	}
	return 0;
}

/* The request's variables, with the test's own in their places or behind them. */
static int join_env(const struct reader *r, const struct request *req, struct request_test *test)
{
	struct request_var *all = arena_alloc(r->arena, (req->n_env + test->n_env) * sizeof(*all));
	size_t n = 0;

	if (!all)
		return reader_no_memory(r);
	for (size_t i = 0; i < req->n_env + test->n_env; i++) {
		const struct request_var *v = i < req->n_env ? &req->env[i]
							     : &test->env[i - req->n_env];
		size_t at = 0;

		while (at < n && strcmp(all[at].name, v->name) != 0)
			at++;
		all[at] = *v;
		n = MAX(n, at + 1);
	}
	test->env = all;
	test->n_env = n;
	return 0;
}

static int link_test(const struct reader *r, const struct request *req, struct request_test *test)
{
	int e = test->n_env > 0 ? join_env(r, req, test) : 0;

	if (e < 0)
		return e;
	if (test->n_env == 0) {
		test->env = req->env;
		test->n_env = req->n_env;
	}
	if (!test->expected.data && test->checker.kind != CHECKER_PROGRAM && !req->interactor)
		return reader_refuse(r, "expected is missing: what must it print?");
	if (req->interactor && json_object_get(json_array_get(json_object_get(req->root, "tests"),
							      (size_t)(test - req->tests)),
					       "checker"))
		return reader_refuse(r, "the interactor judges; leave checker out");
	e = request_check_words(r, test->args ? test->args : req->args,
				(struct var_list){ test->env, test->n_env });
	if (e == 0 && test->n_files > 0)
		e = request_check_nesting(r, (struct file_list){ req->files, req->n_files },
					  (struct file_list){ test->files, test->n_files });
	return e;
}

int request_link_tests(const struct reader *r, struct request *req)
{
	static const char *const of_tests[] = { "groups", "stop_at", "interactor" };
	struct reader tests = reader_at(r, "tests");
	int e = 0;

	for (size_t i = 0; req->n_tests == 0 && i < ARRAY_SIZE(of_tests); i++) {
		struct reader at = reader_at(r, of_tests[i]);
		const json_t *value = json_object_get(req->root, of_tests[i]);

		if (value && !json_is_null(value))
			return reader_refuse(&at,
					     "it says how tests are judged, and there are none");
	}
	for (size_t i = 0; e == 0 && i < req->n_tests; i++) {
		struct reader at = reader_index(&tests, i);

		e = link_test(&at, req, &req->tests[i]);
	}
	if (e == 0 && req->n_tests > 0)
		e = name_groups(r, req);
	return e == 0 ? check_groups(r, req) : e;
}
