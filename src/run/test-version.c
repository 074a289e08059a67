/* SPDX-License-Identifier: Apache-2.0 */
/* The version of a language that a request means, with runtimes that answer as each test wants. */
#include "run/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "name: toy\ntitle: Toy\nsource: code.toy\npackage: toy\nrun: [/bin/sh]\n"
#define SAYS "version: [/bin/sh, -v]\nversion_prefix: 'Toy '\n"

static const char one[] = HEAD SAYS "runtime: /bin/sh\n";
static const char speechless[] = HEAD "runtime: /bin/sh\n";
static const char many[] = HEAD SAYS "runtime: /bin/sh\n"
				     "versions: {'2.0': {runtime: /bin/bash},\n"
				     "  '9': {runtime: /nowhere/at/all}}\n";
static const char only_versions[] = HEAD SAYS "runtime: /nowhere/at/all\n"
					      "versions: {'2.0': {runtime: /bin/bash}}\n";

/* How the runtimes answer. */
static struct {
	bool fail, wait;
	struct fiber *waits;
	int asked;
} world;

static int tell(void *data, const json_t *request, struct buf *out)
{
	const char *id = json_string_value(json_object_get(request, "language"));

	(void)data;
	world.asked++;
	if (world.wait) {
		world.waits = fiber_current();
		fiber_wait();
	}
	return world.fail ? -EPIPE : buf_puts(out, strchr(id, '@') ? "v2.0.7" : "v1.2.3");
}

/* The linker replaces client.c's function with this one. */
struct prober __wrap_atoll_prober(struct atoll *a, const char *image);
struct prober __wrap_atoll_prober(struct atoll *a, const char *image)
{
	return (struct prober){ .run = tell, .data = a, .image = image, .cache_fd = -ENOENT };
}

/* The id of the resolved version, or NULL with an error. */
static const char *resolve_id(struct atoll *a, const struct language *lang, const char *asked,
			      struct error *err)
{
	int r = atoll_resolve_version(a, asked, NULL, &lang, err);

	assert_int_equal(r, -err->errnum);
	return r == 0 ? lang->id : NULL;
}

static struct language *parse(const char *text)
{
	struct document doc = { "test", text, strlen(text) };
	struct language *lang = NULL;
	struct error err = { 0 };

	if (language_parse(&doc, &lang, &err) < 0)
		fail_msg("%s", err.text);
	return lang;
}

static int setup(void **state)
{
	struct atoll *a = calloc(1, sizeof(*a));

	memset(&world, 0, sizeof(world));
	*state = a;
	return a ? 0 : -1;
}

static int teardown(void **state)
{
	struct atoll *a = *state;

	memo_done(&a->memo);
	free(a);
	return 0;
}

static void test_one_has_it(void **state)
{
	_cleanup_(language_cleanup) struct language *lang = parse(many);
	struct error err = { 0 };

	assert_string_equal(resolve_id(*state, lang, "toy", &err), "toy");
	assert_int_equal(world.asked, 0);
	assert_string_equal(resolve_id(*state, lang, "toy@1", &err), "toy");
	assert_string_equal(resolve_id(*state, lang, "toy@2", &err), "toy@2.0");
	assert_string_equal(resolve_id(*state, lang, "toy@2.0.7", &err), "toy@2.0");
	assert_int_equal(world.asked, 2);
}

/* A runtime that is not installed is not asked, and is not listed as present. */
static void test_none_has_it(void **state)
{
	_cleanup_(language_cleanup) struct language *lang = parse(many);
	struct error err = { 0 };

	assert_null(resolve_id(*state, lang, "toy@3", &err));
	assert_int_equal(err.code, ERROR_RUNTIME);
	assert_string_equal(err.field, "language");
	assert_string_equal(err.text, "'toy@3': no Toy 3 is installed; installed: 1.2.3, 2.0");
}

/* An error is set only by a failed call. */
static void test_a_version_without_its_language(void **state)
{
	_cleanup_(language_cleanup) struct language *lang = parse(only_versions);
	struct error err = { 0 };

	assert_string_equal(resolve_id(*state, lang, "toy@2", &err), "toy@2.0");
	assert_int_equal(err.code, ERROR_NONE);
	assert_string_equal(err.text, "");
}

static void test_one_that_does_not_answer(void **state)
{
	_cleanup_(language_cleanup) struct language *lang = parse(many), *mute = parse(speechless);
	struct error err = { 0 };

	world.fail = true;
	assert_null(resolve_id(*state, lang, "toy@1", &err));
	assert_int_equal(err.code, ERROR_NOT_READY);
	assert_string_equal(err.text, "Toy cannot be asked for its version now; try again");
	/* Trying again helps if the version can be asked for. */
	assert_null(resolve_id(*state, mute, "toy@1", &err));
	assert_int_equal(err.code, ERROR_RUNTIME);
	err = (struct error){ 0 };
	world.fail = false;
	assert_string_equal(resolve_id(*state, lang, "toy@1", &err), "toy");
}

/* Without a fiber an executor asks no runtime, and takes no version for another. */
static void test_an_executor_without_a_fiber(void **state)
{
	_cleanup_(language_cleanup) struct language *lang = parse(many);
	struct atoll *a = *state;
	struct error err = { 0 };

	a->keeper = (struct link_keeper *)a; /* a keeper exists; it is not used */
	assert_null(resolve_id(a, lang, "toy@2", &err));
	assert_int_equal(err.code, ERROR_NOT_READY);
	assert_int_equal(world.asked, 0);
	a->keeper = NULL;
}

struct version_asker {
	struct atoll *atoll;
	const struct language *lang;
	const char *image;
	int r;
	bool over;
};

static void call(void *data)
{
	struct version_asker *c = data;
	const struct language *lang = c->lang;
	struct error err = { 0 };

	c->r = atoll_resolve_version(c->atoll, "toy@1", c->image, &lang, &err);
	c->over = true;
}

static int on_turn(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

static void run_rounds(struct loop *loop)
{
	struct source *stop;

	assert_int_equal(loop_add_timer(loop, 1, (struct handler){ on_turn, loop }, &stop), 0);
	assert_int_equal(loop_run(loop), 0);
	(void)source_free(stop);
}

/* Many callers: one sandbox at a time, and its answer goes to all of them. */
static void check_many_callers(struct atoll *a, bool fail)
{
	_cleanup_(language_cleanup) struct language *lang = parse(one);
	struct loop *loop = loop_new();
	struct version_asker callers[5], other = { a, lang, "/", 0, false };

	a->loop = loop;
	world.wait = true;
	world.asked = 0;
	world.fail = fail;
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
		callers[i] = (struct version_asker){ .atoll = a, .lang = lang };
		assert_int_equal(fiber_start(loop, call, &callers[i]), 0);
	}
	assert_int_equal(world.asked, 1);
	fiber_wake(world.waits);
	run_rounds(loop);
	run_rounds(loop);
	assert_int_equal(world.asked, 1);
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
		assert_true(callers[i].over);
		assert_int_equal(callers[i].r, fail ? -EAGAIN : 0);
	}
	/* Another root is another question, for every caller. */
	callers[0].over = false;
	memo_done(&a->memo);
	assert_int_equal(fiber_start(loop, call, &callers[0]), 0);
	fiber_wake(world.waits);
	assert_int_equal(fiber_start(loop, call, &other), 0);
	assert_int_equal(world.asked, 3);
	fiber_wake(world.waits);
	run_rounds(loop);
	run_rounds(loop);
	assert_true(callers[0].over && other.over);
	assert_int_equal(other.r, fail ? -EAGAIN : 0);
	assert_int_equal(fiber_count(), 0);
	memo_done(&a->memo);
	fiber_trim();
	(void)loop_free(loop);
}

struct ender {
	struct local_run run;
	struct run_control control;
	char *version;
	int r;
	bool over;
};

static void end(void *data)
{
	struct ender *e = data;

	e->control.fiber = fiber_current();
	e->r = flow_version(&e->run, &e->version);
	e->over = true;
}

/* A cancelled run does not wait; the next one finds the answer. */
static void test_given_up(void **state)
{
	_cleanup_(language_cleanup) struct language *lang = parse(one);
	struct request request = { 0 };
	struct atoll *a = *state;
	struct ender enders[2] = { 0 };

	a->loop = loop_new();
	world.wait = true;
	for (size_t i = 0; i < ARRAY_SIZE(enders); i++) {
		enders[i].run = (struct local_run){ .atoll = a,
						    .language = lang,
						    .request = &request,
						    .control = &enders[i].control };
		assert_int_equal(fiber_start(a->loop, end, &enders[i]), 0);
	}
	run_rounds(a->loop);
	assert_false(enders[0].over || enders[1].over);
	/* The first of them is the one that asked. */
	enders[0].control.killed = true;
	fiber_wake(enders[0].control.fiber);
	run_rounds(a->loop);
	assert_true(enders[0].over);
	assert_int_equal(enders[0].r, -ENODATA);
	assert_false(enders[1].over);
	fiber_wake(world.waits);
	run_rounds(a->loop);
	run_rounds(a->loop);
	assert_true(enders[1].over);
	assert_int_equal(enders[1].r, 0);
	assert_string_equal(enders[1].version, "Toy 1.2.3");
	assert_int_equal(world.asked, 1);
	assert_int_equal(fiber_count(), 0);
	free(enders[1].version);
	fiber_trim();
	a->loop = loop_free(a->loop);
}

static void test_many_callers(void **state)
{
	check_many_callers(*state, false);
	check_many_callers(*state, true);
}

#define VERSION_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERSION_TEST(test_one_has_it),
		VERSION_TEST(test_none_has_it),
		VERSION_TEST(test_a_version_without_its_language),
		VERSION_TEST(test_one_that_does_not_answer),
		VERSION_TEST(test_an_executor_without_a_fiber),
		VERSION_TEST(test_many_callers),
		VERSION_TEST(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
