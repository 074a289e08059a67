/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports unknown variables that begin with ATOLL_: a typing error would otherwise leave a setting at its
 * default without notice. A daemon's variables count as known in every command, because a shell has one
 * environment for all of them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/daemon/settings.h"
#include "base/macro.h"
#include "base/suggest.h"
#include "spec/knob.h"

#define PREFIX "ATOLL_"

/* help NULL: the setting of that name explains it, or it is for tests of Atoll itself. */
static const struct own_variable {
	const char *name, *help;
} own_variables[] = {
	{ "ATOLL_URL", "the daemon that commands ask: a socket, http://ADDRESS:PORT, or off" },
	{ "ATOLL_TOKEN", "the token for a daemon at http://" },
	{ "ATOLL_TOKEN_FILE", "of a command: a file whose first line is that token" },
	{ "ATOLL_SOCKET", NULL },
	{ "ATOLL_STATE_DIR", NULL },
	{ "ATOLL_POOL", "a pool's socket; off: use none; auto: a first run starts one" },
	{ "ATOLL_DATA_DIR", NULL },
	{ "ATOLL_KIT_DIR", "the directory of what atoll prepare makes" },
	{ "NO_COLOR", "set: tables and reports have no colour" },
	{ "SANDBOX_HOST, SANDBOX_PORT", "of the daemon: listen there beside 127.0.0.1:8700" },
	{ "OUTPUT_DATA_PATH", "of the daemon: as ATOLL_OUTPUT_DATA_PATH" },
	{ "DEBUG", "of the daemon: 1 means ATOLL_LOG_LEVEL=debug" },
	{ "SANDBOX_DEFAULT_TIMEOUT_SECONDS, SANDBOX_DEFAULT_MEMORY_LIMIT_MB, "
	  "SANDBOX_DEFAULT_CPU_QUOTA_PERCENT, SANDBOX_PID_LIMIT",
	  "of the daemon: defaults of timeout, memory, cpus and pids" },
	{ "SANDBOX_GLOBAL_MAX_TIMEOUT_SECONDS", "of the daemon: the highest timeout" },
	{ "SANDBOX_LANGUAGE_CONFIG_FILE", "of the daemon: as ATOLL_LANGUAGE_CONFIG" },
	{ "ATOLL_FORCE_OFF", NULL },
	{ "ATOLL_FAULT", NULL },
	{ "ATOLL_FAULT_LOG", NULL },
	{ "ATOLL_FAULT_PROCESS", NULL },
};

bool variables_describe(size_t i, struct variable_text *ret)
{
	size_t n = 0;

	for (size_t at = 0; at < ARRAY_SIZE(own_variables); at++) {
		if (!own_variables[at].help || n++ < i)
			continue;
		*ret = (struct variable_text){ .help = own_variables[at].help };
		(void)snprintf(ret->name, sizeof(ret->name), "%s", own_variables[at].name);
		return true;
	}
	if (i - n >= settings_count)
		return false;
	*ret = (struct variable_text){ .help = settings[i - n].help, .is_setting = true };
	setting_variable(settings[i - n].key, ret->name, sizeof(ret->name));
	return true;
}

/* Calls fn for the name of each known variable, until fn returns true. */
static bool for_each(bool (*fn)(const char *known, void *data), void *data)
{
	static const char *const groups[] = { "defaults", "ceilings" };
	char name[VARIABLE_MAX], key[VARIABLE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(own_variables); i++)
		if (fn(own_variables[i].name, data))
			return true;
	for (size_t i = 0; i < settings_count; i++) {
		setting_variable(settings[i].key, name, sizeof(name));
		if (fn(name, data))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(groups) * limit_knobs_count; i++) {
		(void)snprintf(key, sizeof(key), "limits.%s.%s", groups[i / limit_knobs_count],
			       limit_knobs[i % limit_knobs_count].key);
		setting_variable(key, name, sizeof(name));
		if (fn(name, data))
			return true;
	}
	return false;
}

static bool is_same_variable(const char *known, void *data)
{
	return strcmp(known, data) == 0;
}

struct near {
	const char *word;
	char best[VARIABLE_MAX];
	struct suggestion s;
};

static bool offer(const char *known, void *data)
{
	struct near *n = data;
	const char *before = n->s.best;

	suggest_offer(&n->s, n->word, known);
	if (n->s.best != before) {
		(void)snprintf(n->best, sizeof(n->best), "%s", known);
		n->s.best = n->best;
	}
	return false;
}

void variables_check(void)
{
	for (char **entry = environ; *entry; entry++) {
		char name[VARIABLE_MAX];
		struct near near = { .word = name };

		if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0)
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
		if (for_each(is_same_variable, name))
			continue;
		(void)for_each(offer, &near);
		if (near.s.best)
			say("the variable %s means nothing to atoll; did you mean %s?", name,
			    near.s.best);
		else
			say("the variable %s means nothing to atoll; unset it", name);
	}
}
