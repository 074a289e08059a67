/* SPDX-License-Identifier: Apache-2.0 */
/* Policy files and layers: the shipped default, each key, each refusal, each fix. */
#include "plan/policy/policy.h"

#include "plan/policy/test-host.h"
#include "spec/knob.h"
#include "spec/test-support.h"

static const struct host_facts good_host = {
	.cores = 4,
	.memory_bytes = 16 * GiB,
	.cgroup = CGROUP_V2,
	RICH_HOST,
};

#define BIT(layer) (1u << (layer))

static void test_default(void **state _unused_)
{
	static const char *const etc[] = { "alternatives", "ld.so.cache", "localtime",
					   "os-release",   "services",	  "protocols",
					   "mime.types",   "ssl/certs" };
	_cleanup_free_ char *text = text_of_file(POLICIES_DIR "/default.yaml");
	struct document doc = { "default.yaml", text, strlen(text) };
	struct host_facts rootless = good_host;
	struct policy *policy = NULL;
	struct limits presets, ceilings;
	struct error err = { 0 };

	if (policy_parse(&doc, &good_host, &policy, &err) < 0)
		fail_msg("%s", err.text);
	/* The file says what the table says: doc/limits.md in both. */
	limits_presets(&presets);
	limits_ceilings(&ceilings, good_host.cores);
	assert_memory_equal(&policy->defaults, &presets, sizeof(presets));
	assert_memory_equal(&policy->ceilings, &ceilings, sizeof(ceilings));
	assert_string_equal(policy->name, "default");
	assert_string_equal(policy->usr[0], "/usr");
	assert_null(policy->usr[1]);
	for (size_t i = 0; i < ARRAY_SIZE(etc); i++)
		assert_string_equal(policy->etc[i], etc[i]);
	assert_null(policy->etc[ARRAY_SIZE(etc)]);
	assert_int_equal(policy->network, NETWORK_NONE);
	assert_int_equal(policy->preload, PRELOAD_TIERS);
	assert_false(policy->read_only);
	assert_int_equal(policy->required, BIT(LAYER_USERNS) | BIT(LAYER_SECCOMP) |
						   BIT(LAYER_CGROUP_MEMORY) |
						   BIT(LAYER_CGROUP_PIDS));
	assert_null(policy_free(policy));

	rootless.privileged = false;
	assert_int_equal(policy_parse(&doc, &rootless, &policy, &err), 0);
	assert_int_equal(policy->required, BIT(LAYER_USERNS) | BIT(LAYER_SECCOMP));
	assert_null(policy_free(policy));
}

static void test_left_out(void **state _unused_)
{
	static const char text[] = "name: small\nlimits: {ceilings: {memory: 64m, cpus: 0.5}}\n";
	struct document doc = { "small.yaml", text, strlen(text) };
	struct policy *policy = NULL;

	assert_int_equal(policy_parse(&doc, &good_host, &policy, NULL), 0);
	assert_int_equal(policy->ceilings.memory_bytes, 64 * MiB);
	assert_int_equal(policy->defaults.memory_bytes, 64 * MiB);
	assert_int_equal(policy->defaults.cpus_milli, 500);
	assert_int_equal(policy->ceilings.timeout_ms, 300000);
	assert_null(policy->usr[0]);
	assert_null(policy->etc[0]);
	assert_int_equal(policy->network, NETWORK_NONE);
	assert_int_equal(policy->required, 0);
	assert_null(policy_free(policy));
}

static void test_refusals(void **state _unused_)
{
	static const struct {
		const char *yaml, *text;
	} rows[] = {
		{ "limits: {}\n", "p.yaml: name: it is missing" },
		{ "name: x\nlimit: {}\n",
		  "p.yaml: limit: there is no such key; did you mean 'limits'?" },
		{ "name: x\nextends: default\n", "p.yaml: extends: there is no such key" },
		{ "name: x\nlimits: {default: {}}\n",
		  "p.yaml: limits.default: there is no such key; did you mean 'defaults'?" },
		{ "name: x\nlimits: {defaults: {ram: 1}}\n",
		  "p.yaml: limits.defaults.ram: there is no such limit" },
		{ "name: x\nlimits: {ceilings: {memory: 9999t}}\n",
		  "p.yaml: limits.ceilings.memory: '9999t' is above the maximum of 1 TiB (allowed: "
		  "4 "
		  "MiB to 1 TiB)" },
		{ "name: x\nlimits: {defaults: {memory: 2g}, ceilings: {memory: 1g}}\n",
		  "p.yaml: limits.defaults.memory: 2 GiB is above this policy's ceiling of 1 GiB "
		  "(allowed: 0 bytes to 1 GiB)" },
		{ "name: x\nfilesystem: {read_only: 1}\n",
		  "p.yaml: filesystem.read_only: 1 is neither true nor false" },
		{ "name: x\nfilesystem: {usr: [usr]}\n",
		  "p.yaml: filesystem.usr[0]: 'usr' is not an absolute directory name" },
		{ "name: x\nfilesystem: {usr: [/usr/../root]}\n",
		  "p.yaml: filesystem.usr[0]: '/usr/../root' is not an absolute directory name" },
		{ "name: x\nfilesystem: {usr: [/]}\n",
		  "p.yaml: filesystem.usr[0]: '/' is not an absolute directory name" },
		{ "name: x\npreload: all\n",
		  "p.yaml: preload: 'all' is not tiers, any or a list of modules" },
		{ "name: x\npreload: [a/b]\n",
		  "p.yaml: preload[0]: 'a/b' is not the name of a module (letters, digits, _ and . "
		  "inside)" },
		{ "name: x\nfilesystem: {etc: [/shadow]}\n",
		  "p.yaml: filesystem.etc[0]: '/shadow' is not a name below /etc" },
		{ "name: x\nnetwork: {mode: host}\n",
		  "p.yaml: network.mode: 'host' is not off, none or allow" },
		{ "name: x\nnetwork: {mode: allow}\n", "p.yaml: network.allow: it is missing; list "
						       "the destinations that programs may reach" },
		{ "name: x\nnetwork: {allow: [a.org, '127.1']}\n",
		  "p.yaml: network.allow[1]: '127.1' is no HOST, HOST:PORT, *.DOMAIN or *" },
		{ "name: x\nnetwork: {ports: [80, 0]}\n",
		  "p.yaml: network.ports[1]: 0 is no port" },
		{ "name: x\nnetwork: {ports: []}\n",
		  "p.yaml: network.ports: give a list of 1 to 32 ports" },
		{ "name: x\nnetwork: {bytes: lots}\n",
		  "p.yaml: network.bytes: 'lots' is no size, such as 512m or 10g" },
		{ "name: x\nnetwork: {loopback: true}\n",
		  "p.yaml: network.loopback: there is no such key; known: mode, allow, ports, "
		  "bytes" },
		{ "name: x\nrequire: [magic]\n", "p.yaml: require[0]: there is no layer 'magic'" },
		{ "name: x\nrequire: userns\n",
		  "p.yaml: require: 'userns' is not a list of layers" },
		{ "name: x\nname: y\n", "p.yaml:2:1: the key 'name' is there twice" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct document doc = { "p.yaml", rows[i].yaml, strlen(rows[i].yaml) };
		struct policy *policy = NULL;
		struct error err = { 0 };

		assert_int_equal(policy_parse(&doc, &good_host, &policy, &err), -EINVAL);
		assert_null(policy);
		assert_string_equal(err.text, rows[i].text);
	}
}

static void test_layers(void **state _unused_)
{
	struct host_facts bare = { .cgroup_controllers = CGROUP_MEMORY,
				   .broker_open = true,
				   .front = FRONT_OPEN };

	assert_int_equal(layers_missing(&good_host), 0);
	/* Without a hierarchy controllers count for nothing. */
	assert_int_equal(layers_missing(&bare), BIT(_LAYER_MAX) - 1);
	bare.privileged = true;
	assert_true(layers_missing(&bare) & BIT(LAYER_UNIQUE_UID));
	bare.uid_count = 1;
	assert_false(layers_missing(&bare) & BIT(LAYER_UNIQUE_UID));
	bare.cgroup = CGROUP_V1;
	assert_int_equal(layers_missing(&bare) &
				 (BIT(LAYER_CGROUP_MEMORY) | BIT(LAYER_CGROUP_PIDS)),
			 BIT(LAYER_CGROUP_PIDS));
	assert_string_equal(layer_name(LAYER_CGROUP_MEMORY), "cgroup-memory");
	assert_string_equal(layer_name(_LAYER_MAX), "unknown");
}

static void test_fixes(void **state _unused_)
{
	struct host_facts root_v1 = { .privileged = true, .cgroup = CGROUP_V1 };
	struct host_facts root_v2 = { .privileged = true, .cgroup = CGROUP_V2 };
	struct host_facts user_v2 = { .uid = 1000, .cgroup = CGROUP_V2 };
	struct host_facts probed = { .cgroup_reason = "because; run: fix-cgroup",
				     .userns_reason = "because; run: fix-userns" };
	const struct {
		enum layer layer;
		const struct host_facts *facts;
		const char *text;
	} rows[] = {
		{ LAYER_CGROUP_PIDS, &root_v1,
		  "no cgroup limits processes: mkdir -p /sys/fs/cgroup/pids && mount -t cgroup -o "
		  "pids cgroup /sys/fs/cgroup/pids" },
		{ LAYER_CGROUP_MEMORY, &root_v2,
		  "no cgroup limits memory: echo +memory > /sys/fs/cgroup/cgroup.subtree_control" },
		{ LAYER_CGROUP_CPU, &user_v2,
		  "no cgroup limits processor time: run atoll as root, or in a delegated scope: "
		  "systemd-run --user --scope -p Delegate=yes atoll run …" },
		{ LAYER_CGROUP_MEMORY, &probed,
		  "no cgroup limits memory: because; run: fix-cgroup" },
		{ LAYER_USERNS, &probed,
		  "user namespaces cannot be created: because; run: fix-userns" },
		{ LAYER_USERNS, &root_v1,
		  "user namespaces cannot be created: echo user.max_user_namespaces=15000 | tee -a "
		  "/etc/sysctl.d/60-atoll.conf && sysctl --system" },
		{ LAYER_UNIQUE_UID, &user_v2,
		  "sandboxes share one host user id: run atoll as root: sudo atoll run …" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[300];

		layer_fix(rows[i].layer, rows[i].facts, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	for (unsigned i = 0; i < _LAYER_MAX; i++) {
		char text[300] = "";

		layer_fix((enum layer)i, &root_v1, text, sizeof(text));
		assert_non_null(strstr(text, ": "));
		assert_null(strstr(text, "(null)"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),	 cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_layers),
		cmocka_unit_test(test_fixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
