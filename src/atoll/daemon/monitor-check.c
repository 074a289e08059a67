/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_check(): `atoll serve --check`. */
#include "atoll/daemon/monitor.h"

#include "run/executor.h"
#include "run/toolchain/data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_real_path(char **path, struct error *err)
{
	char *real = realpath(*path, NULL);

	if (!real)
		return error_set(err, ERROR_STORAGE, errno, "cannot find '%.200s': %s", *path,
				 strerror(errno));
	free(*path);
	*path = real;
	return 0;
}

static int put_served(struct buf *out, const char *title, const char *const *words)
{
	int r = buf_printf(out, "%-10s", title);

	for (; r == 0 && *words; words++)
		r = buf_printf(out, " %s", *words);
	return r < 0 ? r : buf_puts(out, "\n");
}

static int put_served_word(struct buf *out, const char *title, const char *word)
{
	const char *const words[] = { word, NULL };

	return *word ? put_served(out, title, words) : 0;
}

/* Names of policies; the first file that is no policy is an error. */
static int put_policies(struct buf *out, const json_t *policies, struct error *err)
{
	const json_t *policy;
	size_t i;
	int r = buf_printf(out, "%-10s", "policies");

	json_array_foreach(policies, i, policy)
	{
		const char *name = json_string_value(json_object_get(policy, "name"));
		const char *broken = json_string_value(json_object_get(policy, "error"));

		if (broken)
			/* The error begins with its name. */
			return error_set(err, ERROR_INPUT, EINVAL, "policy %s", broken);
		if (r == 0)
			r = buf_printf(out, " %s", name);
	}
	if (r == 0)
		r = buf_puts(out, "\n");
	return r < 0 ? error_oom(err) : 0;
}

static int check_policies(const struct config *c, const char *data_dir, struct buf *out,
			  struct error *err)
{
	const struct executor_options options = {
		.data_dir = data_dir,
		.policies_dir = *c->places.policies_dir ? c->places.policies_dir : NULL,
		.defaults = &c->limits.defaults,
		.defaults_set = c->limits.defaults_set,
		.ceilings = &c->limits.ceilings,
		.ceilings_set = c->limits.ceilings_set,
		.network = c->network,
	};
	json_t *policies = NULL;
	int r;

	if (options.policies_dir && access(options.policies_dir, R_OK | X_OK) < 0)
		return error_field(err, "policies_dir", "policies_dir: cannot read '%.200s': %s",
				   options.policies_dir, strerror(errno));
	r = executor_check_policies(&options, &policies, err);
	if (r == 0)
		r = put_policies(out, policies, err);
	json_decref(policies);
	return r;
}

/* How many tokens, never one of them. */
static int put_access(struct buf *out, const struct config *c)
{
	size_t n = 0;

	while (c->access.tokens[n])
		n++;
	if (c->access.unauthenticated)
		return put_served_word(out, "tokens", "none needed (allow_unauthenticated)");
	return n > 0 ? buf_printf(out, "%-10s %zu in %s\n", "tokens", n, c->access.token_file)
		     : put_served_word(out, "tokens", "none: only this machine can connect");
}

int monitor_check(const struct config_source *source, struct buf *out, struct error *err)
{
	struct log log = { .fd = STDERR_FILENO, .who = "check" };
	_cleanup_free_ char *data_dir = NULL;
	struct config c = { 0 };
	struct identity id;
	int r = monitor_settle(source, &c, &id, err);

	if (r == 0)
		r = data_find(*c.places.data_dir ? c.places.data_dir : NULL, &data_dir, err);
	if (r == 0)
		r = find_real_path(&data_dir, err);
	if (r == 0)
		r = identity_check_data(&id, data_dir, err);
	if (r == 0 && !c.listening.addresses[0] && !*c.listening.socket)
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "there is nothing to listen on; give --listen or --socket");
	if (r == 0) {
		log.format = (enum log_format)c.log.format;
		config_warn_of_tokens(&c, &log);
		if ((c.files[0] && put_served(out, "settings", c.files) < 0) ||
		    put_served(out, "listen", c.listening.addresses) < 0 ||
		    put_served_word(out, "socket", c.listening.socket) < 0 ||
		    put_access(out, &c) < 0 ||
		    put_served_word(out, "state", c.places.state_dir) < 0 ||
		    put_served_word(out, "data", data_dir) < 0)
			r = error_oom(err);
	}
	if (r == 0)
		r = check_policies(&c, data_dir, out, err);
	config_done(&c);
	return r;
}
