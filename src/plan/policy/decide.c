/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See policy.h. Each step answers one question, and fills its members of the decision or refuses: does the host
 * have the required layers, is the network allowed, is every asked limit below its ceiling, does the request
 * fit the language. If the host has less than the policy's default, the default shrinks. If the caller asked
 * for more than the ceiling, the request is refused.
 */
#include "plan/policy/policy.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "spec/knob.h"
#include "spec/read.h"

/* The ceiling of one limit on this host: the policy's, or the host's if that is less. */
static struct knob_range decision_range(const struct decision *d, const struct knob *k)
{
	struct knob_range range = { k->min, knob_get(k, &d->policy->ceilings),
				    "is above the ceiling of" };
	int64_t host = INT64_MAX;

	if (k->offset == offsetof(struct limits, cpus_milli))
		host = MAX(d->facts->cores, 1) * 1000LL;
	if (k->offset == offsetof(struct limits, memory_bytes) && d->facts->memory_bytes > 0)
		host = d->facts->memory_bytes;
	if (host <= range.max) {
		range.max = host;
		range.above = "is more than this host has:";
	}
	return range;
}

int64_t decision_ceiling(const struct decision *d, const struct knob *k)
{
	return decision_range(d, k).max;
}

/* --- the minimal tier: what a run without namespaces takes of its host, and what it cannot have --- */

static int decide_minimal(const struct decision *d, struct error *err)
{
	const struct host_facts *f = d->facts;
	const struct request *req = d->request;
	const struct {
		bool holds;
		const char *otherwise;
	} needs[] = {
		{ f->front == FRONT_CALLER,
		  "a daemon makes no sandboxes without namespaces, because its callers share it; "
		  "use atoll run --no-daemon" },
		{ f->placing,
		  "it gives each sandbox a user of its own, which takes root with CAP_SETUID, "
		  "CAP_SETGID, CAP_CHOWN, CAP_KILL, CAP_SETPCAP and CAP_DAC_OVERRIDE (Docker's "
		  "root "
		  "has them): run atoll as root" },
		{ f->landlock_abi > 0, "without namespaces only Landlock keeps programs from the "
				       "host's files, and it is "
				       "off here: boot with lsm=landlock,… on the kernel's command "
				       "line (in a container: "
				       "on its host)" },
	};
	const struct {
		bool asked;
		const char *field;
	} refused[] = {
		{ req->image, "image" },
		{ req->workspace, "workspace" },
		{ req->tty, "tty" },
		{ req->eval, "eval" },
		{ req->invoke_method, "invoke" },
		{ req->writable_root, "writable_root" },
		{ req->n_mounts > 0, "mounts" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (!needs[i].holds)
			return error_set(err, ERROR_POLICY, EPERM,
					 "policy '%s' asks for the minimal tier: %s",
					 d->policy->name, needs[i].otherwise);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (refused[i].asked)
			return error_refuse(err, refused[i].field,
					    "%s: there is none in the minimal tier (policy '%s'); "
					    "leave it out, or run where namespaces can be made",
					    refused[i].field, d->policy->name);
	return 0;
}

static int decide_layers(struct decision *d, uint32_t missing, struct error *err)
{
	uint32_t refused = missing & d->policy->required;
	char fix[300];

	for (unsigned i = 0; i < _LAYER_MAX; i++) {
		if (!(refused & (UINT32_C(1) << i)))
			continue;
		layer_fix((enum layer)i, d->facts, fix, sizeof(fix));
		return error_set(err, ERROR_POLICY, EPERM, "policy '%s' requires %s: %s",
				 d->policy->name, layer_name((enum layer)i), fix);
	}
	d->missing = missing;
	return 0;
}

/*
 * --- destinations: those of the request that the policy lists. One without a port stands for every port that the policy lists for it ---
 */

struct destination_sink {
	int (*fn)(void *data, const struct destination *destination);
	void *data;
};

/* An address that is not public must be listed as itself. */
static bool destination_permits(const struct destination *pattern, const struct destination *asked)
{
	struct sockaddr_storage address;

	if (address_parse(asked->host, &address) &&
	    !address_is_public((const struct sockaddr *)&address))
		return strcmp(pattern->host, asked->host) == 0;
	return destination_covers(pattern, asked->host);
}

/* The ports of `asked` that one pattern of the policy permits. Adds their number to *n. */
static int destination_give(const struct policy *policy, const struct destination *pattern,
			    const struct destination *asked, const struct destination_sink *to,
			    size_t *n)
{
	const uint16_t *ports = pattern->port ? &pattern->port : policy->network_ports;
	const size_t n_ports = pattern->port ? 1 : policy->n_network_ports;
	struct destination destination = *asked;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_ports; i++) {
		if (asked->port && asked->port != ports[i])
			continue;
		destination.port = ports[i];
		r = to->fn(to->data, &destination);
		(*n)++;
	}
	return r;
}

/* One entry of the request, against every entry of the policy. */
static int destinations_give_asked(const struct decision *d, const char *text,
				   const struct destination_sink *to, struct error *err)
{
	struct destination asked, pattern;
	size_t n = 0;
	int r = destination_parse(text, &asked);

	for (const char **at = d->policy->network_allow; r == 0 && at && *at; at++)
		if (destination_parse(*at, &pattern) == 0 && destination_permits(&pattern, &asked))
			r = destination_give(d->policy, &pattern, &asked, to, &n);
	if (r < 0 || n > 0)
		return r;
	return error_refuse(
		err, "network",
		"network: policy '%s' does not list '%s'; leave it out, or list it in the "
		"policy's network.allow",
		d->policy->name, quote_text(text).text);
}

static int destinations_give(const struct decision *d, const struct destination_sink *to,
			     struct error *err)
{
	const char **asked = d->request->network_destinations;
	struct destination pattern;
	size_t n = 0;
	int r = 0;

	if (d->request->network != NETWORK_ALLOW)
		return 0;
	/* Without a list, every entry of the policy. */
	for (const char **at = d->policy->network_allow; !asked && r == 0 && at && *at; at++)
		if (destination_parse(*at, &pattern) == 0)
			r = destination_give(d->policy, &pattern, &pattern, to, &n);
	for (; asked && r == 0 && *asked; asked++)
		r = destinations_give_asked(d, *asked, to, err);
	return r;
}

int decision_each_destination(const struct decision *d,
			      int (*fn)(void *data, const struct destination *destination),
			      void *data)
{
	return destinations_give(d, &(struct destination_sink){ fn, data }, NULL);
}

/* The bounds of one run. */
struct destination_tally {
	size_t n;
	uint16_t ports[NETWORK_PORTS_MAX];
	size_t n_ports;
};

static int destinations_count(void *data, const struct destination *destination)
{
	struct destination_tally *t = data;
	size_t i = 0;

	while (i < t->n_ports && t->ports[i] != destination->port)
		i++;
	if (++t->n > NETWORK_RULES_MAX || i == NETWORK_PORTS_MAX)
		return -E2BIG;
	if (i == t->n_ports)
		t->ports[t->n_ports++] = destination->port;
	return 0;
}

/* Refuses a destination that the policy does not list, and more destinations or ports than one run may have. */
static int destinations_check(const struct decision *d, struct error *err)
{
	struct destination_tally tally = { .n = 0 };
	int r = destinations_give(d, &(struct destination_sink){ destinations_count, &tally }, err);

	if (r == -E2BIG)
		r = error_field(err, "network",
				"network: one run may reach %d destinations at %d different ports; "
				"name fewer",
				NETWORK_RULES_MAX, NETWORK_PORTS_MAX);
	return r;
}

/* --- the network --- */

static int network_refuse(const struct decision *d, const char *reason, struct error *err)
{
	const char *text = d->request->network_text ? d->request->network_text : "none";

	return error_refuse(err, "network", "network: '%s' %s", quote_text(text).text, reason);
}

static int decide_network(struct decision *d, struct error *err)
{
	int r = 0;

	switch (d->request->network) {
	case NETWORK_NONE:
		if (d->request->network_text && d->policy->network == NETWORK_OFF)
			return network_refuse(d, "is not allowed by this policy; use off", err);
		break;
	case NETWORK_OFF:
		break;
	case NETWORK_ALLOW:
		if (d->policy->network != NETWORK_ALLOW)
			return network_refuse(
				d,
				"is not allowed by this policy; name one that allows it, "
				"such as network-allowlist or trusted",
				err);
		if (d->policy->network_barred)
			return network_refuse(
				d,
				"is not allowed by this server: its administrator can set "
				"network.allow",
				err);
		r = destinations_check(d, err);
		break;
	case NETWORK_HOST:
		return network_refuse(d,
				      "is not allowed: a sandbox never shares the host's network; "
				      "use none or off",
				      err);
	}
	d->network = d->policy->network == NETWORK_OFF ? NETWORK_OFF : d->request->network;
	return r;
}

/* The limits of the request, or of one of its stages or tests: `owner` has the object, to quote the caller's value. */
static int limits_check(const struct decision *d, const char *where, const json_t *owner,
			const struct limits *limits, uint32_t set, struct error *err)
{
	const json_t *object = json_object_get(owner, "limits");

	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		const json_t *words = json_object_get(object, k->key);
		struct reader top = { .err = err }, at = reader_at(&top, where);
		struct knob_range range = decision_range(d, k);
		struct knob_claim claim = { .value = knob_get(k, limits) };
		struct quoted given;
		int r;

		if (!(set & knob_bit(k)))
			continue;
		at = reader_at(&at, k->key);
		knob_format(k, claim.value, given.text, sizeof(given.text));
		if (words && claim.value != 0)
			given = quote_json(words);
		claim.given = given.text;
		claim.field = at.field;
		if (claim.value == 0 && k->none_ok) {
			/* "none" asks for more than any ceiling. */
			if (knob_get(k, &d->policy->defaults) == 0)
				continue;
			claim.value = INT64_MAX;
		}
		r = knob_check(k, &claim, &range, err);
		if (r < 0)
			return r;
	}
	return 0;
}

void decide_restate(const struct decision *d, const json_t *root, struct error *err)
{
	const char *key = strrchr(err->field, '.');
	const struct knob *k = key ? knob_find(key + 1) : NULL;
	const json_t *object = root, *value;
	struct knob_range range;
	char field[sizeof(err->field)];
	size_t index;

	if (!k)
		return;
	memcpy(field, err->field, sizeof(field));
	if (sscanf(field, "stages[%zu].limits.", &index) == 1)
		object = json_array_get(json_object_get(root, "stages"), index);
	else if (sscanf(field, "tests[%zu].limits.", &index) == 1)
		object = json_array_get(json_object_get(root, "tests"), index);
	else if (strncmp(field, "limits.", strlen("limits.")) != 0)
		return;
	/* A key with a point in it ("limits.timeout") only looks like a limit's place. */
	value = json_object_get(json_object_get(object, "limits"), k->key);
	if (!value)
		return;
	range = decision_range(d, k);
	(void)!knob_refuse(field, k, value, &range, err);
}

static int decide_limits(struct decision *d, struct error *err)
{
	const struct request *req = d->request;
	const json_t *stages = json_object_get(req->root, "stages");
	const json_t *tests = json_object_get(req->root, "tests");
	int r = limits_check(d, "limits", req->root, &req->limits, req->limits_set, err);
	char where[48];

	for (size_t i = 0; r == 0 && i < req->n_stages; i++) {
		(void)snprintf(where, sizeof(where), "stages[%zu].limits", i);
		r = limits_check(d, where, json_array_get(stages, i), &req->stages[i].limits,
				 req->stages[i].limits_set, err);
	}
	for (size_t i = 0; r == 0 && i < req->n_tests; i++) {
		(void)snprintf(where, sizeof(where), "tests[%zu].limits", i);
		r = limits_check(d, where, json_array_get(tests, i), &req->tests[i].limits,
				 req->tests[i].limits_set, err);
	}
	if (r < 0)
		return r;
	d->limits = d->policy->defaults;
	if (d->presets)
		decision_stage_limits(d, d->presets, d->presets_set, &d->limits);
	decision_stage_limits(d, &req->limits, req->limits_set, &d->limits);
	return 0;
}

void decision_stage_limits(const struct decision *d, const struct limits *over, uint32_t set,
			   struct limits *ret)
{
	struct limits l = d->limits;

	limits_overlay(&l, over, set);
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];

		knob_set(k, &l, MIN(knob_get(k, &l), decision_range(d, k).max));
	}
	*ret = l;
}

/* The program's own file must be neither one of the request's files nor a directory of one. */
static bool source_is_taken(const struct request_file *files, size_t n, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < n; i++)
		if (strncmp(files[i].path, name, len) == 0 &&
		    (!files[i].path[len] || files[i].path[len] == '/'))
			return true;
	return false;
}

static int source_check_name(const struct request *req, const char *name, const char *what,
			     struct error *err)
{
	if (source_is_taken(req->files, req->n_files, name))
		return error_field(err, "files", "files: '%s' is where the code %s",
				   quote_text(name).text, what);
	for (size_t i = 0; i < req->n_tests; i++) {
		char field[48];

		if (!source_is_taken(req->tests[i].files, req->tests[i].n_files, name))
			continue;
		(void)snprintf(field, sizeof(field), "tests[%zu].files", i);
		return error_field(err, field, "%s: '%s' is where the code %s", field,
				   quote_text(name).text, what);
	}
	return 0;
}

/* Code that is passed as an argument can be at most as long as one argument. */
static int stage_check_command(const struct decision *d, size_t stage, struct error *err)
{
	size_t len = strlen(d->request->stages[stage].code);
	char field[48];

	if (len <= REQUEST_WORD_MAX)
		return 0;
	(void)snprintf(field, sizeof(field), "stages[%zu].code", stage);
	return error_field(err, field,
			   "%s: it has %zu bytes, more than the %d of a shell command; put it into "
			   "files and run that",
			   field, len, REQUEST_WORD_MAX);
}

static int decide_stages(const struct decision *d, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->request->n_stages; i++) {
		const char *code = d->request->stages[i].code;
		char name[256];

		if (!code)
			continue;
		if (!d->language || d->language->command[0]) {
			r = stage_check_command(d, i, err);
			continue;
		}
		language_stage_source(d->language, i, code, name, sizeof(name));
		r = source_check_name(d->request, name,
				      "of a stage is stored; give the file another name", err);
	}
	return r;
}

static int decide_source(const struct decision *d, struct error *err)
{
	const struct request *req = d->request;
	const struct program_text program = { req->code, req->entry };
	char name[REQUEST_PATH_MAX + 1];

	if (!d->language || !req->code.data)
		return 0;
	language_source_name(d->language, &program, name, sizeof(name));
	return source_check_name(
		req, name,
		"itself is stored; give the file another name, or name it as entry "
		"instead of code",
		err);
}

static bool preload_list_has(const char *const *list, const char *word)
{
	while (*list && strcmp(*list, word) != 0)
		list++;
	return *list;
}

/* "numpy, pandas", each once; names that do not fit are left out, and so is light: a program has its modules in any case. */
static void preload_name_permitted(const char *const *const *lists, const char *const *light,
				   struct buf *ret)
{
	for (const char *const *const *list = lists; *list && *list != light; list++)
		for (const char *const *m = *list; *m; m++) {
			const char *const *const *first = lists;

			while (!preload_list_has(*first, *m))
				first++;
			if (first == list && buf_printf(ret, "%s%s", ret->len ? ", " : "", *m) < 0)
				return;
		}
}

static int preload_refuse(const struct decision *d, const char *module,
			  const char *const *const *lists, struct error *err)
{
	_cleanup_buf_ struct buf permitted = { .max = 200 };

	preload_name_permitted(lists, (const char *const *)d->language->warm.light, &permitted);
	return error_refuse(
		err, "preload",
		"preload: '%s' is not permitted by policy '%s' (permitted: %s); leave it out, "
		"or name it in the policy's preload",
		module, d->policy->name, permitted.data ? permitted.data : "none");
}

static int decide_preload(const struct decision *d, struct error *err)
{
	const char **modules = d->request->preload;
	/* The lists of modules that this policy permits for this language, NULL-terminated. */
	const char *const *own[2] = { (const char *const *)d->policy->preload_names, NULL };
	const char *const *const *lists = own;

	if (!modules || !modules[0])
		return 0;
	if (!d->language || d->language->warm.kind != WARMTH_FORK)
		return error_field(err, "preload",
				   "preload: modules cannot be loaded ahead for %s; leave it out",
				   d->language ? d->language->title
					       : "a request without a language");
	if (d->policy->preload == PRELOAD_ANY)
		return 0;
	if (d->policy->preload == PRELOAD_TIERS)
		lists = (const char *const *const *)d->language->warm.tiers;
	for (; *modules; modules++) {
		const char *const *const *list = lists;

		while (*list && !preload_list_has(*list, *modules))
			list++;
		if (!*list)
			return preload_refuse(d, *modules, lists, err);
	}
	return 0;
}

static int decide_compiler_args(const struct decision *d, struct error *err)
{
	const char **args = d->request->compiler_args;

	if (!args || !args[0] || (d->language && d->language->compile.argv[0]))
		return 0;
	return error_field(err, "compiler_args",
			   "compiler_args: %s has no compile stage; leave them out",
			   d->language ? d->language->title : "a request without a language");
}

static int decide_language(const struct decision *d, struct error *err)
{
	const struct request *req = d->request;
	int r;

	if (!d->language && req->n_stages == 0)
		return error_field(err, "language",
				   "language: it is missing; name the language of the code");
	if (req->invoke_method && d->language && !d->language->runner)
		return error_field(err, "invoke", "invoke: methods of %s code cannot be called",
				   d->language->title);
	if (req->eval && d->language && !*d->language->session)
		return error_field(err, "eval",
				   "eval: %s code cannot be evaluated; take Python or JavaScript",
				   d->language->title);
	if (d->policy->libraries_only && d->language && d->language->compile.argv[0])
		return error_refuse(
			err, "language",
			"language: the policy %.64s runs no compilers; take an interpreted "
			"language, or another policy",
			d->policy->name);
	if (d->policy->imports && d->language && !req->eval &&
	    strcmp(d->language->name, "python") == 0)
		return error_refuse(
			err, "eval",
			"eval: the policy %.64s has rules for imports, which hold in sessions "
			"and for evaluated code; set eval to true",
			d->policy->name);
	r = decide_preload(d, err);
	if (r == 0)
		r = decide_compiler_args(d, err);
	if (r == 0)
		r = decide_source(d, err);
	return r < 0 ? r : decide_stages(d, err);
}

/* Asks for more than a policy gives by itself, so the policy must permit it. */
static int decide_root(const struct decision *d, struct error *err)
{
	const struct request *req = d->request;

	if (!req->writable_root)
		return 0;
	if (req->read_only)
		return error_field(
			err, "writable_root",
			"writable_root: read_only asks for the opposite; leave out one of them");
	if (d->policy->read_only || d->policy->libraries_only || !d->policy->writable_root)
		return error_refuse(
			err, "writable_root",
			"writable_root: this policy does not permit it (filesystem.writable_root)");
	if (!d->facts->privileged)
		return error_refuse(err, "writable_root",
				    "writable_root: only a broker that runs as root can give one; "
				    "run Atoll as root, or leave it out");
	return 0;
}

static bool decide_is_listed(const struct decision *d, const char *source, const char **tops)
{
	for (; !d->policy->libraries_only && *tops; tops++)
		if (path_is_below(source, *tops))
			return true;
	return false;
}

/* What a program sees of the host, and what it may change there, is the policy's choice. */
static int decide_mounts(struct decision *d, struct error *err)
{
	for (size_t i = 0; i < d->request->n_mounts; i++) {
		const struct request_mount *m = &d->request->mounts[i];
		bool shown = decide_is_listed(d, m->source, d->policy->mounts);

		if (m->writable && !decide_is_listed(d, m->source, d->policy->writable_mounts))
			return error_refuse(
				err, "mounts",
				"mounts: policy '%.64s' lets no program write to '%.160s'; take a "
				"policy whose filesystem.mounts lists '%.160s:rw'%s",
				d->policy->name, m->source, m->source,
				shown ? ", or only read it (:ro)" : ", or use a workspace");
		if (!shown)
			return error_refuse(
				err, "mounts",
				"mounts: policy '%.64s' shows no '%.160s' to programs; bring files "
				"with the request, or take a policy whose filesystem.mounts lists "
				"it",
				d->policy->name, m->source);
		if (m->writable && d->workspace)
			return error_field(err, "mounts",
					   "mounts: a program writes to one directory of the host: "
					   "give one as rw, and no workspace beside it");
		if (m->writable) {
			d->workspace = m->source;
			d->workspace_target = m->target;
		}
	}
	return 0;
}

int decide(struct decision *d, struct error *err)
{
	struct decision out = *d;
	bool is_minimal = d->policy->isolation == ISOLATION_MINIMAL;
	int r = is_minimal ? decide_minimal(&out, err) : 0;

	assert(d->request && d->policy && d->facts && !(d->presets_set && !d->presets));
	if (r == 0)
		r = decide_layers(&out,
				  is_minimal ? layers_missing_minimal(d->facts)
					     : layers_missing(d->facts),
				  err);
	if (r == 0)
		r = decide_network(&out, err);
	if (r == 0)
		r = decide_root(&out, err);
	out.workspace = out.request->workspace;
	out.workspace_target = NULL;
	if (r == 0)
		r = decide_mounts(&out, err);
	if (r == 0)
		r = decide_limits(&out, err);
	if (r == 0)
		r = decide_language(&out, err);
	if (r < 0)
		return r;
	out.read_only = out.policy->read_only || out.request->read_only;
	out.writable_root = out.request->writable_root;
	out.libraries_only = out.policy->libraries_only;
	out.tty = out.request->tty;
	out.workdir = out.request->workspace_cwd;
	out.commit = out.request->commit;
	*d = out;
	return 0;
}
