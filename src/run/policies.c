/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the policy of a run. A policy is a name below policies/, or a file if it looks like a path and paths
 * are allowed. An executor has a directory of its own that comes first, and limits of the administrator: they
 * replace those of `default` and cap the ceilings of every other policy.
 */
#include "run/executor.h"
#include "run/run.h"

#include "base/fd.h"
#include "base/suggest.h"
#include "run/toolchain/data.h"
#include "spec/knob.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { POLICIES_MAX = 256, POLICY_NAME_MAX = 64 };

#define SUFFIX ".yaml"

static bool is_path(const char *policy)
{
	return strchr(policy, '/') || strstr(policy, SUFFIX);
}

static int is_policy_file(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), suffix = sizeof(SUFFIX) - 1;

	return n > suffix && n <= POLICY_NAME_MAX + suffix && entry->d_name[0] != '.' &&
	       strcmp(entry->d_name + n - suffix, SUFFIX) == 0;
}

/* Adds new names only, so the first directory wins. */
static int add_names(json_t *names, const char *dir)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_policy_file, alphasort);

	for (int i = 0; i < n; i++) {
		char name[POLICY_NAME_MAX + 1];

		(void)snprintf(name, sizeof(name), "%.*s",
			       (int)(strlen(entries[i]->d_name) - (sizeof(SUFFIX) - 1)),
			       entries[i]->d_name);
		if (!json_object_get(names, name) && json_object_size(names) < POLICIES_MAX)
			(void)json_object_set_new(names, name, json_null());
		free(entries[i]);
	}
	free(entries);
	return n < 0 ? -errno : 0;
}

/* {NAME: null} of all policies; NULL: no memory. *r: whether those that are shipped could be listed. */
static json_t *policy_names(const struct atoll *a, int *r)
{
	json_t *names = json_object();
	char shipped[PATH_MAX];

	(void)snprintf(shipped, sizeof(shipped), "%s/policies", a->data_dir);
	if (names && a->rules.dir)
		(void)add_names(names, a->rules.dir);
	*r = names ? add_names(names, shipped) : -ENOMEM;
	return names;
}

static int no_such(const struct atoll *a, const char *name, struct error *err)
{
	struct suggestion s = { 0 };
	const char *other;
	json_t *unused;
	int r;
	json_t *names = policy_names(a, &r);

	json_object_foreach(names, other, unused) suggest_offer(&s, name, other);
	if (s.best)
		r = error_field(err, "policy",
				"policy: there is none named '%.64s'; did you mean '%s'?", name,
				s.best);
	else if (a->rules.named)
		r = error_field(err, "policy",
				"policy: there is none named '%.64s'; GET /v1/policies lists them",
				name);
	else
		r = error_field(err, "policy",
				"policy: there is none named '%.64s'; give the name of a file of "
				"%.200s/policies, or a path",
				name, a->data_dir);
	json_decref(names);
	return r;
}

/* A name may be in the executor's own directory. */
static int name_file(const struct atoll *a, const char *name, char *ret, size_t size)
{
	struct tool_id file;

	if (is_path(name))
		return snprintf(ret, size, "%s", name) >= (int)size ? -ENAMETOOLONG : 0;
	if (a->rules.dir) {
		if (snprintf(ret, size, "%s/%s" SUFFIX, a->rules.dir, name) >= (int)size)
			return -ENAMETOOLONG;
		if (tool_identify(NULL, ret, &file) == 0)
			return 0;
	}
	return snprintf(ret, size, "%s/policies/%s" SUFFIX, a->data_dir, name) >= (int)size
		       ? -ENAMETOOLONG
		       : 0;
}

static int read_policy(const struct atoll *a, const char *name, const char *path, struct buf *text,
		       struct error *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? -errno : buf_read_fd(text, fd);

	if (r == -ENOENT && !is_path(name))
		return no_such(a, name, err);
	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "cannot read the policy '%.300s': %s", name,
				 strerror(-r));
	return 0;
}

/* The administrator's limits override those of the file. */
static void apply_rules(const struct policy_rules *rules, struct policy *policy)
{
	bool is_default = strcmp(policy->name, "default") == 0;

	policy->network_barred = rules->no_network;
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];
		int64_t ceiling = knob_get(k, &policy->ceilings);
		int64_t preset = knob_get(k, &policy->defaults);

		if (rules->ceilings_set & knob_bit(k)) {
			int64_t set = knob_get(k, &rules->ceilings);

			ceiling = is_default ? set : MIN(ceiling, set);
		}
		if (is_default && rules->defaults_set & knob_bit(k))
			preset = knob_get(k, &rules->defaults);
		knob_set(k, &policy->ceilings, ceiling);
		knob_set(k, &policy->defaults, MIN(preset, ceiling));
	}
}

static int parse_policy(struct atoll *a, const char *name, const char *path, struct policy **ret,
			struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	json_t *root = NULL;
	int r;

	buf_init(&text, YAML_BYTES_MAX);
	r = read_policy(a, name, path, &text, err);
	if (r < 0)
		return r;
	r = yaml_parse(&(struct document){ name, text.data ? text.data : "", text.len }, &root,
		       err);
	/* As late as possible: the broker may still be probing. */
	if (r >= 0)
		r = policy_build(root, name, atoll_facts(a), ret, err);
	json_decref(root);
	if (r >= 0)
		apply_rules(&a->rules, *ret);
	return r;
}

int flow_load_policy(struct local_run *run, const char *name, struct error *err)
{
	struct atoll *a = run->atoll;
	struct policy *policy = NULL;
	struct tool_id file = { 0 };
	char path[PATH_MAX];
	bool known;
	int r;

	if (!name)
		name = "default";
	if (a->rules.named && (is_path(name) || strlen(name) > POLICY_NAME_MAX))
		return no_such(a, name, err);
	r = name_file(a, name, path, sizeof(path));
	if (r < 0)
		return error_field(err, "policy", "policy: the name is too long");
	/* Before it is read: if it changes meanwhile, the next run reads it again. A pipe has no size. */
	known = tool_identify(NULL, path, &file) == 0 && file.size > 0;
	if (known)
		run->held = memo_policy(&a->memo, name, &file);
	if (!run->held) {
		r = parse_policy(a, name, path, &policy, err);
		if (r < 0)
			return r;
		run->held = memo_keep_policy(&a->memo, name, &file, policy);
	}
	if (!run->held) {
		(void)policy_free(policy);
		return error_oom(err);
	}
	run->policy = run->held->policy;
	return 0;
}

/* The content of the file, and the limits in force. */
static json_t *describe(struct atoll *a, const char *name)
{
	struct policy *policy = NULL;
	struct error err = { 0 };
	char path[PATH_MAX];
	json_t *tree;

	if (name_file(a, name, path, sizeof(path)) < 0 ||
	    parse_policy(a, name, path, &policy, &err) < 0)
		return json_pack("{s:s, s:s}", "name", name, "error", err.text);
	tree = json_pack("{s:s, s:O, s:{s:o, s:o}}", "name", name, "policy", policy->root, "limits",
			 "defaults", limits_to_json(&policy->defaults), "ceilings",
			 limits_to_json(&policy->ceilings));
	(void)policy_free(policy);
	return tree;
}

int policies_to_json(struct atoll *a, json_t **ret, struct error *err)
{
	json_t *list = json_array(), *unused;
	const char *name;
	int r;
	json_t *names = policy_names(a, &r);

	if (!list)
		r = -ENOMEM;
	json_object_foreach(names, name, unused)(void)
		json_array_append_new(list, describe(a, name));
	json_decref(names);
	if (r < 0) {
		json_decref(list);
		return error_set(err, ERROR_INTERNAL, -r, "the policies cannot be listed: %s",
				 strerror(-r));
	}
	*ret = list;
	return 0;
}

int policy_rules_take(struct policy_rules *rules, const struct executor_options *o)
{
	rules->named = true;
	rules->no_network = !o->network;
	if (o->defaults) {
		rules->defaults = *o->defaults;
		rules->defaults_set = o->defaults_set;
	}
	if (o->ceilings) {
		rules->ceilings = *o->ceilings;
		rules->ceilings_set = o->ceilings_set;
	}
	if (!o->policies_dir)
		return 0;
	rules->dir = strdup(o->policies_dir);
	return rules->dir ? 0 : -ENOMEM;
}

int executor_check_policies(const struct executor_options *o, json_t **ret, struct error *err)
{
	const struct atoll_options options = { .size = sizeof(options),
					       .data_dir = o->data_dir,
					       .pool = "" };
	_cleanup_free_ char *problem = NULL;
	struct atoll *a;
	int r = atoll_new(&options, &a, &problem);

	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "%s", problem ? problem : strerror(-r));
	r = policy_rules_take(&a->rules, o) < 0 ? error_oom(err) : policies_to_json(a, ret, err);
	(void)atoll_free(a);
	return r;
}
