/* SPDX-License-Identifier: Apache-2.0 */
/* Entries in the configuration of other programs: all else stays as it was. */
#include "atoll/commands/config-text.h"

#include "atoll/commands/mcp-hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The entry is {"command": "/a", "args": ["mcp"]}. */
static void check(const struct config_format *format, const char *before, bool replace, int want,
		  const char *after)
{
	_cleanup_buf_ struct buf out = { .max = 1 << 20 };
	json_t *value = mcp_host_entry("{\"command\": \"@\", \"args\": [\"mcp\"]}", "/a");
	struct config_entry entry = {
		.table = "servers", .name = "atoll", .value = value, .replace = replace
	};
	struct error err = { 0 };
	int r = format->set(span_of(before), &entry, &out, &err);

	if (r != want)
		fail_msg("%d instead of %d (%s) for:\n%s", r, want, err.text, before);
	if (r >= 0)
		assert_string_equal(out.data ? out.data : "", after);
	else if (!strstr(err.text, after))
		fail_msg("the message \"%s\" does not say \"%s\"", err.text, after);
	json_decref(value);
}

#define ENTRY(in) "\"atoll\": {\n" in "  \"command\": \"/a\",\n" in "  \"args\": [\"mcp\"]\n" in "}"

static void test_json_added(void **state)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
		{ "", "{\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}\n" },
		{ " \n", "{\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}\n" },
		{ "{}", "{\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}" },
		{ "{\n}\n", "{\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}\n" },
		{ "{\n  \"a\": 1\n}\n",
		  "{\n  \"a\": 1,\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}\n" },
		/* Comments stay where they are, and a comma is put before them. */
		{ "// top\n{\n  \"a\": 1 // one\n  /* end */\n}\n// last",
		  "// top\n{\n  \"a\": 1, // one\n  /* end */\n  \"servers\": {\n    " ENTRY(
			  "    ") "\n  }\n}\n// last" },
		/* A trailing comma is the file's style. */
		{ "{\n  \"a\": 1, // one, two\n}",
		  "{\n  \"a\": 1, // one, two\n  \"servers\": {\n    " ENTRY("    ") "\n  },\n}" },
		{ "{\n  \"a\": 1 // one, two\n}",
		  "{\n  \"a\": 1, // one, two\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}" },
		{ "{\n  \"servers\": {\n    // none yet\n  }\n}",
		  "{\n  \"servers\": {\n    // none yet\n    " ENTRY("    ") "\n  }\n}" },
		{ "{\n  \"servers\": {},\n  \"z\": []\n}",
		  "{\n  \"servers\": {\n    " ENTRY("    ") "\n  },\n  \"z\": []\n}" },
		{ "{\n    \"servers\": {\n        \"b\": {}\n    }\n}",
		  "{\n    \"servers\": {\n        \"b\": {},\n        \"atoll\": {\n            "
		  "\"command\": \"/a\",\n            \"args\": [\"mcp\"]\n        }\n    }\n}" },
		{ "{\n\t\"servers\": {\n\t\t\"b\": {}\n\t}\n}",
		  "{\n\t\"servers\": {\n\t\t\"b\": {},\n\t\t\"atoll\": {\n\t\t\t\"command\": "
		  "\"/a\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}\n\t}\n}" },
		{ "{\r\n  \"servers\": {\r\n  }\r\n}\r\n",
		  "{\r\n  \"servers\": {\r\n    \"atoll\": {\r\n      \"command\": \"/a\",\r\n     "
		  " "
		  "\"args\": [\"mcp\"]\r\n    }\r\n  }\r\n}\r\n" },
		/* One line stays one line. */
		{ "{\"servers\": {}}",
		  "{\"servers\": {\"atoll\": {\"command\": \"/a\", \"args\": [\"mcp\"]}}}" },
		{ "{\"a\": 1}", "{\"a\": 1, \"servers\": {\"atoll\": {\"command\": \"/a\", "
				"\"args\": [\"mcp\"]}}}" },
		{ "{\"servers\": {\"b\": {}}}",
		  "{\"servers\": {\"b\": {}, \"atoll\": {\"command\": "
		  "\"/a\", \"args\": [\"mcp\"]}}}" },
		{ "{\n  \"servers\": {\"b\": {}}\n}",
		  "{\n  \"servers\": {\"b\": {}, \"atoll\": {\"command\": \"/a\", \"args\": "
		  "[\"mcp\"]}}\n}" },
		/* Text that only looks like structure. */
		{ "{\n  \"a\": \"}, // { /*\",\n  \"b\\\"\": \"\\\\\"\n}",
		  "{\n  \"a\": \"}, // { /*\",\n  \"b\\\"\": \"\\\\\",\n  \"servers\": {\n   "
		  " " ENTRY("    ") "\n  }\n}" },
		{ "{\n  \"x\": {\"servers\": {\"atoll\": 1}}\n}",
		  "{\n  \"x\": {\"servers\": {\"atoll\": 1}},\n  \"servers\": {\n    " ENTRY(
			  "    ") "\n  }\n}" },
		{ "\xef\xbb\xbf{\n}",
		  "\xef\xbb\xbf{\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}" },
		{ "{\n  \"s\\u0065rvers\": {\n  }\n}",
		  "{\n  \"s\\u0065rvers\": {\n    " ENTRY("    ") "\n  }\n}" },
		/* Of two objects under one name, readers see the last. */
		{ "{\n  \"servers\": {},\n  \"servers\": {\n  }\n}",
		  "{\n  \"servers\": {},\n  \"servers\": {\n    " ENTRY("    ") "\n  }\n}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&config_json, cases[i].before, false, CONFIG_ADDED, cases[i].after);
}

static void test_json_there(void **state)
{
	static const char same[] = "{\"servers\": {\"atoll\": {\"args\": [\"mcp\"], /* mine */ "
				   "\"command\": \"/a\", \"env\": {}}}}";
	static const char other[] =
		"{\n  \"servers\": {\n    \"atoll\": { \"command\": \"/old\" }, // keep\n    "
		"\"b\": {}\n  }\n}\n";

	(void)state;
	check(&config_json, same, false, CONFIG_SAME, "");
	check(&config_json, same, true, CONFIG_SAME, "");
	check(&config_json, other, false, -EEXIST, "another server named 'atoll'");
	check(&config_json, other, true, CONFIG_REPLACED,
	      "{\n  \"servers\": {\n    " ENTRY("    ") ", // keep\n    \"b\": {}\n  }\n}\n");
	check(&config_json, "{\"servers\": {\"atoll\": null}}", true, CONFIG_REPLACED,
	      "{\"servers\": {\"atoll\": {\"command\": \"/a\", \"args\": [\"mcp\"]}}}");
}

static void test_json_refused(void **state)
{
	static const struct {
		const char *before, *message;
	} cases[] = {
		{ "[]", "does not hold a JSON object" },
		{ "{\n  'a': 1\n}", "line 2 is not valid JSON" },
		{ "{\n\n  \"a\": 1", "line 3 is not valid JSON" },
		{ "{} x", "line 1 is not valid JSON" },
		{ "{\"a\": \"", "is not valid JSON" },
		{ "{ /* never ends }", "is not valid JSON" },
		{ "{\"a\": 1,, }", "is not valid JSON" },
		{ "{\"servers\": []}", "'servers' is not an object" },
		{ "{\"servers\": null}", "'servers' is not an object" },
		{ "/", "is not valid JSON" },
		{ "\"", "is not valid JSON" },
		{ "\\", "is not valid JSON" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&config_json, cases[i].before, false, -EINVAL, cases[i].message);
}

#define TABLE "[servers.atoll]\ncommand = \"/a\"\nargs = [\"mcp\"]"

static void test_toml_added(void **state)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
		{ "", TABLE "\n" },
		{ "model = \"x\" # best\n", "model = \"x\" # best\n\n" TABLE "\n" },
		{ "model = \"x\"", "model = \"x\"\n\n" TABLE "\n" },
		{ "[servers.b]\ncommand = 'b'\n", "[servers.b]\ncommand = 'b'\n\n" TABLE "\n" },
		{ "[servers]\n", "[servers]\n\n" TABLE "\n" },
		{ "a = 1\r\n", "a = 1\r\n\r\n[servers.atoll]\r\ncommand = \"/a\"\r\nargs = "
			       "[\"mcp\"]\r\n" },
		/* Text that only looks like a table. */
		{ "a = \"\"\"\n[servers.atoll]\n\"\"\"\nb = '''\n[servers.atoll]'''\n",
		  "a = \"\"\"\n[servers.atoll]\n\"\"\"\nb = '''\n[servers.atoll]'''\n\n" TABLE
		  "\n" },
		{ "a = [ # [servers.atoll]\n  [1, 2], \"]\",\n]\n# [servers.atoll]\n",
		  "a = [ # [servers.atoll]\n  [1, 2], \"]\",\n]\n# [servers.atoll]\n\n" TABLE
		  "\n" },
		{ "[x.servers.atoll]\n[servers.atoll.env]\nA = \"1\"\n",
		  "[x.servers.atoll]\n[servers.atoll.env]\nA = \"1\"\n\n" TABLE "\n" },
		{ "[x]\nservers.atoll = 1\n[[y]]\natoll = 2\n",
		  "[x]\nservers.atoll = 1\n[[y]]\natoll = 2\n\n" TABLE "\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&config_toml, cases[i].before, false, CONFIG_ADDED, cases[i].after);
}

static void test_toml_there(void **state)
{
	(void)state;
	check(&config_toml, "a = 1\n" TABLE "\n[b]\n", false, CONFIG_SAME, "");
	check(&config_toml,
	      "[ servers . \"atoll\" ] # mine\nargs=[\"mcp\"]\nx = 1\ncommand = \"/a\" # here\n",
	      false, CONFIG_SAME, "");
	check(&config_toml, "[servers.atoll]\ncommand = \"/old\"\n", false, -EEXIST,
	      "another server named 'atoll'");
	check(&config_toml,
	      "a = 1\n[servers.atoll] # x\ncommand = \"/old\"\n\n# next\n[b]\nc = 1\n", true,
	      CONFIG_REPLACED, "a = 1\n" TABLE "\n\n# next\n[b]\nc = 1\n");
}

static void test_toml_refused(void **state)
{
	static const struct {
		const char *before, *message;
	} cases[] = {
		{ "a = 1\nservers = {}\n", "line 2 sets 'servers' in a form" },
		{ "servers.atoll.command = \"/a\"\n", "line 1 sets" },
		{ "[servers]\natoll = { command = \"/a\" }\n", "line 2 sets" },
		{ "[[servers]]\n", "line 1 sets" },
		{ "[[servers.atoll]]\n", "line 1 sets" },
		{ "\n\na\n", "line 3 is not valid TOML" },
		{ "a = \n", "line 1 is not valid TOML" },
		{ "a = \"x\n", "line 1 is not valid TOML" },
		{ "a = [1,\n", "line 1 is not valid TOML" },
		{ "[a\n", "line 1 is not valid TOML" },
		{ "[a] b\n", "line 1 is not valid TOML" },
		{ "= 1\n", "line 1 is not valid TOML" },
		{ "{}", "line 1 is not valid TOML" },
		{ "a = \"", "line 1 is not valid TOML" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&config_toml, cases[i].before, false, -EINVAL, cases[i].message);
}

/* Every beginning of a file is refused or completed, and never read past its end. */
static void test_beginnings(void **state)
{
	static const char json[] =
		"\xef\xbb\xbf// c\n{\n \"a\": [1, \"\\\"\"], /* x */ \"servers\": {\"b\": "
		"{\"c\": null,},\n},\n}\n";
	static const char toml[] =
		"a = \"\"\"x\"\"\"\n[servers.'b']\nc.\"d\" = [1, {e = '''f'''}] # g\n";
	json_t *value = mcp_host_entry(mcp_hosts[0].stdio, "/a");
	struct config_entry entry = { .table = "servers", .name = "atoll", .value = value };

	(void)state;
	for (int which = 0; which < 2; which++) {
		const char *whole = which ? toml : json;
		const struct config_format *format = which ? &config_toml : &config_json;

		for (size_t n = 0; n <= strlen(whole); n++) {
			_cleanup_buf_ struct buf out = { .max = 1 << 16 };
			_cleanup_free_ char *text = strndup(whole, n);
			struct error err = { 0 };
			int r = format->set((struct span){ text, n }, &entry, &out, &err);

			assert_true(r == CONFIG_ADDED || (r == -EINVAL && *err.text));
		}
	}
	json_decref(value);
}

static void test_table(void **state)
{
	struct error err = { 0 };

	(void)state;
	for (size_t i = 0; i < mcp_hosts_n; i++) {
		json_t *entry = mcp_host_entry(mcp_hosts[i].stdio, "/a");

		assert_non_null(entry);
		json_decref(entry);
		assert_ptr_equal(mcp_host_find(mcp_hosts[i].name, &err), &mcp_hosts[i]);
		if (i > 0)
			assert_true(strcmp(mcp_hosts[i - 1].name, mcp_hosts[i].name) < 0);
	}
	assert_null(mcp_host_find("cursr", &err));
	assert_string_equal(err.text, "unknown client 'cursr'; did you mean 'cursor'?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_added),   cmocka_unit_test(test_json_there),
		cmocka_unit_test(test_json_refused), cmocka_unit_test(test_toml_added),
		cmocka_unit_test(test_toml_there),   cmocka_unit_test(test_toml_refused),
		cmocka_unit_test(test_beginnings),   cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
