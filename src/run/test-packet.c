/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of the runner contract: a whole exchange as golden bytes, bounds, pieces, and the members of small texts. */
#include "run/packet.h"

#include "test/golden.h"

static const struct {
	enum packet_kind kind;
	const char *payload;
} exchange[] = {
	{ PACKET_OPEN, "{\"language\":\"python\",\"code\":\"print(input())\"}" },
	{ PACKET_ADMISSION, "{\"language\":\"python\",\"policy\":\"default\"}" },
	{ PACKET_START, "{\"interactive\":true,\"disconnect\":\"cancel\"}" },
	{ PACKET_STARTED, "{\"id\":\"ex_1\"}" },
	{ PACKET_INPUT, "1\n" },
	{ PACKET_INPUT_END, "" },
	{ PACKET_INPUT_ROOM_MADE, "{\"bytes\":2}" },
	{ PACKET_STDOUT, "1\n" },
	{ PACKET_STDERR, "a note\n" },
	{ PACKET_SIGNAL, "{\"signal\":\"INT\"}" },
	{ PACKET_RESIZE, "{\"rows\":40,\"columns\":120}" },
	{ PACKET_STAGE, "{\"name\":\"run\"}" },
	{ PACKET_USAGE, "{\"cpu_time\":0.1}" },
	{ PACKET_KILL, "" },
	{ PACKET_END, "{\"status\":\"success\"}\n{\"id\":\"ex_1\",\"status\":\"success\"}" },
	{ PACKET_DISCARD, "" },
	{ PACKET_REFUSED, "{\"code\":\"invalid_request\"}" },
};

static void write_exchange(struct buf *b)
{
	buf_init(b, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(exchange); i++)
		assert_int_equal(packet_write(b, exchange[i].kind, span_of(exchange[i].payload)),
				 0);
}

static void test_golden(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	write_exchange(&b);
	check_golden("test/golden/runner-packets.bin", &b);
}

/* Each cut of the bytes gives whole packets only, and says how long the next one is as soon as its head is there. */
static void test_pieces(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	write_exchange(&b);
	for (size_t cut = 0; cut <= b.len; cut++) {
		struct span rest = { b.data, cut };
		struct packet f;
		size_t used, n = 0;
		int r;

		while ((r = packet_read(rest, &f, &used)) == 1) {
			assert_int_equal(f.kind, exchange[n].kind);
			assert_true(span_is(f.payload, exchange[n].payload));
			rest.data += used;
			rest.len -= used;
			n++;
		}
		assert_int_equal(r, 0);
		if (rest.len < PACKET_HEAD_BYTES)
			assert_int_equal(used, 0);
		else
			assert_int_equal(used, PACKET_HEAD_BYTES + strlen(exchange[n].payload));
	}
}

static void test_bounds(void **state)
{
	static const struct {
		const char *head;
		int r;
	} samples[] = {
		{ "\0\0\0\0O", -EPROTO },
		{ "\0\0\0\2K", -EMSGSIZE },
		{ "\0\1\0\2I", -EMSGSIZE },
		{ "\0\1\0\1I", 0 },
		{ "\xff\xff\xff\xffO", -EMSGSIZE },
		{ "\0\0\x20\0?", -EMSGSIZE },
		{ "\0\0\x10\0?", 0 },
	};
	_cleanup_buf_ struct buf b = { .max = 100 };
	static char much[PACKET_BYTES_MAX + 1];
	struct packet f;
	size_t used;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_int_equal(
			packet_read((struct span){ samples[i].head, PACKET_HEAD_BYTES }, &f, &used),
			samples[i].r);
	assert_int_equal(packet_write(&b, PACKET_STDOUT, (struct span){ much, sizeof(much) }),
			 -EMSGSIZE);
	/* What does not fit leaves nothing behind. */
	assert_int_equal(packet_write(&b, PACKET_STDOUT, (struct span){ much, 96 }), -ENOBUFS);
	assert_int_equal(b.len, 0);
	assert_true(packet_kind_is_of(PACKET_OPEN, PACKET_OF_CLIENT));
	assert_false(packet_kind_is_of(PACKET_OPEN, PACKET_OF_RUNNER));
	assert_false(packet_kind_is_of('?', PACKET_OF_RUNNER));
}

static void test_start(void **state)
{
	static const struct {
		const char *text;
		struct packet_start start;
		const char *problem;
	} samples[] = {
		{ "{}", { 0 }, NULL },
		{ "{\"interactive\":true,\"later\":1}", { .interactive = true }, NULL },
		{ "{\"disconnect\":\"keep\",\"rows\":2,\"columns\":3}",
		  { .keep = true, .rows = 2, .columns = 3 },
		  NULL },
		{ "[]", { 0 }, "START must" },
		{ "{\"interactive\":1}", { 0 }, "interactive:" },
		{ "{\"disconnect\":\"stay\"}", { 0 }, "disconnect:" },
		{ "{\"disconnect\":1}", { 0 }, "disconnect:" },
		{ "{\"rows\":0,\"columns\":3}", { 0 }, "rows and columns" },
		{ "{\"rows\":5}", { 0 }, "rows and columns" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		json_t *tree = json_loads(samples[i].text, 0, NULL), *again;
		struct packet_start s = { 0 }, t;
		const char *problem;
		int r = packet_start_from_json(tree, &s, &problem);

		json_decref(tree);
		assert_int_equal(r, samples[i].problem ? -EINVAL : 0);
		assert_memory_equal(&s, &samples[i].start, sizeof(s));
		if (r < 0) {
			assert_memory_equal(problem, samples[i].problem,
					    strlen(samples[i].problem));
			continue;
		}
		again = packet_start_to_json(&s);
		assert_int_equal(packet_start_from_json(again, &t, &problem), 0);
		assert_memory_equal(&s, &t, sizeof(s));
		json_decref(again);
	}
}

static void test_signal(void **state)
{
	static const struct {
		const char *text;
		int number;
	} samples[] = {
		{ "{\"signal\":\"INT\"}", 2 },
		{ "{\"signal\":\"SIGTERM\"}", 15 },
		{ "{\"signal\":9}", 9 },
		{ "{\"signal\":0}", -EINVAL },
		{ "{\"signal\":\"int\"}", -EINVAL },
		{ "{\"signal\":4096}", -EINVAL },
		{ "{}", -EINVAL },
		{ "[]", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		json_t *tree = json_loads(samples[i].text, 0, NULL);

		assert_int_equal(packet_signal_from_json(tree), samples[i].number);
		json_decref(tree);
	}
}

static void test_end(void **state)
{
	struct packet_end end;

	(void)state;
	assert_int_equal(packet_read_end(span_of("{}\n{\"a\":1}\n"), &end), 0);
	assert_true(span_is(end.summary, "{}"));
	assert_true(span_is(end.result, "{\"a\":1}\n"));
	assert_int_equal(packet_read_end(span_of("{}"), &end), -EPROTO);
	assert_int_equal(packet_read_end(span_of(""), &end), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_start),
		cmocka_unit_test(test_signal), cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
