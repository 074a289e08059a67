/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program is judged: `tests`, `groups`, and the checkers of tests: a name, {"tolerance": …}, or {"language", "code", …}, a
 * program of the caller's. Each key is read by itself; request_link_tests() then finds the group of each test. A group may need others,
 * whose tests must stand before its own: so the order of the list is an order in which all of them can be decided, and no group can
 * need itself.
 */
#include "spec/request-read.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const checker_files[_CHECKER_FILE_MAX + 1] = { [CHECKER_INPUT] = "input.txt",
							   [CHECKER_OUTPUT] = "output.txt",
							   [CHECKER_EXPECTED] = "expected.txt" };
const char *const interactor_files[_CHECKER_FILE_MAX + 1] = { [CHECKER_INPUT] = "input.txt",
							      [CHECKER_OUTPUT] = "/tmp/output.txt",
							      [CHECKER_EXPECTED] = "expected.txt" };

static int test_read_label(const struct reader *r, const struct schema_field *f,
			   const json_t *value, void *object)
{
	const char **to = field_member(f, object);
	int e = read_string(r, value, REQUEST_TEST_NAME_MAX, to);

	return e < 0 || **to ? e : reader_refuse(r, "it is empty");
}

static int test_read_points(const struct reader *r, const struct schema_field *f,
			    const json_t *value, void *object)
{
	int64_t points = json_integer_value(value);

	if (!json_is_integer(value) || points < 0 || points > REQUEST_POINTS_MAX)
		return reader_refuse(r, "%s is not a whole number from 0 to %d",
				     quote_json(value).text, REQUEST_POINTS_MAX);
	*(int64_t *)field_member(f, object) = points;
	return 0;
}

static int checker_read_tolerance(const struct reader *r, const struct schema_field *f _unused_,
				  const json_t *value, void *object)
{
	struct request_checker *checker = object;
	double number = json_number_value(value);

	if (!json_is_number(value) || !isfinite(number) || number < 0)
		return reader_refuse(r, "%s is not a number from 0 on", quote_json(value).text);
	checker->kind = CHECKER_TOLERANCE;
	checker->tolerance = number;
	return 0;
}

const struct schema_field request_tolerance_fields[] = {
	{ "tolerance", "number", "by which numbers may differ, absolutely or as a part",
	  checker_read_tolerance },
	{ 0 },
};

static int test_read_checker(const struct reader *r, const struct schema_field *f _unused_,
			     const json_t *value, void *object)
{
	static const char *const names[] = { [CHECKER_EXACT] = "exact",
					     [CHECKER_IGNORE_WHITESPACE] = "ignore_whitespace",
					     [CHECKER_UNORDERED_LINES] = "unordered_lines" };
	struct request_test *test = object;
	struct request_checker *checker = &test->checker;
	int e;

	if (json_is_string(value)) {
		for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
			if (strcmp(json_string_value(value), names[i]) == 0) {
				checker->kind = (enum checker_kind)i;
				return 0;
			}
		return reader_refuse(r,
				     "%s is not exact, ignore_whitespace, unordered_lines, "
				     "{\"tolerance\": NUMBER} or {\"language\", \"code\"}",
				     quote_json(value).text);
	}
	if (json_is_object(value) && !json_object_get(value, "tolerance")) {
		checker->kind = CHECKER_PROGRAM;
		/* Judges send the same program with every test. */
		if (test->previous && json_equal(test->previous->root, value)) {
			checker->program = test->previous;
			return 0;
		}
		return request_read_program(r, (json_t *)(uintptr_t)value, checker_files,
					    &checker->program);
	}
	e = read_object(r, value, SHAPE_OF(request_tolerance_fields), checker);
	if (e == 0 && checker->kind != CHECKER_TOLERANCE)
		e = reader_refuse(r, "tolerance is missing");
	return e;
}

#define MEMBER(name)	.offset = offsetof(struct request_test, name)
#define PAIR(name, two) MEMBER(name), .beside = offsetof(struct request_test, two)
const struct schema_field request_test_fields[] = {
	{ "name", "string", "of its entry in the result", test_read_label, MEMBER(name) },
	{ "stdin", "string or Encoded",
	  "standard input; with an interactor, the interactor's input.txt", request_read_bytes,
	  MEMBER(stdin_data) },
	{ "expected", "string or Encoded",
	  "what the program must print; may be left out where a program judges", request_read_bytes,
	  MEMBER(expected) },
	{ "args", "[string]", "in place of the request's", read_words, MEMBER(args),
	  .max = REQUEST_WORD_MAX, .max_count = REQUEST_ARGS_MAX },
	{ "env", "{string}", "beside the request's", request_read_env, PAIR(env, n_env) },
	{ "files", "{string or FileContent}", "beside the request's", request_read_files,
	  PAIR(files, n_files) },
	{ "limits", "Limits", "over the request's", read_limits, PAIR(limits, limits_set) },
	{ "checker",
	  "exact|ignore_whitespace|unordered_lines or ToleranceChecker or ProgramChecker",
	  "how the output is judged; a program says it by its exit code, as testlib's [exact]",
	  test_read_checker },
	{ "points", "integer 0..1000000", "what the test is worth", test_read_points,
	  MEMBER(points) },
	{ "group", "string", "the group that it belongs to", test_read_label, MEMBER(group_name) },
	{ 0 },
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

int request_read_tests(const struct reader *r, const struct schema_field *f _unused_,
		       const json_t *value, void *object)
{
	static const struct request_form form = {
		JSON_ARRAY, "a list of tests, such as [{\"stdin\": \"2\", \"expected\": \"4\"}]",
		" tests", REQUEST_TESTS_MAX, sizeof(struct request_test)
	};
	static const struct schema shape = { .fields = request_test_fields, .hints = test_hints };
	struct request *req = object;
	int e = request_room(r, value, &form, &req->tests);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		struct request_test *test = &req->tests[i];
		struct reader at = reader_index(r, i);

		test->points = -1;
		test->previous = i > 0 ? test[-1].checker.program : NULL;
		req->n_tests = i + 1; /* its checker's program is freed, also if it is refused */
		e = read_object(&at, json_array_get(value, i), &shape, test);
	}
	return e;
}

#undef MEMBER
#define MEMBER(name) .offset = offsetof(struct request_group, name)
const struct schema_field request_group_fields[] = {
	{ "name", "string", NULL, test_read_label, MEMBER(name) },
	{ "needs", "[string]",
	  "groups that must have passed; their tests stand before those of this one", read_words,
	  MEMBER(needs), .max = REQUEST_TEST_NAME_MAX, .max_count = REQUEST_GROUPS_MAX },
	{ "points", "integer 0..1000000", "of the whole group [those of its tests]",
	  test_read_points, MEMBER(points) },
	{ "scoring", "sum|all|min",
	  "each test for itself, all tests or nothing, or as the worst test [all with points, else "
	  "sum]",
	  read_choice, MEMBER(scoring) },
	{ 0 },
};

/* The index of the group with that name; n_groups: there is none. */
static size_t group_find(const struct request *req, const char *name)
{
	size_t i = 0;

	while (i < req->n_groups && strcmp(req->groups[i].name, name) != 0)
		i++;
	return i;
}

int request_read_groups(const struct reader *r, const struct schema_field *f _unused_,
			const json_t *value, void *object)
{
	static const struct request_form form = {
		JSON_ARRAY,
		"a list of groups, such as [{\"name\": \"large\", \"needs\": [\"small\"], "
		"\"points\": 60}]",
		" groups", REQUEST_GROUPS_MAX, sizeof(struct request_group)
	};
	struct request *req = object;
	int e = request_room(r, value, &form, &req->groups);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		struct request_group *group = &req->groups[i];
		struct reader at = reader_index(r, i);

		group->points = -1;
		group->scoring = _SCORING_MAX;
		e = read_object(&at, json_array_get(value, i), SHAPE_OF(request_group_fields),
				group);
		if (e < 0)
			return e;
		if (!group->name)
			return reader_refuse(&at, "it has no name");
		if (group_find(req, group->name) < req->n_groups)
			return reader_refuse(&at, "the name '%s' is taken by another group",
					     quote_text(group->name).text);
		/* With points of its own, a group is a subtask: usually all of it, or nothing. */
		if (group->scoring == _SCORING_MAX)
			group->scoring = group->points >= 0 ? SCORING_ALL : SCORING_SUM;
		req->n_groups++;
	}
	return e;
}

bool request_group_needs(const struct request *req, size_t group, size_t needed)
{
	const char **needs = group < req->n_groups ? req->groups[group].needs : NULL;

	while (needs && *needs && strcmp(*needs, req->groups[needed].name) != 0)
		needs++;
	return needs && *needs;
}

/* Without `groups`, the names that tests give are the groups. */
static int tests_name_groups(const struct reader *r, struct request *req)
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
		test->group = group_find(req, test->group_name);
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
static size_t group_edge(const struct request *req, size_t group, bool last)
{
	size_t found = req->n_tests;

	for (size_t i = 0; i < req->n_tests; i++)
		if (req->tests[i].group == group && (last || found == req->n_tests))
			found = i;
	return found;
}

static int groups_check(const struct reader *r, const struct request *req)
{
	for (size_t g = 0; g < req->n_groups; g++) {
		struct reader groups = reader_at(r, "groups"), at = reader_index(&groups, g);
		size_t first = group_edge(req, g, false);

		if (first == req->n_tests)
			return reader_refuse(&at, "no test is of the group '%s'",
					     quote_text(req->groups[g].name).text);
		for (const char **name = req->groups[g].needs; name && *name; name++) {
			size_t needed = group_find(req, *name);

			if (needed == req->n_groups)
				return reader_refuse(&at,
						     "it needs '%s', which is not among groups",
						     quote_text(*name).text);
			if (group_edge(req, needed, true) >= first)
				return reader_refuse(
					&at, "it needs '%s': put the tests of that before its own",
					quote_text(*name).text);
		}
	}
	return 0;
}

/* The request's variables, with the test's own in their places or behind them. */
static int test_join_env(const struct reader *r, const struct request *req,
			 struct request_test *test)
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

static int test_link(const struct reader *r, const struct request *req, struct request_test *test)
{
	int e = test->n_env > 0 ? test_join_env(r, req, test) : 0;

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

		e = test_link(&at, req, &req->tests[i]);
	}
	if (e == 0 && req->n_tests > 0)
		e = tests_name_groups(r, req);
	for (size_t i = 0; e == 0 && i < req->n_tests; i++)
		assert(req->tests[i].group <= req->n_groups);
	return e == 0 ? groups_check(r, req) : e;
}
