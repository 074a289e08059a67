/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See policy.h. Tables read a policy file as they read a request. A key that is missing keeps the value of the
 * knob table. A file whose defaults exceed its own ceilings is refused.
 */
#include "plan/policy/policy.h"

#include <string.h>

#include "base/parse.h"
#include "spec/knob.h"
#include "spec/read.h"

enum { NAME_BYTES_MAX = 64, PATH_BYTES_MAX = 512, PATHS_COUNT_MAX = 64, MODULES_COUNT_MAX = 256 };

/* The policy, and what is needed only while it is read. */
struct draft {
	struct policy policy;
	uint32_t required_privileged;
	uint32_t defaults_set, ceilings_set;
};

/* An absolute path in normal form: '/' and a valid relative name. */
static int policy_read_usr(const struct reader *r, const struct schema_field *f,
			   const json_t *value, void *object)
{
	int e = read_words(r, f, value, object);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		const char *path = json_string_value(json_array_get(value, i));
		struct reader at = reader_index(r, i);

		if (path[0] != '/' || request_check_path(path + 1, strlen(path + 1), NULL) < 0)
			e = reader_refuse(&at, "'%s' is not an absolute directory name",
					  quote_text(path).text);
	}
	return e;
}

/* With ":rw" behind a directory, a request may ask that its program changes it. */
static int policy_read_mounts(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	struct policy *policy = &((struct draft *)object)->policy;
	int e = policy_read_usr(r, f, value, object);
	const char **writable;

	if (e < 0)
		return e;
	writable = arena_alloc(r->arena, (json_array_size(value) + 1) * sizeof(*writable));
	if (!writable)
		return reader_no_memory(r);
	policy->writable_mounts = writable;
	for (const char **path = policy->mounts; *path; path++) {
		const char *suffix = strrchr(*path, ':');

		if (!suffix || strcmp(suffix, ":rw") != 0)
			continue;
		*path = arena_strndup(r->arena, *path, (size_t)(suffix - *path));
		if (!*path)
			return reader_no_memory(r);
		*writable++ = *path;
	}
	return 0;
}

static int policy_read_access(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	struct draft *d = object;
	unsigned access = 0;
	int e = read_choice(r, f, value, &access);

	if (e == 0)
		d->policy.libraries_only = access == 1;
	return e;
}

static int policy_read_mode(const struct reader *r, const struct schema_field *f,
			    const json_t *value, void *object)
{
	static const enum network_mode modes[] = { NETWORK_OFF, NETWORK_NONE, NETWORK_ALLOW };
	struct draft *d = object;
	unsigned mode = 0;
	int e = read_choice(r, f, value, &mode);

	if (e == 0)
		d->policy.network = modes[mode];
	return e;
}

static int policy_read_allow(const struct reader *r, const struct schema_field *f,
			     const json_t *value, void *object)
{
	int e = read_words(r, f, value, object);

	for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
		struct reader at = reader_index(r, i);
		const json_t *word = json_array_get(value, i);
		struct destination destination;

		if (destination_parse(json_string_value(word), &destination) < 0)
			e = reader_refuse(&at, "%s is no HOST, HOST:PORT, *.DOMAIN or *",
					  quote_json(word).text);
	}
	return e;
}

static int policy_read_ports(const struct reader *r, const struct schema_field *f _unused_,
			     const json_t *value, void *object)
{
	struct policy *policy = &((struct draft *)object)->policy;
	size_t n = json_array_size(value);

	if (!json_is_array(value) || n == 0 || n > NETWORK_PORTS_MAX)
		return reader_refuse(r, "give a list of 1 to %d ports", NETWORK_PORTS_MAX);
	for (size_t i = 0; i < n; i++) {
		const json_int_t port = json_integer_value(json_array_get(value, i));
		struct reader at = reader_index(r, i);

		if (port < 1 || port > UINT16_MAX)
			return reader_refuse(&at, "%s is no port",
					     quote_json(json_array_get(value, i)).text);
		policy->network_ports[i] = (uint16_t)port;
	}
	policy->n_network_ports = n;
	return 0;
}

static int policy_read_bytes(const struct reader *r, const struct schema_field *f,
			     const json_t *value, void *object)
{
	struct policy *policy = &((struct draft *)object)->policy;
	const char *text;

	policy->network_bytes = json_integer_value(value);
	if (json_is_integer(value) && policy->network_bytes > 0)
		return 0;
	if (!json_is_string(value) || read_string(r, value, f->max, &text) < 0 ||
	    parse_size(text, &policy->network_bytes) < 0 || policy->network_bytes < 1)
		return reader_refuse(r, "%s is no size, such as 512m or 10g",
				     quote_json(value).text);
	return 0;
}

/* {"allow": [modules]} or {"deny": [modules]}. */
static int policy_read_imports(const struct reader *r, const struct schema_field *f,
			       const json_t *value, void *object)
{
	const json_t *allow = json_object_get(value, "allow"),
		     *deny = json_object_get(value, "deny");
	struct draft *d = object;
	struct {
		const char **names;
	} ignored = { 0 };
	const struct schema_field names = { .max = f->max, .max_count = f->max_count };
	struct reader at = reader_at(r, allow ? "allow" : "deny");

	if (!json_is_object(value) || json_object_size(value) != 1 || (!allow && !deny))
		return reader_refuse(r, "give a list of modules as allow, or as deny");
	d->policy.imports = value;
	return read_modules(&at, &names, allow ? allow : deny, &ignored);
}

/* "tiers", "any", or a list of names. */
static int policy_read_preload(const struct reader *r, const struct schema_field *f,
			       const json_t *value, void *object)
{
	static const char *const words[] = { [PRELOAD_TIERS] = "tiers", [PRELOAD_ANY] = "any" };
	struct draft *d = object;

	if (json_is_array(value)) {
		d->policy.preload = PRELOAD_NAMED;
		return read_modules(r, f, value, object);
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] && json_is_string(value) &&
		    strcmp(json_string_value(value), words[i]) == 0) {
			d->policy.preload = (enum preload_rule)i;
			return 0;
		}
	return reader_refuse(r, "%s is not tiers, any or a list of modules",
			     quote_json(value).text);
}

/* A list of names of layers, as bits. */
static int policy_read_layers(const struct reader *r, const struct schema_field *f,
			      const json_t *value, void *object)
{
	uint32_t *bits = field_member(f, object);

	if (!json_is_array(value))
		return reader_refuse(r, "%s is not a list of layers", quote_json(value).text);
	for (size_t i = 0; i < json_array_size(value); i++) {
		struct reader at = reader_index(r, i);
		const char *name;
		unsigned layer = 0;
		int e = read_string(&at, json_array_get(value, i), NAME_BYTES_MAX, &name);

		if (e < 0)
			return e;
		while (layer < _LAYER_MAX && strcmp(layer_name((enum layer)layer), name) != 0)
			layer++;
		if (layer == _LAYER_MAX)
			return reader_refuse(&at, "there is no layer '%s'", quote_text(name).text);
		*bits |= UINT32_C(1) << layer;
	}
	return 0;
}

#define MEMBER(name)	.offset = offsetof(struct draft, name)
#define PAIR(name, two) MEMBER(name), .beside = offsetof(struct draft, two)
#define PATHS(name)	MEMBER(policy.name), .max = PATH_BYTES_MAX, .max_count = PATHS_COUNT_MAX

#define MODULES .max = MODULE_BYTES_MAX, .max_count = MODULES_COUNT_MAX

static const struct schema_field limits_fields[] = {
	{ .key = "defaults", .read = read_limits, PAIR(policy.defaults, defaults_set) },
	{ .key = "ceilings", .read = read_limits, PAIR(policy.ceilings, ceilings_set) },
	{ 0 },
};

static const struct schema_field filesystem_fields[] = {
	{ .key = "read_only", .read = read_bool, MEMBER(policy.read_only) },
	{ .key = "writable_root", .read = read_bool, MEMBER(policy.writable_root) },
	{ .key = "access", .type = "full|libraries", .read = policy_read_access },
	{ .key = "usr", .read = policy_read_usr, PATHS(usr) },
	{ .key = "mounts", .read = policy_read_mounts, PATHS(mounts) },
	{ .key = "etc", .read = read_etc, PATHS(etc) },
	{ 0 },
};

static const struct schema_field network_fields[] = {
	{ .key = "mode", .type = "off|none|allow", .read = policy_read_mode },
	{ .key = "allow",
	  .read = policy_read_allow,
	  MEMBER(policy.network_allow),
	  .max = HOST_NAME_MAX_BYTES + 8,
	  .max_count = NETWORK_DESTINATIONS_MAX },
	{ .key = "ports", .read = policy_read_ports },
	{ .key = "bytes", .read = policy_read_bytes, .max = NAME_BYTES_MAX },
	{ 0 },
};

static int policy_read_network(const struct reader *r, const struct schema_field *f _unused_,
			       const json_t *value, void *object)
{
	const struct draft *d = object;
	struct reader allow = reader_at(r, "allow");
	int e = read_object(r, value, SHAPE_OF(network_fields), object);

	if (e == 0 && d->policy.network == NETWORK_ALLOW && !d->policy.network_allow)
		e = reader_refuse(&allow,
				  "it is missing; list the destinations that programs may reach");
	return e;
}

static const struct schema_field policy_fields[] = {
	{ .key = "name", .read = read_text, MEMBER(policy.name), .max = NAME_BYTES_MAX },
	{ .key = "limits", .read = read_part, .of = limits_fields },
	{ .key = "filesystem", .read = read_part, .of = filesystem_fields },
	{ .key = "network", .read = policy_read_network },
	{ .key = "isolation",
	  .type = "full|minimal",
	  .read = read_choice,
	  MEMBER(policy.isolation) },
	{ .key = "imports", .read = policy_read_imports, MODULES },
	{ .key = "preload", .read = policy_read_preload, MEMBER(policy.preload_names), MODULES },
	{ .key = "require", .read = policy_read_layers, MEMBER(policy.required) },
	{ .key = "require_privileged", .read = policy_read_layers, MEMBER(required_privileged) },
	{ 0 },
};

/*
 * Defaults in the file must not exceed its ceilings; a default that is not in the file is lowered to its
 * ceiling.
 */
static int policy_check_limits(const struct reader *r, struct draft *d)
{
	struct reader limits = reader_at(r, "limits"), defaults = reader_at(&limits, "defaults");

	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		struct reader at = reader_at(&defaults, k->key);
		int64_t preset = knob_get(k, &d->policy.defaults);
		int64_t ceiling = knob_get(k, &d->policy.ceilings);
		struct knob_range range = { 0, ceiling, "is above this policy's ceiling of" };
		struct knob_claim claim = { .field = at.field, .value = preset };
		char given[32];
		int e;

		/* Cores depend on the host: a policy may be written for a larger one. */
		if (!(d->defaults_set & knob_bit(k)) ||
		    (k->kind == KNOB_CPUS && !(d->ceilings_set & knob_bit(k)))) {
			knob_set(k, &d->policy.defaults, MIN(preset, ceiling));
			continue;
		}
		knob_format(k, preset, given, sizeof(given));
		claim.given = given;
		e = knob_check(k, &claim, &range, r->err);
		if (e < 0)
			return e;
	}
	return 0;
}

static int policy_read(const struct reader *r, struct draft *d, const struct host_facts *facts)
{
	struct policy *policy = &d->policy;
	const char **empty = arena_alloc(r->arena, sizeof(*empty));
	struct reader name = reader_at(r, "name");
	int e;

	if (!empty)
		return reader_no_memory(r);
	policy->network_ports[0] = 80;
	policy->network_ports[1] = 443;
	policy->n_network_ports = 2;
	policy->usr = empty;
	policy->etc = empty;
	policy->mounts = empty;
	policy->writable_mounts = empty;
	limits_presets(&policy->defaults);
	limits_ceilings(&policy->ceilings, facts->cores);
	e = read_object(r, policy->root, SHAPE_OF(policy_fields), d);
	if (e < 0)
		return e;
	if (!policy->name)
		return reader_refuse(&name, "it is missing");
	if (facts->privileged)
		policy->required |= d->required_privileged;
	if (policy->isolation == ISOLATION_MINIMAL)
		policy->network = NETWORK_OFF;
	return policy_check_limits(r, d);
}

int policy_build(json_t *root, const char *name, const struct host_facts *facts,
		 struct policy **ret, struct error *err)
{
	_cleanup_(policy_cleanup) struct policy *policy = calloc(1, sizeof(*policy));
	struct draft d = { .policy = { .root = json_incref(root) } };
	struct reader r = { .arena = &d.policy.memory, .err = err };
	int e = policy ? policy_read(&r, &d, facts) : -ENOMEM;

	if (!policy) {
		json_decref(root);
		return reader_no_memory(&r);
	}
	*policy = d.policy; /* which owns the tree and the lists from here on */
	if (e < 0)
		return error_wrap(err, e, "%s", name);
	*ret = TAKE_PTR(policy);
	return 0;
}

int policy_parse(const struct document *doc, const struct host_facts *facts, struct policy **ret,
		 struct error *err)
{
	json_t *root = NULL;
	int e = yaml_parse(doc, &root, err);

	if (e == 0)
		e = policy_build(root, doc->name, facts, ret, err);
	json_decref(root);
	return e;
}

struct policy *policy_free(struct policy *policy)
{
	if (!policy)
		return NULL;
	json_decref(policy->root);
	arena_done(&policy->memory);
	free(policy);
	return NULL;
}
