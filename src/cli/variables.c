/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports unknown variables that begin with ATOLL_: a typing error would otherwise leave a setting at its
 * default without notice. A daemon's variables count as known in every command, because a shell has one
 * environment for all of them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/suggest.h"
#include "cli/cmd.h"
#include "cli/say.h"
#include "daemon/settings.h"
#include "spec/knob.h"

#define PREFIX "ATOLL_"

enum { VARIABLE_MAX = 96 };

static const char *const own_variables[] = {
	"ATOLL_URL",	   "ATOLL_TOKEN", "ATOLL_TOKEN_FILE", "ATOLL_SOCKET",
	"ATOLL_STATE_DIR", "ATOLL_POOL",  "ATOLL_DATA_DIR",   "ATOLL_KIT_DIR",
	"ATOLL_FORCE_OFF", "ATOLL_FAULT", "ATOLL_FAULT_LOG",  "ATOLL_FAULT_PROCESS",
};

/* Calls fn for the name of each known variable, until fn returns true. */
static bool for_each(bool (*fn)(const char *known, void *data), void *data)
{
	static const char *const groups[] = { "defaults", "ceilings" };
	char name[VARIABLE_MAX], key[VARIABLE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(own_variables); i++)
		if (fn(own_variables[i], data))
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
