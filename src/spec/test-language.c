/* SPDX-License-Identifier: Apache-2.0 */
/* Language files: the shipped ones all parse; refusals; detection; Java's class names. */
#include "spec/language.h"

#include <dirent.h>

#include "spec/knob.h"
#include "spec/test-support.h"

#define LEAST                                                                                      \
	"name: x\ntitle: X\nsource: main.x\nruntime: /usr/bin/x\npackage: x\nrun: [/usr/bin/x]\n"

static struct language *language_from(const char *text)
{
	struct document doc = { "x.yaml", text, strlen(text) };
	struct language *lang = NULL;
	struct error err = { 0 };

	if (language_parse(&doc, &lang, &err) < 0)
		fail_msg("%s", err.text);
	return lang;
}

static void test_shipped(void **state _unused_)
{
	DIR *dir = opendir(LANGUAGES_DIR);
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[512];
		_cleanup_free_ char *text = NULL;
		struct document doc;
		struct language *lang = NULL;
		struct error err = { 0 };
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".yaml") != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", LANGUAGES_DIR, entry->d_name);
		text = text_of_file(path);
		doc = (struct document){ entry->d_name, text, strlen(text) };
		if (language_parse(&doc, &lang, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(strncmp(lang->name, entry->d_name, strlen(lang->name)), 0);
		assert_null(language_free(lang));
		n++;
	}
	(void)closedir(dir);
	assert_true(n >= 14);
}

static void test_all_keys(void **state _unused_)
{
	struct language *lang = language_from(
		LEAST
		"aliases: [ex, X11]\nextensions: [x, xx]\nshebangs: [x, x3]\n"
		"needs: [/usr/bin/y]\nversion: [/usr/bin/x, --version]\nversion_prefix: 'X '\n"
		"compile: [/usr/bin/xc, '{source}']\ncompile_limits: {memory: 1g}\n"
		"project: x.mod\nproject_compile: [/usr/bin/xc, '{source_dir}']\n"
		"env: {A: '1', B: b}\netc: [alternatives, x/conf]\nlibraries: [m]\n"
		"runner: x/invoke.x\nprelude: x/prelude.x\n");

	assert_string_equal(lang->title, "X");
	assert_string_equal(lang->env[0], "A=1");
	assert_string_equal(lang->env[1], "B=b");
	assert_null(lang->env[2]);
	assert_string_equal(lang->compile.argv[1], "{source}");
	assert_string_equal(lang->compile.project, "x.mod");
	assert_string_equal(lang->compile.project_argv[1], "{source_dir}");
	assert_int_equal(lang->compile.limits.memory_bytes, GiB);
	assert_int_equal(lang->compile.limits_set, knob_bit(knob_find("memory")));
	assert_string_equal(lang->runtime.needs[0], "/usr/bin/y");
	assert_string_equal(lang->runtime.version_argv[1], "--version");
	assert_string_equal(lang->runtime.version_prefix, "X ");
	assert_string_equal(lang->etc[1], "x/conf");
	assert_string_equal(lang->runtime.libraries[0], "m");
	assert_string_equal(lang->runner, "x/invoke.x");
	assert_string_equal(lang->prelude, "x/prelude.x");
	assert_null(language_free(lang));

	lang = language_from(LEAST "env: [A=1]\n");
	assert_string_equal(lang->env[0], "A=1");
	assert_null(lang->known.aliases[0]);
	assert_null(lang->compile.argv[0]);
	assert_null(lang->runner);
	assert_null(lang->prelude);
	assert_null(language_free(lang));
}

static void test_warm(void **state _unused_)
{
	struct language *lang = language_from(
		LEAST "warm:\n  kind: fork\n  runner: x/zygote.x\n  run: [/usr/bin/x, '{runner}']\n"
		      "  env: {X: '1'}\n  tiers: [[numpy], [numpy, a.b]]\n  light: [sys]\n  "
		      "cold_env: ['!XX', X*, YZ]\n");

	assert_int_equal(lang->warm.kind, WARMTH_FORK);
	assert_string_equal(lang->warm.runner, "x/zygote.x");
	assert_string_equal(lang->warm.argv[1], "{runner}");
	assert_string_equal(lang->warm.env[0], "X=1");
	assert_string_equal(lang->warm.tiers[0][0], "numpy");
	assert_null(lang->warm.tiers[0][1]);
	assert_string_equal(lang->warm.tiers[1][1], "a.b");
	assert_string_equal(lang->warm.light[0], "sys");
	/* The last tier. */
	assert_ptr_equal(lang->warm.tiers[2], lang->warm.light);
	assert_null(lang->warm.tiers[3]);
	assert_true(language_wants_cold(lang, "X"));
	assert_true(language_wants_cold(lang, "XY"));
	assert_false(language_wants_cold(lang, "XX"));
	assert_true(language_wants_cold(lang, "XXX"));
	assert_true(language_wants_cold(lang, "YZ"));
	assert_true(language_wants_cold(lang, "LD_PRELOAD"));
	assert_true(language_wants_cold(lang, "TZ"));
	assert_true(language_wants_cold(lang, "LANG"));
	assert_false(language_wants_cold(lang, "YZA"));
	assert_false(language_wants_cold(lang, "Y"));
	assert_false(language_wants_cold(lang, "LANGS"));
	assert_false(language_wants_cold(lang, "PATH"));
	assert_null(language_free(lang));

	lang = language_from(LEAST "warm: {kind: start, run: [/x]}\n");
	assert_int_equal(lang->warm.kind, WARMTH_START);
	assert_null(lang->warm.runner);
	assert_null(lang->warm.env[0]);
	assert_null(lang->warm.tiers[0]);
	assert_null(lang->warm.light[0]);
	assert_false(language_wants_cold(lang, "X"));
	assert_null(language_free(lang));

	lang = language_from(LEAST);
	assert_int_equal(lang->warm.kind, WARMTH_NONE);
	assert_null(language_free(lang));
}

#define WARM(text) LEAST "warm: {" text "}\n"

static const struct {
	const char *yaml, *text;
} refusals[] = {
	{ "name: x\n", "x.yaml: title: it is missing" },
	{ "[]", "x.yaml: a list is not an object" },
	{ LEAST "speed: 1\n", "x.yaml: speed: there is no such key" },
	{ LEAST "alias: [y]\n", "x.yaml: alias: there is no such key; did you mean 'aliases'?" },
	{ "name: A b\n", "x.yaml: name: 'A b' is not a language name (small letters, digits, "
			 "+ # . _ @ -)" },
	{ "source: ../x\n", "x.yaml: source: '../x' is not a plain file name" },
	{ "runtime: bin/x\n", "x.yaml: runtime: 'bin/x' is not an absolute path" },
	{ "needs: [x]\n", "x.yaml: needs[0]: 'x' is not an absolute path" },
	{ "etc: [../shadow]\n", "x.yaml: etc[0]: '../shadow' is not a name below /etc" },
	{ "class: scala\n", "x.yaml: class: 'scala' is not a known way to find a class (java is)" },
	{ "compile_limits: {ram: 1}\n", "x.yaml: compile_limits.ram: there is no such limit" },
	{ "env: {A: 1}\n", "x.yaml: env.A: 1 is not a text" },
	{ "name: x\ntitle: X\nsource: '{class}.x'\nruntime: /x\npackage: x\nrun: [x]\n",
	  "x.yaml: source: {class} needs the key class" },
	{ LEAST "warm: fork\n", "x.yaml: warm: a text is not an object" },
	{ LEAST "warm: {}\n", "x.yaml: warm.kind: it is missing" },
	{ WARM("kind: fork, speed: 1"), "x.yaml: warm.speed: there is no such key; known: kind, "
					"runner, run, env, tiers, light, cold_env" },
	{ WARM("kind: spoon"), "x.yaml: warm.kind: 'spoon' is neither fork nor start" },
	{ WARM("kind: fork, run: [/x, '{runner}']"), "x.yaml: warm.runner: it is missing" },
	{ WARM("kind: fork, runner: r"), "x.yaml: warm.run: it is missing" },
	{ WARM("runner: ../r"), "x.yaml: warm.runner: '../r' is not a name below runners/" },
	{ WARM("runner: /r"), "x.yaml: warm.runner: '/r' is not a name below runners/" },
	{ WARM("run: [x]"), "x.yaml: warm.run: its first word is not an absolute path" },
	{ WARM("run: []"), "x.yaml: warm.run: its first word is not an absolute path" },
	{ WARM("env: 5"), "x.yaml: warm.env: 5 is neither a map nor a list" },
	{ WARM("tiers: [numpy]"), "x.yaml: warm.tiers[0]: 'numpy' is not a list of texts" },
	{ WARM("tiers: [[]]"), "x.yaml: warm.tiers[0]: it is empty; that tier is always there" },
	{ WARM("tiers: [[a], ['b c']]"),
	  "x.yaml: warm.tiers[1][0]: 'b c' is not the name of a module (letters, digits, _ "
	  "and . inside)" },
	{ WARM("tiers: [[a], [a], [a], [a], [a], [a], [a], [a], [a]]"),
	  "x.yaml: warm.tiers: it has 9 entries, more than the 8 allowed" },
	{ WARM("kind: start, runner: r, run: [/x], tiers: [[a]]"),
	  "x.yaml: warm.tiers: only what is forked can have modules loaded" },
	{ WARM("light: a"), "x.yaml: warm.light: 'a' is not a list of texts" },
	{ WARM("kind: start, runner: r, run: [/x], light: [a]"),
	  "x.yaml: warm.light: only what is forked can have modules loaded" },
	{ WARM("cold_env: ['A*B']"),
	  "x.yaml: warm.cold_env[0]: 'A*B' is not the name of a variable, with * at most "
	  "at its end" },
	{ WARM("cold_env: ['']"),
	  "x.yaml: warm.cold_env[0]: '' is not the name of a variable, with * at most "
	  "at its end" },
	{ LEAST "versions: [1]\n", "x.yaml: versions: a list is not a map of versions" },
	{ LEAST "versions: {1: 2}\n", "x.yaml: versions.1: 2 is not a map of keys" },
	{ LEAST "versions: {'a b': {}}\n",
	  "x.yaml: versions.a b: 'a b' is not a version (letters, digits, . _ + -)" },
	{ LEAST "versions: {1: {warm: null}}\n",
	  "x.yaml: versions.1: warm cannot be another for a version" },
	{ LEAST "versions: {1: {run: []}}\n", "x.yaml: versions.1.run: it is missing" },
	{ LEAST "versions: {1: {speed: 1}}\n", "x.yaml: versions.1.speed: there is no such key" },
	{ "name: [\n", "x.yaml:2:1: did not find expected node content" },
};

static void test_refusals(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct document doc = { "x.yaml", refusals[i].yaml, strlen(refusals[i].yaml) };
		struct language *lang = NULL;
		struct error err = { 0 };

		if (language_parse(&doc, &lang, &err) != -EINVAL)
			fail_msg("taken: %s", refusals[i].yaml);
		assert_null(lang);
		assert_string_equal(err.text, refusals[i].text);
	}
}

static void test_detection(void **state _unused_)
{
	struct language *lang = language_from(LEAST "aliases: [ex, x@3.11, c++]\nextensions: [x]\n"
						    "shebangs: [python3, python]\n");
	static const struct {
		const char *line;
		bool matches;
	} lines[] = {
		{ "#!/usr/bin/python3\nprint()", true },
		{ "#! /usr/bin/python3 -u\n", true },
		{ "#!/usr/bin/env python3", true },
		{ "#!/usr/bin/env -S A=1 python3 -u\n", true },
		{ "#!/usr/bin/python3.11\n", true },
		{ "#!/usr/local/bin/python\r\n", true },
		{ "#!/usr/bin/perl\n", false },
		{ "#!/usr/bin/env\n", false },
		{ "#!\n/usr/bin/python3", false },
		{ "#!", false },
		{ "#", false },
		{ "", false },
		{ "print('#!/usr/bin/python3')", false },
	};

	assert_true(language_matches(lang, "X"));
	assert_true(language_matches(lang, "EX"));
	assert_true(language_matches(lang, "x@3.11"));
	assert_true(language_matches(lang, "C++"));
	assert_false(language_matches(lang, "x@3.12"));
	assert_false(language_matches(lang, ""));
	assert_true(language_has_extension(lang, "X"));
	assert_false(language_has_extension(lang, "xx"));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(language_has_shebang(lang, lines[i].line, strlen(lines[i].line)),
				 lines[i].matches);
	assert_null(language_free(lang));
}

static void test_class_names(void **state _unused_)
{
	static const struct {
		const char *source, *name;
	} rows[] = {
		{ "public class Hello { public static void main(String[] a) {} }", "Hello" },
		{ "class A {} public class B {}", "B" },
		{ "// public class No\npublic class Yes {}", "Yes" },
		{ "/* public class No {} */ public final class Yes {}", "Yes" },
		{ "class A { String s = \"public class No {\"; } public class Yes {}", "Yes" },
		{ "class A { char c = '\"'; char d = '\\''; } public class Yes {}", "Yes" },
		{ "class A { String s = \"\"\"\n public class No { \\\"\"\" \"\"\"; } public class "
		  "Yes {}",
		  "Yes" },
		{ "public record Point(int x, int y) { }", "Point" },
		{ "public enum Color { RED }", "Color" },
		{ "public interface Shape { }", "Shape" },
		{ "public abstract sealed class S permits T {} final class T extends S {}", "S" },
		{ "class A {} class B { public static void main(String[] a) {} }", "B" },
		{ "class A { public class Inner {} }", "A" },
		{ "class A { void f() { Object o = Foo.class; } }", "A" },
		{ "@Marker(kind = X.class) public class Yes {}", "Yes" },
		{ "class A {} class B {}", "A" },
		{ "import java.util.*;\n\npublic   class\n  Spaced{}", "Spaced" },
		{ "public class Größe {}", "Größe" },
		{ "System.out.println(1);", "Main" },
		{ "", "Main" },
		{ "public class", "Main" },
		{ "}}}} public class Odd {", "Odd" },
		{ "\"unclosed public class No {}", "Main" },
	};
	static const char longname[] = "public class Abcdefghijklmnopqrstuvwxyz {}";
	char name[64], small[8];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		language_class_name(rows[i].source, strlen(rows[i].source), name, sizeof(name));
		assert_string_equal(name, rows[i].name);
	}
	language_class_name(longname, strlen(longname), small, sizeof(small));
	assert_string_equal(small, "Main");
}

static void test_main_class(void **state _unused_)
{
	static const char *const rows[][2] = {
		{ "public class A {}", "A" },
		{ "package a; public class B {}", "a.B" },
		{ "/* package x; */ package org.example . deep;\nclass C { }",
		  "org.example.deep.C" },
		{ "package", "Main" },
		{ "package a.b", "a.b.Main" },
	};
	char name[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		language_main_class(rows[i][0], strlen(rows[i][0]), name, sizeof(name));
		assert_string_equal(name, rows[i][1]);
	}
}

static void test_source_name(void **state _unused_)
{
	struct language *java = language_from(
		"name: java\ntitle: Java\nclass: java\nsource: "
		"'{class}.java'\nruntime: /j\npackage: j\nrun: [j]\n");
	struct language *plain = language_from(LEAST);
	struct language *compiled = language_from(LEAST "compile: [c]\nextensions: [x]\n");
	char name[64];
	struct program_text program = { { "public class Foo {}", 19 }, "bar.java" };

	language_source_name(java, &program, name, sizeof(name));
	assert_string_equal(name, "Foo.java");
	program.name = NULL;
	language_source_name(plain, &program, name, sizeof(name));
	assert_string_equal(name, "main.x");
	program.name = "job"; /* an interpreter takes any name, a compiler wants its extension */
	language_source_name(plain, &program, name, sizeof(name));
	assert_string_equal(name, "job");
	language_source_name(compiled, &program, name, sizeof(name));
	assert_string_equal(name, "main.x");
	program.name = "sub.x/job.y";
	language_source_name(compiled, &program, name, sizeof(name));
	assert_string_equal(name, "main.x");
	program.name = "sub/job.X";
	language_source_name(compiled, &program, name, sizeof(name));
	assert_string_equal(name, "sub/job.X");
	assert_null(language_free(compiled));
	assert_null(language_free(java));
	assert_null(language_free(plain));
}

#define VERSIONS                                                                                   \
	LEAST "aliases: [ex]\nextensions: [x]\nenv: {A: b}\nlibraries: [l]\nwarm: {kind: fork, "   \
	      "run: [/w]}\n"                                                                       \
	      "versions:\n  '2.10': {runtime: /usr/bin/x2, run: [/usr/bin/x2, -o], env: null}\n"   \
	      "  3-rc: {title: New}\n"

static void test_versions(void **state _unused_)
{
	struct language *lang = language_from(VERSIONS);
	const struct language *two, *three;

	assert_string_equal(lang->id, "x");
	assert_null(lang->version_name);
	assert_int_equal(lang->n_versions, 2);
	two = language_find_version(lang, "2.10");
	three = language_find_version(lang, "3-RC");
	assert_non_null(two);
	assert_non_null(three);
	assert_null(language_find_version(lang, "2.1"));
	assert_null(language_find_version(lang, ""));
	assert_string_equal(two->name, "x");
	assert_string_equal(two->id, "x@2.10");
	assert_string_equal(two->version_name, "2.10");
	assert_string_equal(two->title, "X 2.10");
	assert_string_equal(two->runtime.path, "/usr/bin/x2");
	assert_string_equal(two->run_argv[1], "-o");
	assert_null(two->env[0]);
	assert_string_equal(two->runtime.libraries[0], "l");
	/* Neither a name or file of the language nor its warm runtime leads to a version. */
	assert_null(two->known.aliases[0]);
	assert_null(two->known.extensions[0]);
	assert_int_equal(two->warm.kind, WARMTH_NONE);
	assert_int_equal(two->n_versions, 0);
	assert_string_equal(three->title, "New");
	assert_string_equal(three->runtime.path, "/usr/bin/x");
	assert_string_equal(three->env[0], "A=b");
	assert_null(language_free(lang));
}

static void test_version_fits(void **state _unused_)
{
	static const struct {
		const char *have, *wanted;
		bool fits;
	} rows[] = {
		{ "3.11.2", "3.11.2", true },  { "3.11.2", "3.11", true },
		{ "3.11.2", "3", true },       { "3.11.2", "3.1", false },
		{ "3.11.2", "3.11.", false },  { "3.11.2", "3.11.2.1", false },
		{ "3.11.2", "", false },       { "3.11.2", "11", false },
		{ "3.1.2p20", "3.1.2", true }, { "17.0.15+6", "17.0.15", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(language_version_fits(rows[i].have, rows[i].wanted), rows[i].fits);
}

static void test_stage_source(void **state _unused_)
{
	struct language *java = language_from(
		"name: java\ntitle: Java\nclass: java\nsource: "
		"'{class}.java'\nruntime: /j\npackage: j\nrun: [j]\n");
	struct language *plain = language_from(LEAST);
	char name[64];

	language_stage_source(plain, 0, "anything", name, sizeof(name));
	assert_string_equal(name, "main-1.x");
	language_stage_source(plain, 31, "anything", name, sizeof(name));
	assert_string_equal(name, "main-32.x");
	language_stage_source(java, 1, "public class Foo {}", name, sizeof(name));
	assert_string_equal(name, "Foo.java");
	assert_null(language_free(java));
	assert_null(language_free(plain));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),     cmocka_unit_test(test_version_fits),
		cmocka_unit_test(test_stage_source), cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_all_keys),     cmocka_unit_test(test_warm),
		cmocka_unit_test(test_refusals),     cmocka_unit_test(test_detection),
		cmocka_unit_test(test_class_names),  cmocka_unit_test(test_main_class),
		cmocka_unit_test(test_source_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
