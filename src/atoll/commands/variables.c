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

/* The name of the i-th known variable, limits of settings among them; false: there are no more. */
static bool known_variable(size_t i, char ret[static VARIABLE_MAX])
{
	static const char *const groups[] = { "defaults", "ceilings" };
	char key[VARIABLE_MAX];

	if (i < ARRAY_SIZE(own_variables)) {
		(void)snprintf(ret, VARIABLE_MAX, "%s", own_variables[i].name);
		return true;
	}
	i -= ARRAY_SIZE(own_variables);
	if (i < settings_count) {
		setting_variable(settings[i].key, ret, VARIABLE_MAX);
		return true;
	}
	i -= settings_count;
	if (i >= ARRAY_SIZE(groups) * limit_knobs_count)
		return false;
	(void)snprintf(key, sizeof(key), "limits.%s.%s", groups[i / limit_knobs_count],
		       limit_knobs[i % limit_knobs_count].key);
	setting_variable(key, ret, VARIABLE_MAX);
	return true;
}

void variables_check(void)
{
	for (char **entry = environ; *entry; entry++) {
		char name[VARIABLE_MAX], known[VARIABLE_MAX], near[VARIABLE_MAX] = "";
		struct suggestion s = { 0 };
		bool is_known = strncmp(*entry, PREFIX, strlen(PREFIX)) != 0;

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
		for (size_t i = 0; !is_known && known_variable(i, known); i++) {
			is_known = strcmp(known, name) == 0;
			suggest_offer(&s, name, known);
			if (s.best == known) {
				(void)snprintf(near, sizeof(near), "%s", known);
				s.best = near;
			}
		}
		if (is_known)
			continue;
		if (s.best)
			say("the variable %s means nothing to atoll; did you mean %s?", name, near);
		else
			say("the variable %s means nothing to atoll; unset it", name);
	}
}
