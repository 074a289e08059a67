/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of the request body: accepted values, and the message of each refusal. */
#include "spec/request.h"

#include "spec/knob.h"
#include "spec/test-support.h"

static void test_everything(void **state _unused_)
{
	struct request *req = request_from(
		"{\"language\": \"Python\", \"code\": \"a\\u0000b\", \"args\": [\"x\", \"\"],"
		" \"stdin\": \"in\\u0000\", \"env\": {\"A_1\": \"v\", \"_\": \"\"},"
		" \"files\": {\"d/a.txt\": \"text\", \"b\": {\"base64\": \"AAH/\", \"mode\": "
		"\"0755\"}, \"c\": {\"text\": \"t\"}},"
		" \"limits\": {\"memory\": \"64m\"}, \"network\": \"loopback\", \"policy\": "
		"\"strict\","
		" \"read_only\": true, \"image\": \"/srv/image\", \"tty\": true,"
		" \"labels\": {\"team\": \"x\"}, \"collect\": [\"*.csv\"],"
		" \"preload\": [\"numpy\", \"_a.B9\", \"numpy\"],"
		" \"compiler_args\": [\"-O3\", \"\"]}");

	assert_string_equal(req->language, "Python");
	assert_int_equal(req->code.len, 3);
	assert_int_equal(req->n_args, 2);
	assert_string_equal(req->args[0], "x");
	assert_null(req->args[2]);
	assert_int_equal(req->stdin_data.len, 3);
	assert_int_equal(req->n_env, 2);
	assert_string_equal(req->env[0].name, "A_1");
	assert_string_equal(req->env[0].value, "v");
	assert_int_equal(req->n_files, 3);
	assert_string_equal(req->files[0].path, "d/a.txt");
	assert_int_equal(req->files[0].mode, 0644);
	assert_int_equal(req->files[1].data.len, 3);
	assert_memory_equal(req->files[1].data.data, "\x00\x01\xff", 3);
	assert_int_equal(req->files[1].mode, 0755);
	assert_memory_equal(req->files[2].data.data, "t", 1);
	assert_int_equal(req->limits.memory_bytes, 64 * MiB);
	assert_int_equal(req->limits_set, knob_bit(knob_find("memory")));
	assert_int_equal(req->network, NETWORK_NONE);
	assert_string_equal(req->network_text, "loopback");
	assert_string_equal(req->policy, "strict");
	assert_true(req->read_only && req->tty);
	assert_string_equal(req->image, "/srv/image");
	assert_string_equal(req->collect[0], "*.csv");
	assert_int_equal(json_object_size(req->labels), 1);
	assert_string_equal(req->preload[0], "numpy");
	assert_string_equal(req->preload[1], "_a.B9");
	assert_null(req->preload[2]);
	assert_string_equal(req->compiler_args[0], "-O3");
	assert_string_equal(req->compiler_args[1], "");
	assert_null(req->compiler_args[2]);
	assert_null(request_free(req));
}

static void test_least(void **state _unused_)
{
	struct request *req = request_from("{\"code\": \"\", \"stdin\": null, \"args\": null}");

	assert_null(req->language);
	assert_non_null(req->code.data);
	assert_int_equal(req->code.len, 0);
	assert_non_null(req->args);
	assert_null(req->args[0]);
	assert_null(req->stdin_data.data);
	assert_int_equal(req->network, NETWORK_NONE);
	assert_null(req->collect);
	assert_null(req->preload);
	assert_null(req->compiler_args);
	assert_null(request_free(req));
}

static void test_parts(void **state _unused_)
{
	struct request *req = request_from(
		"{\"stages\": [{\"name\": \"build\", \"code\": \"make\", \"limits\": {\"timeout\": "
		"5}}, {\"argv\": [\"/bin/true\", \"x\"], \"stdin\": \"i\", \"env\": {\"K\": "
		"\"V\"}}]}");

	assert_int_equal(req->n_stages, 2);
	assert_string_equal(req->stages[0].name, "build");
	assert_string_equal(req->stages[0].code, "make");
	assert_null(req->stages[0].argv);
	assert_int_equal(req->stages[0].limits.timeout_ms, 5000);
	assert_string_equal(req->stages[1].name, "stage-2");
	assert_string_equal(req->stages[1].argv[1], "x");
	assert_int_equal(req->stages[1].n_env, 1);
	assert_null(request_free(req));

	req = request_from("{\"code\": \"x\", \"tests\": [{\"stdin\": \"1\", \"expected\": \"2\"}, "
			   "{\"expected\": \"\"}]}");
	assert_int_equal(req->n_tests, 2);
	assert_int_equal(req->tests[0].expected.len, 1);
	assert_null(req->tests[1].stdin_data.data);
	assert_non_null(req->tests[1].expected.data);
	assert_null(request_free(req));

	/* Equal checkers that follow one another are one. */
	req = request_from("{\"code\": \"x\", \"tests\": [{\"checker\": {\"language\": \"c\", "
			   "\"code\": \"1\"}}, "
			   "{\"checker\": {\"code\": \"1\", \"language\": \"c\"}, \"points\": 0}, "
			   "{\"expected\": \"\", \"checker\": {\"tolerance\": 0.5}}, "
			   "{\"checker\": {\"language\": \"c\", \"code\": \"2\"}}]}");
	assert_int_equal(req->tests[0].checker.kind, CHECKER_PROGRAM);
	assert_ptr_equal(req->tests[1].checker.program, req->tests[0].checker.program);
	assert_int_equal(req->tests[0].points, -1);
	assert_int_equal(req->tests[1].points, 0);
	assert_true(req->tests[2].checker.tolerance == 0.5);
	assert_string_equal(req->tests[3].checker.program->args[2], "expected.txt");
	assert_ptr_not_equal(req->tests[3].checker.program, req->tests[0].checker.program);
	assert_null(request_free(req));

	/* A test's own words stand beside the request's, or in their place. */
	req = request_from(
		"{\"code\": \"x\", \"args\": [\"a\"], \"env\": {\"A\": \"1\", \"B\": \"2\"}, "
		"\"stop_at\": \"group\", \"tests\": ["
		"{\"name\": \"one\", \"expected\": \"\", \"args\": [\"b\", \"c\"], \"env\": "
		"{\"B\": \"3\", \"C\": \"4\"}, \"files\": {\"f\": \"x\"}, \"limits\": "
		"{\"timeout\": 2}, \"group\": \"small\"}, "
		"{\"expected\": \"\", \"group\": \"large\"}, {\"expected\": \"\"}], "
		"\"groups\": [{\"name\": \"large\", \"needs\": [\"small\"], \"points\": 60}, "
		"{\"name\": \"small\", \"scoring\": \"min\"}], "
		"\"interactor\": {\"language\": \"c\", \"code\": \"1\"}}");
	assert_string_equal(req->tests[0].name, "one");
	assert_string_equal(req->tests[0].args[1], "c");
	assert_null(req->tests[1].args);
	assert_int_equal(req->tests[0].n_env, 3);
	assert_string_equal(req->tests[0].env[1].name, "B");
	assert_string_equal(req->tests[0].env[1].value, "3");
	assert_int_equal(req->tests[1].n_env, 2);
	assert_int_equal(req->tests[0].n_files, 1);
	assert_int_equal(req->tests[0].limits.timeout_ms, 2000);
	assert_int_equal(req->stop_at, STOP_GROUP);
	assert_int_equal(req->n_groups, 2);
	assert_int_equal(req->tests[0].group, 1);
	assert_int_equal(req->tests[1].group, 0);
	assert_int_equal(req->tests[2].group, 2);
	assert_int_equal(req->groups[0].scoring, SCORING_ALL);
	assert_int_equal(req->groups[1].scoring, SCORING_MIN);
	assert_string_equal(req->groups[0].needs[0], "small");
	assert_string_equal(req->interactor->args[1], "/tmp/output.txt");
	assert_null(request_free(req));
	/* Without `groups`, names of tests make them. */
	req = request_from(
		"{\"code\": \"x\", \"tests\": [{\"expected\": \"\", \"group\": \"a\"}, "
		"{\"expected\": \"\", \"group\": \"b\"}, {\"expected\": \"\", \"group\": "
		"\"a\"}]}");
	assert_int_equal(req->n_groups, 2);
	assert_int_equal(req->tests[2].group, 0);
	assert_int_equal(req->groups[1].scoring, SCORING_SUM);
	assert_null(request_free(req));

	req = request_from("{\"code\": \"x\", \"invoke\": {\"class\": \"Tool\", \"method\": "
			   "\"run\", \"params\": {\"a\": 1}}}");
	assert_string_equal(req->invoke_class, "Tool");
	assert_string_equal(req->invoke_method, "run");
	assert_int_equal(json_object_size(req->invoke_params), 1);
	assert_null(request_free(req));

	req = request_from("{\"entry\": \"src/m.py\", \"files\": {\"src/m.py\": \"\"}, "
			   "\"network\": \"allow:example.org:443,*.pypi.org\"}");
	assert_string_equal(req->entry, "src/m.py");
	assert_int_equal(req->network, NETWORK_ALLOW);
	assert_string_equal(req->network_text, "allow:example.org:443,*.pypi.org");
	assert_string_equal(req->network_destinations[0], "example.org:443");
	assert_string_equal(req->network_destinations[1], "*.pypi.org");
	assert_null(req->network_destinations[2]);
	assert_null(request_free(req));

	req = request_from("{\"code\": \"\", \"network\": \"allow\"}");
	assert_int_equal(req->network, NETWORK_ALLOW);
	assert_null(req->network_destinations);
	assert_null(request_free(req));
}

#define PRELOAD(list)	"{\"code\": \"\", \"preload\": " list "}"
#define NO_MODULE	"is not the name of a module (letters, digits, _ and . inside)"
#define NEEDS_DAEMON	": it needs a daemon; start one with `atoll serve`, or leave it out"
#define TEN		"aaaaaaaaaa"
#define PATH_TEXT(path) "{\"code\": \"\", \"files\": {\"" path "\": \"\"}}"

static const struct {
	const char *json, *field, *text;
} refusals[] = {
	{ "[]", "", "the request is a list, not an object" },
	{ "{}", "code", "code: there is nothing to run; give code, entry or stages" },
	{ "{\"cod\": \"\"}", "cod", "cod: there is no such key; did you mean 'code'?" },
	{ "{\"speed\": 1}", "speed", "speed: there is no such key" },
	{ "{\"lang\": \"c\"}", "lang", "lang: there is no such key; here it is language" },
	{ "{\"source_code\": \"\"}", "source_code",
	  "source_code: there is no such key; here it is code" },
	{ "{\"lang\": \"c\"}", "lang", "lang: there is no such key; here it is language" },
	{ "{\"source_code\": \"\"}", "source_code",
	  "source_code: there is no such key; here it is code" },
	{ "{\"timeout\": 1}", "timeout",
	  "timeout: there is no such key; did you mean 'limits.timeout'?" },
	{ "{\"timout\": 5}", "timout",
	  "timout: there is no such key; did you mean 'limits.timeout'?" },
	{ "{\"generated_code\": \"\"}", "generated_code",
	  "generated_code: there is no such key; here it is code; POST /execute takes "
	  "generated_code" },
	{ "{\"memory\": 1}", "memory",
	  "memory: there is no such key; did you mean 'limits.memory'?" },
	{ "{\"code\": \"\", \"workspace\": \"../w\"}", "workspace",
	  "workspace: '../w' is not a name: a letter or digit, then letters, digits, . _ and -, 63 "
	  "at "
	  "most" },
	{ "{\"code\": \"\", \"workspace\": \"a/b\"}", "workspace",
	  "workspace: 'a/b' is not a name: a letter or digit, then letters, digits, . _ and -, 63 "
	  "at "
	  "most" },
	{ "{\"code\": \"\", \"workspace\": \"\"}", "workspace",
	  "workspace: '' is not a name: a letter or digit, then letters, digits, . _ and -, 63 at "
	  "most" },
	{ "{\"code\": \"\", \"workspace\": {\"cwd\": true}}", "workspace",
	  "workspace: it has no name" },
	{ "{\"code\": \"\", \"workspace\": {\"name\": \".\"}}", "workspace.name",
	  "workspace.name: '.' is not a name: a letter or digit, then letters, digits, . _ and -, "
	  "63 at "
	  "most" },
	{ PRELOAD("\"numpy\""), "preload", "preload: 'numpy' is not a list of texts" },
	{ PRELOAD("[5]"), "preload[0]", "preload[0]: 5 is not a text" },
	{ PRELOAD("[\"a\", \"\"]"), "preload[1]", "preload[1]: '' " NO_MODULE },
	{ PRELOAD("[\"9a\"]"), "preload[0]", "preload[0]: '9a' " NO_MODULE },
	{ PRELOAD("[\".a\"]"), "preload[0]", "preload[0]: '.a' " NO_MODULE },
	{ PRELOAD("[\"a/b\"]"), "preload[0]", "preload[0]: 'a/b' " NO_MODULE },
	{ PRELOAD("[\"a-b\"]"), "preload[0]", "preload[0]: 'a-b' " NO_MODULE },
	{ PRELOAD("[\"" TEN TEN TEN TEN TEN TEN "aaaa\"]"), "preload[0]",
	  "preload[0]: it has 64 bytes, more than the 63 allowed" },
	{ "{\"code\": \"\", \"compiler_args\": \"-O3\"}", "compiler_args",
	  "compiler_args: '-O3' is not a list of texts" },
	{ "{\"code\": \"\", \"compiler_args\": [\"-O3\", 3]}", "compiler_args[1]",
	  "compiler_args[1]: 3 is not a text" },
	{ "{\"code\": \"\", \"eval\": true, \"stdin\": \"x\"}", "eval",
	  "eval: it cannot be combined with stdin" },
	{ "{\"code\": \"\", \"priority\": 5}", "priority", "priority" NEEDS_DAEMON },
	{ "{\"code\": \"\", \"archive\": \"eA==\"}", "archive", "archive" NEEDS_DAEMON },
	{ "{\"code\": \"\", \"callback_url\": \"http://a/\"}", "callback_url",
	  "callback_url" NEEDS_DAEMON },
	{ "{\"code\": \"\", \"limits\": {\"timeout\": \"adaptive\"}}", "limits.timeout",
	  "limits.timeout: only a whole request to a daemon (`atoll serve`) can have an adaptive "
	  "timeout; give a time" },
	{ "{\"code\": \"\", \"limits\": {\"cpu_time\": \"adaptive\"}}", "limits.cpu_time",
	  "limits.cpu_time: 'adaptive' is not a time, in seconds or like \"500ms\" (allowed: 1 ms "
	  "to "
	  "86400 s)" },
	{ "{\"code\": 5}", "code", "code: 5 is neither a text nor {\"base64\": …}" },
	{ "{\"code\": {\"base64\": \"?\"}}", "code", "code: it is not valid base64" },
	{ "{\"code\": \"\", \"language\": 5}", "language", "language: 5 is not a text" },
	{ "{\"code\": \"\", \"language\": \"\"}", "language", "language: it is empty" },
	{ "{\"code\": \"\", \"language\": \"a\\u0000b\"}", "language",
	  "language: it holds a NUL byte" },
	{ "{\"code\": \"\", \"args\": \"x\"}", "args", "args: 'x' is not a list of texts" },
	{ "{\"code\": \"\", \"args\": [\"a\", 1]}", "args[1]", "args[1]: 1 is not a text" },
	{ "{\"code\": \"\", \"args\": [\"a\\u0000\"]}", "args[0]", "args[0]: it holds a NUL byte" },
	{ "{\"code\": \"\", \"env\": {\"1A\": \"\"}}", "env",
	  "env: '1A' is not a variable name (letters, digits and _, not starting with a digit)" },
	{ "{\"code\": \"\", \"env\": {\"A=B\": \"\"}}", "env",
	  "env: 'A=B' is not a variable name (letters, digits and _, not starting with a digit)" },
	{ "{\"code\": \"\", \"env\": {\"A\": 1}}", "env.A", "env.A: 1 is not a text" },
	{ "{\"code\": \"\", \"env\": {\"A\": \"\\u0000\"}}", "env.A",
	  "env.A: it holds a NUL byte" },
	{ PATH_TEXT("/etc/passwd"), "files",
	  "files: the name '/etc/passwd' is absolute; names are relative to the work directory" },
	{ PATH_TEXT("../x"), "files",
	  "files: the name '../x' leads out of the work directory; write it without '..'" },
	{ PATH_TEXT("a/../../x"), "files",
	  "files: the name 'a/../../x' leads out of the work directory; write it without '..'" },
	{ PATH_TEXT("a/.."), "files",
	  "files: the name 'a/..' leads out of the work directory; write it without '..'" },
	{ PATH_TEXT("./a"), "files",
	  "files: the name './a' has a '.' between its slashes; leave that out" },
	{ PATH_TEXT("a//b"), "files",
	  "files: the name 'a//b' has two slashes in a row, or one at its end" },
	{ PATH_TEXT("a/"), "files",
	  "files: the name 'a/' has two slashes in a row, or one at its end" },
	{ PATH_TEXT(""), "files", "files: the name '' is empty" },
	{ "{\"code\": \"\", \"files\": {\"a/b\": \"\", \"a.c\": \"\", \"a\": \"\"}}", "files",
	  "files: 'a' is a file and also the directory of 'a/b'" },
	{ "{\"code\": \"\", \"files\": {\"a\": 1}}", "files.a",
	  "files.a: 1 is neither a text nor {\"base64\": …}" },
	{ "{\"code\": \"\", \"files\": {\"a\": {}}}", "files.a",
	  "files.a: it has neither text nor base64" },
	{ "{\"code\": \"\", \"files\": {\"a\": {\"base64\": \"!\"}}}", "files.a",
	  "files.a: it is not valid base64" },
	{ "{\"code\": \"\", \"files\": {\"a\": {\"text\": \"\", \"base64\": \"\"}}}",
	  "files.a.base64", "files.a.base64: give text or base64, not both" },
	{ "{\"code\": \"\", \"files\": {\"a\": {\"text\": \"\", \"mode\": \"4755\"}}}",
	  "files.a.mode", "files.a.mode: '4755' is not \"0644\" or \"0755\"" },
	{ "{\"code\": \"\", \"files\": []}", "files",
	  "files: a list is not an object of names and contents, such as {\"data.csv\": \"a,b\"}" },
	{ "{\"code\": \"\", \"limits\": {\"memory\": 1}}", "limits.memory",
	  "limits.memory: 1 is below the minimum of 4 MiB (allowed: 4 MiB to 1 TiB)" },
	{ "{\"code\": \"\", \"network\": \"full\"}", "network",
	  "network: 'full' is not none, off, allow or allow:HOST:PORT,…" },
	{ "{\"code\": \"\", \"network\": \"allow:\"}", "network",
	  "network: 'allow:' is not none, off, allow or allow:HOST:PORT,…" },
	{ "{\"code\": \"\", \"network\": \"allow:a.org:443,127.1\"}", "network",
	  "network: '127.1' is no HOST, HOST:PORT, *.DOMAIN or *" },
	{ "{\"code\": \"\", \"network\": \"nonesuch\"}", "network",
	  "network: 'nonesuch' is not none, off, allow or allow:HOST:PORT,…" },
	{ "{\"code\": \"\", \"read_only\": \"yes\"}", "read_only",
	  "read_only: 'yes' is neither true nor false" },
	{ "{\"code\": \"\", \"image\": \"img\"}", "image", "image: 'img' is not an absolute path" },
	{ "{\"code\": \"\", \"image\": \"/proc/self/root\"}", "image",
	  "image: '/proc/self/root' is the kernel's, not an image" },
	{ "{\"entry\": \"../m.py\"}", "entry",
	  "entry: '../m.py' is not a relative file name without . and .." },
	{ "{\"entry\": \"m.py\"}", "entry", "entry: 'm.py' is not among files" },
	{ "{\"code\": \"\", \"labels\": {\"a\": 1}}", "labels.a", "labels.a: 1 is not a text" },
	{ "{\"code\": \"\", \"labels\": {\"a=b\": \"c\"}}", "labels.a=b",
	  "labels.a=b: a label's name has no '='" },
	{ "{\"code\": \"\", \"collect\": [\"*.csv\", \"/etc/*\"]}", "collect[1]",
	  "collect[1]: '/etc/*' is absolute; give a pattern relative to the work directory" },
	{ "{\"code\": \"\", \"collect\": [\"a/../../*\"]}", "collect[0]",
	  "collect[0]: 'a/../../*' has the part '..'" },
	{ "{\"code\": \"\", \"collect\": [\"..a/...\", \"./*.csv\"]}", "collect[1]",
	  "collect[1]: './*.csv' has the part '.'" },
	{ "{\"code\": \"\", \"collect\": [\"a//b\"]}", "collect[0]",
	  "collect[0]: 'a//b' has an empty part" },
	{ "{\"code\": \"\", \"collect\": [\"\"]}", "collect[0]",
	  "collect[0]: '' has an empty part" },
	{ "{\"code\": \"\", \"mounts\": [\"/data\"]}", "mounts",
	  "mounts: a list is not an object of paths in the sandbox and on the host, such as "
	  "{\"/data\": \"/srv/data\"}" },
	{ "{\"code\": \"\", \"mounts\": {\"/data\": \"srv\"}}", "mounts./data",
	  "mounts./data: 'srv' is not an absolute path without . and .." },
	{ "{\"code\": \"\", \"mounts\": {\"/data\": \"/srv/../etc\"}}", "mounts./data",
	  "mounts./data: '/srv/../etc' is not an absolute path without . and .." },
	{ "{\"code\": \"\", \"mounts\": {\"/data\": \"/srv/a,b\"}}", "mounts./data",
	  "mounts./data: '/srv/a,b' holds one of : , \\ and \"" },
	{ "{\"code\": \"\", \"mounts\": {\"/\": \"/srv\"}}", "mounts",
	  "mounts: '/' is not an absolute path without . and .." },
	{ "{\"code\": \"\", \"mounts\": {\"/data/\": \"/srv\"}}", "mounts",
	  "mounts: '/data/' is not an absolute path without . and .." },
	{ "{\"code\": \"\", \"mounts\": {\"/usr/x\": \"/srv\"}}", "mounts",
	  "mounts: '/usr/x' is a place of the sandbox itself; take another, such as /data" },
	{ "{\"code\": \"\", \"mounts\": {\"/a/b\": \"/srv\", \"/a\": \"/srv\"}}", "mounts",
	  "mounts: '/a' and '/a/b' lie in each other" },
	{ "{\"stages\": [{\"name\": \"a\"}]}", "stages[0]",
	  "stages[0]: give exactly one of code and argv" },
	{ "{\"stages\": [{\"code\": \"x\", \"argv\": [\"y\"]}]}", "stages[0]",
	  "stages[0]: give exactly one of code and argv" },
	{ "{\"stages\": [{\"argv\": []}]}", "stages[0]", "stages[0]: argv names no program" },
	{ "{\"stages\": [{\"name\": \"a b\", \"code\": \"x\"}]}", "stages[0].name",
	  "stages[0].name: 'a b' is not a stage name (letters, digits, _ . -)" },
	{ "{\"stages\": [{\"name\": \"a\", \"code\": \"x\"}, {\"name\": \"a\", \"code\": \"y\"}]}",
	  "stages[1]", "stages[1]: the name 'a' is taken by another stage" },
	{ "{\"stages\": [{\"code\": \"x\", \"limits\": {\"pids\": 0}}]}", "stages[0].limits.pids",
	  "stages[0].limits.pids: 0 is below the minimum of 1 (allowed: 1 to 4194304)" },
	{ "{\"stages\": [{\"code\": \"x\", \"user\": 0}]}", "stages[0].user",
	  "stages[0].user: there is no such key; known: name, code, argv, stdin, env, limits" },
	{ "{\"code\": \"\", \"tests\": [{\"input\": \"\"}]}", "tests[0].input",
	  "tests[0].input: there is no such key; here it is stdin" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\", \"files\": {\"a/b\": \"\"}}], "
	  "\"files\": "
	  "{\"a\": \"\"}}",
	  "tests[0]", "tests[0]: 'a' is a file and also the directory of 'a/b'" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\", \"name\": \"\"}]}", "tests[0].name",
	  "tests[0].name: it is empty" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\", \"limits\": {\"timeout\": -1}}]}",
	  "tests[0].limits.timeout",
	  "tests[0].limits.timeout: -1 is below the minimum of 1 ms (allowed: 1 ms to 86400 s)" },
	{ "{\"code\": \"\", \"stop_at\": \"first\"}", "stop_at",
	  "stop_at: it says how tests are judged, and there are none" },
	{ "{\"code\": \"\", \"stop_at\": \"last\", \"tests\": []}", "stop_at",
	  "stop_at: 'last' is not first, group or never" },
	{ "{\"code\": \"\", \"groups\": [{\"name\": \"a\"}], \"tests\": [{\"expected\": \"\", "
	  "\"group\": \"b\"}]}",
	  "tests[0]", "tests[0]: its group 'b' is not among groups" },
	{ "{\"code\": \"\", \"groups\": [{\"name\": \"a\"}], \"tests\": [{\"expected\": \"\"}]}",
	  "groups[0]", "groups[0]: no test is of the group 'a'" },
	{ "{\"code\": \"\", \"groups\": [{\"name\": \"a\"}, {\"name\": \"a\"}], \"tests\": "
	  "[{\"expected\": \"\", \"group\": \"a\"}]}",
	  "groups[1]", "groups[1]: the name 'a' is taken by another group" },
	{ "{\"code\": \"\", \"groups\": [{\"name\": \"a\", \"needs\": [\"a\"]}], \"tests\": "
	  "[{\"expected\": \"\", \"group\": \"a\"}]}",
	  "groups[0]", "groups[0]: it needs 'a': put the tests of that before its own" },
	{ "{\"code\": \"\", \"groups\": [{\"name\": \"a\", \"needs\": [\"b\"]}], \"tests\": "
	  "[{\"expected\": \"\", \"group\": \"a\"}]}",
	  "groups[0]", "groups[0]: it needs 'b', which is not among groups" },
	{ "{\"code\": \"\", \"groups\": [{\"name\": \"a\", \"scoring\": \"max\"}]}",
	  "groups[0].scoring", "groups[0].scoring: 'max' is not sum, all or min" },
	{ "{\"code\": \"\", \"interactor\": {\"language\": \"c\"}, \"tests\": []}", "interactor",
	  "interactor: give language and code of the program that judges" },
	{ "{\"code\": \"\", \"interactor\": {\"language\": \"c\", \"code\": \"\"}, \"tests\": "
	  "[{\"checker\": \"exact\"}]}",
	  "tests[0]", "tests[0]: the interactor judges; leave checker out" },
	{ "{\"code\": \"\", \"tests\": [{\"stdin\": \"\"}]}", "tests[0]",
	  "tests[0]: expected is missing: what must it print?" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\", \"points\": -1}]}", "tests[0].points",
	  "tests[0].points: -1 is not a whole number from 0 to 1000000" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\", \"checker\": \"x\"}]}",
	  "tests[0].checker",
	  "tests[0].checker: 'x' is not exact, ignore_whitespace, unordered_lines, "
	  "{\"tolerance\": NUMBER} or {\"language\", \"code\"}" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\", \"checker\": {\"tolerance\": "
	  "\"1\"}}]}",
	  "tests[0].checker.tolerance",
	  "tests[0].checker.tolerance: '1' is not a number from 0 on" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\", \"checker\": {\"code\": \"\"}}]}",
	  "tests[0].checker",
	  "tests[0].checker: give language and code of the program that judges" },
	{ "{\"code\": \"\", \"tests\": [{\"checker\": {\"language\": \"c\", \"code\": \"\", "
	  "\"files\": {\"output.txt\": \"\"}}}]}",
	  "tests[0].checker", "tests[0].checker: 'output.txt' is the name of a file that it gets" },
	{ "{\"code\": \"\", \"tests\": [{\"checker\": {\"language\": \"c\", \"code\": \"\", "
	  "\"tests\": []}}]}",
	  "tests[0].checker.tests",
	  "tests[0].checker.tests: there is no such key; known: language, code, files, limits, "
	  "compiler_args" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\"}], \"stages\": [{\"code\": \"x\"}]}",
	  "tests", "tests: it cannot be combined with stages" },
	{ "{\"code\": \"x\", \"stages\": [{\"code\": \"y\"}]}", "stages",
	  "stages: they would run instead of the code; make it a stage, or one of files" },
	{ "{\"entry\": \"x\", \"files\": {\"x\": \"\"}, \"stages\": [{\"code\": \"y\"}]}", "stages",
	  "stages: they would run instead of the entry; make it a stage, or one of files" },
	{ "{\"code\": \"\", \"tests\": [{\"expected\": \"\"}], \"stdin\": \"\"}", "tests",
	  "tests: it cannot be combined with stdin" },
	{ "{\"code\": \"\", \"invoke\": {\"class\": \"A\"}}", "invoke",
	  "invoke: class and method are both needed" },
	{ "{\"code\": \"\", \"invoke\": {\"class\": \"A\", \"method\": \"m\", \"params\": []}}",
	  "invoke.params", "invoke.params: a list is not an object of names and values" },
	{ "{\"files\": {\"a\": \"\"}, \"invoke\": {\"class\": \"A\", \"method\": \"m\"}}", "code",
	  "code: there is nothing to run; give code, entry or stages" },
};

static void test_refusals(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		json_t *root = json_from(refusals[i].json);
		struct request *req = NULL;
		struct error err = { 0 };

		assert_int_equal(request_parse(root, &req, &err), -EINVAL);
		assert_null(req);
		assert_string_equal(err.text, refusals[i].text);
		assert_string_equal(err.field, refusals[i].field);
		assert_int_equal(err.code, ERROR_INPUT);
		json_decref(root);
	}
}

static void refuse_tree(json_t *root, const char *text)
{
	struct request *req = NULL;
	struct error err = { 0 };

	assert_int_equal(request_parse(root, &req, &err), -EINVAL);
	assert_string_equal(err.text, text);
	json_decref(root);
}

/* Counts and lengths, one past each bound. */
static void test_bounds(void **state _unused_)
{
	char *large = malloc(REQUEST_CODE_MAX + 2);
	json_t *root, *list = json_array(), *map = json_object();

	memset(large, 'x', REQUEST_CODE_MAX + 1);
	large[REQUEST_CODE_MAX + 1] = '\0';
	root = json_pack("{s:s}", "code", large);
	refuse_tree(root, "code: it has 16777217 bytes, more than the 16777216 allowed");

	large[REQUEST_WORD_MAX + 1] = '\0';
	root = json_pack("{s:s, s:[s]}", "code", "", "args", large);
	refuse_tree(root, "args[0]: it has 131072 bytes, more than the 131071 allowed");
	root = json_pack("{s:s, s:{s:s}}", "code", "", "env", "A", large + 1);
	refuse_tree(root, "env.A: name and value have more than 131071 bytes");
	for (int i = 0; i < 9; i++)
		assert_int_equal(json_array_append_new(list, json_string(large + 1)), 0);
	root = json_pack("{s:s, s:o}", "code", "", "args", list);
	refuse_tree(root,
		    "args: arguments and variables have 1179648 bytes together, more than the "
		    "1048576 allowed; pass large data as stdin or files");

	list = json_array();
	for (int i = 0; i <= REQUEST_ARGS_MAX; i++)
		assert_int_equal(json_array_append_new(list, json_string("")), 0);
	root = json_pack("{s:s, s:o}", "code", "", "args", list);
	refuse_tree(root, "args: it has 4097 entries, more than the 4096 allowed");

	for (int i = 0; i <= REQUEST_FILES_MAX; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(json_object_set_new(map, name, json_string("")), 0);
	}
	root = json_pack("{s:s, s:O}", "code", "", "files", map);
	refuse_tree(root, "files: there are 4097 files, more than the 4096 allowed");
	root = json_pack("{s:s, s:o}", "code", "", "env", map);
	refuse_tree(root, "env: there are 4097 variables, more than the 512 allowed");
	free(large);
}

static void test_paths(void **state _unused_)
{
	char path[REQUEST_PATH_MAX + 2];
	struct error err = { 0 };

	assert_int_equal(request_check_path("a/b.c", 5, &err), 0);
	assert_int_equal(request_check_path("..a/...", 7, &err), 0);
	assert_int_equal(request_check_path("a\0b", 3, &err), -EINVAL);
	assert_string_equal(err.text, "files: the name 'a?b' holds a NUL byte");

	memset(path, 'x', sizeof(path));
	assert_int_equal(request_check_path(path, 255, &err), 0);
	assert_int_equal(request_check_path(path, 256, &err), -EINVAL);
	assert_non_null(strstr(err.text, "has more than 255 bytes between two slashes"));
	for (size_t i = 200; i < sizeof(path); i += 200)
		path[i] = '/';
	assert_int_equal(request_check_path(path, REQUEST_PATH_MAX, &err), 0);
	assert_int_equal(request_check_path(path, REQUEST_PATH_MAX + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is longer than 1000 bytes"));
	for (size_t i = 1; i < sizeof(path); i += 2)
		path[i] = '/';
	path[0] = path[200] = 'x';
	assert_int_equal(request_check_path(path, 2 * REQUEST_DEPTH_MAX - 1, &err), 0);
	assert_int_equal(request_check_path(path, 2 * REQUEST_DEPTH_MAX + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is more than 32 directories deep"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything), cmocka_unit_test(test_least),
		cmocka_unit_test(test_parts),	   cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bounds),	   cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
