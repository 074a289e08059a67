/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from the environment: ATOLL_ and the key for every row of the table and every limit, then the
 * variables of the systems whose clients Atoll serves (doc/atoll.yaml.example); each of them sets one of Atoll's settings.
 */
#include "atoll/daemon/config-layer.h"

#include "atoll/daemon/settings.h"
#include "base/parse.h"
#include "spec/read.h"

#include <stdio.h>
#include <string.h>

int config_apply_variable(const struct config_source *source, const char *key, struct config *c,
			  struct error *err)
{
	char variable[96];
	const char *text;

	setting_variable(key, variable, sizeof(variable));
	text = config_variable(source, variable);
	return text ? config_apply(variable, key, text, c, err) : 0;
}

static int apply_limits(const struct config_source *source, const char *group, struct config *c,
			struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < limit_knobs_count; i++) {
		const char *name = limit_knobs[i].key;
		char key[64];

		/* cpus stands for both. */
		if (strcmp(name, "cpu_quota") == 0 || strcmp(name, "cpu_period") == 0)
			continue;
		(void)snprintf(key, sizeof(key), "limits.%s.%s", group, name);
		r = config_apply_variable(source, key, c, err);
	}
	return r;
}

/*
 * A foreign variable, the setting it means, its unit (NULL: the text is used as it is) and how the unit is
 * written here.
 */
static const struct foreign {
	const char *variable, *key, *counts, *unit;
} foreigners[] = {
	{ "SANDBOX_GLOBAL_MAX_TIMEOUT_SECONDS", "limits.ceilings.timeout", "seconds", "s" },
	{ "SANDBOX_DEFAULT_TIMEOUT_SECONDS", "limits.defaults.timeout", "seconds", "s" },
	{ "SANDBOX_DEFAULT_MEMORY_LIMIT_MB", "limits.defaults.memory", "MiB", "m" },
	/* Percent of a core. */
	{ "SANDBOX_DEFAULT_CPU_QUOTA_PERCENT", "limits.defaults.cpus", "percent", NULL },
	{ "SANDBOX_PID_LIMIT", "limits.defaults.pids", NULL, NULL },
	{ "SANDBOX_LANGUAGE_CONFIG_FILE", "language_config", NULL, NULL },
	{ "OUTPUT_DATA_PATH", "output_data_path", NULL, NULL },
};

static int apply_foreign(const struct foreign *f, const char *text, struct config *c,
			 struct error *err)
{
	const char *converted;
	int64_t milli = 0;

	if (f->counts && parse_milli(text, &milli) < 0)
		return error_field(err, f->variable, "%s: '%s' is not a number of %s", f->variable,
				   quote_text(text).text, f->counts);
	if (f->counts && !f->unit)
		converted = config_text(c, "%lld.%05lld", (long long)(milli / 100000),
					(long long)(milli % 100000));
	else
		converted = config_text(c, "%s%s", text, f->unit ? f->unit : "");
	return converted ? config_apply(f->variable, f->key, converted, c, err)
			 : error_set(err, ERROR_INPUT, E2BIG, "%s is too long", f->variable);
}

/* Adds the port of the NeMo Agent Toolkit beside 8700, unless the listening addresses are given. */
static int apply_place(const struct config_source *source, struct config *c, struct error *err)
{
	const char *host = config_variable(source, "SANDBOX_HOST");
	const char *port = config_variable(source, "SANDBOX_PORT");
	bool v6 = host && strchr(host, ':') && host[0] != '[';
	const char *list;

	if ((!host && !port) || c->listen)
		return 0;
	list = config_text(c, CONFIG_LISTEN ",%s%s%s:%s", v6 ? "[" : "", host ? host : "127.0.0.1",
			   v6 ? "]" : "", port ? port : "6000");
	return list ? config_apply("SANDBOX_HOST, SANDBOX_PORT", "listen", list, c, err) : -ENOMEM;
}

/* Debug logging, as the scripts of the NeMo Agent Toolkit switch it on. */
static int apply_debug(const struct config_source *source, struct config *c, struct error *err)
{
	const char *text = config_variable(source, "DEBUG");

	if (!text || strcmp(text, "0") == 0 || strcmp(text, "false") == 0)
		return 0;
	return config_apply("DEBUG", "log.level", "debug", c, err);
}

int config_apply_variables(const struct config_source *source, struct config *c, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < settings_count; i++)
		r = config_apply_variable(source, settings[i].key, c, err);
	if (r == 0)
		r = apply_limits(source, "defaults", c, err);
	if (r == 0)
		r = apply_limits(source, "ceilings", c, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(foreigners); i++) {
		const char *text = config_variable(source, foreigners[i].variable);

		if (text)
			r = apply_foreign(&foreigners[i], text, c, err);
	}
	if (r == 0)
		r = apply_place(source, c, err);
	return r < 0 ? r : apply_debug(source, c, err);
}
