/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See knob.h. A value is checked three times: its type (text, whole number, real), the hard bounds of its row,
 * and later, in plan/policy/, the ceiling of the policy in force. knob_check() words every refusal, so the messages
 * are the same everywhere.
 */
#include "spec/knob.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/suggest.h"
#include "spec/read.h"

#define DAY_MS	  (24 * 3600 * MS_PER_SEC)
#define PERIOD_US 100000LL /* the kernel's and Docker's default cpu_period */
#define MEMBER(m) offsetof(struct limits, m)

/* key, flag, kind, member; least, most, default and shipped ceiling; help */
const struct knob limit_knobs[] = {
	{ "timeout", "--timeout", KNOB_TIME, MEMBER(timeout_ms), 1, DAY_MS, 30 * MS_PER_SEC,
	  300 * MS_PER_SEC, "real time until the program is killed", .per_turn = true },
	{ "cpu_time", "--cpu-time", KNOB_TIME, MEMBER(cpu_time_ms), 1, DAY_MS, 0, 300 * MS_PER_SEC,
	  "processor time of all processes together", .per_turn = true, .none_ok = true },
	{ "idle_timeout", "--idle-timeout", KNOB_TIME, MEMBER(idle_timeout_ms), 10, DAY_MS, 0,
	  300 * MS_PER_SEC, "time without output and without processor use", .per_turn = true,
	  .none_ok = true },
	{ "memory", "--memory", KNOB_SIZE, MEMBER(memory_bytes), 4 * MiB, 1024 * GiB, 512 * MiB,
	  8 * GiB, "memory of all processes and of the files in /sandbox and /tmp", .letter = 'm' },
	{ "swap", "--swap", KNOB_SIZE, MEMBER(swap_bytes), 0, 1024 * GiB, 0, 8 * GiB,
	  "swap space on top of memory" },
	{ "cpus", "--cpus", KNOB_CPUS, MEMBER(cpus_milli), 10, 1024000, 1000, 0,
	  "processor cores, fractions allowed" },
	{ "cpu_quota", "--cpu-quota", KNOB_COUNT, MEMBER(cpu_quota_us), 1000, 1024 * 1000000LL, 0,
	  1024 * 1000000LL,
	  "microseconds of processor time in each cpu-period; another form of cpus",
	  .none_ok = true },
	{ "cpu_period", "--cpu-period", KNOB_COUNT, MEMBER(cpu_period_us), 1000, 1000000, 0,
	  1000000, "length of the period of cpu-quota in microseconds (100000)", .none_ok = true },
	{ "cpu_shares", "--cpu-shares", KNOB_COUNT, MEMBER(cpu_shares), 2, 262144, 0, 262144,
	  "weight against other sandboxes when cores are scarce (1024 is normal)",
	  .none_ok = true },
	{ "pids", "--pids", KNOB_COUNT, MEMBER(pids), 1, 1 << 22, 100, 4096,
	  "processes and threads" },
	{ "output", "--output", KNOB_SIZE, MEMBER(output_bytes), 1, 256 * MiB, MiB, 16 * MiB,
	  "bytes of each stream kept in the result", .per_turn = true },
	{ "output_total", "--output-total", KNOB_SIZE, MEMBER(output_total_bytes), 1, 64 * GiB,
	  64 * MiB, GiB, "bytes of each stream until the program is killed", .per_turn = true },
	{ "disk", "--disk", KNOB_SIZE, MEMBER(disk_bytes), 64 * KiB, 1024 * GiB, 256 * MiB, 4 * GiB,
	  "bytes in the work directory and /tmp together" },
	{ "files", "--files", KNOB_COUNT, MEMBER(files), 16, 1 << 26, 16 * KiB, MiB,
	  "files and directories in the work directory and /tmp" },
	{ "file_size", "--file-size", KNOB_SIZE, MEMBER(file_size_bytes), 4 * KiB, 1024 * GiB,
	  256 * MiB, 4 * GiB, "bytes of one file" },
	{ "open_files", "--open-files", KNOB_COUNT, MEMBER(open_files), 16, 1 << 20, 1024, 16384,
	  "open files of one process" },
	{ "stack", "--stack", KNOB_SIZE, MEMBER(stack_bytes), 256 * KiB, 16 * GiB, 8 * MiB, GiB,
	  "stack of the main thread" },
};
const size_t limit_knobs_count = ARRAY_SIZE(limit_knobs);

static_assert(ARRAY_SIZE(limit_knobs) <= 32, "a bit per row must fit 32 bits");
static_assert(sizeof(struct limits) == ARRAY_SIZE(limit_knobs) * sizeof(int64_t),
	      "every member has a row");

/* Reads the text form, and names a valid value for messages. */
static int knob_parse_count(const char *text, int64_t *ret);
static const struct {
	int (*parse)(const char *text, int64_t *ret);
	const char *wanted;
	int64_t scale; /* base units in 1 of the JSON form */
	bool whole;    /* a fraction of the JSON unit makes no sense */
} kinds[] = {
	[KNOB_SIZE] = { parse_size, "a size, in bytes or like \"512m\"", 1, true },
	[KNOB_TIME] = { parse_time, "a time, in seconds or like \"500ms\"", MS_PER_SEC, false },
	[KNOB_COUNT] = { knob_parse_count, "a whole number", 1, true },
	[KNOB_CPUS] = { parse_milli, "a number of cores like 1.5", 1000, false },
};

/* "100", or "16k" and "1m" in steps of 1024. */
static int knob_parse_count(const char *text, int64_t *ret)
{
	size_t digits = strspn(text, "0123456789");
	const char *suffix = text + digits;

	if (digits == 0 || (*suffix && (!strchr("kKmM", *suffix) || suffix[1])))
		return -EINVAL;
	return parse_size(text, ret);
}

const struct knob *knob_find(const char *key)
{
	for (size_t i = 0; i < limit_knobs_count; i++)
		if (strcmp(limit_knobs[i].key, key) == 0)
			return &limit_knobs[i];
	return NULL;
}

int64_t knob_get(const struct knob *k, const struct limits *l)
{
	return *(const int64_t *)((const char *)l + k->offset);
}

void knob_set(const struct knob *k, struct limits *l, int64_t value)
{
	*(int64_t *)((char *)l + k->offset) = value;
}

uint32_t knob_bit(const struct knob *k)
{
	assert(k >= limit_knobs && k < limit_knobs + limit_knobs_count);
	return UINT32_C(1) << (k - limit_knobs);
}

/* value/unit with at most three decimals, rounded down, without trailing zeros. */
static void knob_format_ratio(int64_t value, int64_t unit, const char *suffix, char *ret,
			      size_t size)
{
	char fraction[8];
	int64_t thousandths = (int64_t)((__int128)(value % unit) * 1000 / unit);
	size_t n;

	(void)snprintf(fraction, sizeof(fraction), ".%03u", (unsigned)thousandths);
	for (n = 4; n > 1 && fraction[n - 1] == '0'; n--)
		fraction[n - 1] = '\0';
	if (n == 1)
		fraction[0] = '\0';
	(void)snprintf(ret, size, "%lld%s%s", (long long)(value / unit), fraction, suffix);
}

void knob_format(const struct knob *k, int64_t value, char *ret, size_t size)
{
	static const struct {
		int64_t unit;
		const char *suffix;
	} sizes[] = {
		{ 1024 * GiB, " TiB" }, { GiB, " GiB" }, { MiB, " MiB" },
		{ KiB, " KiB" },	{ 1, " bytes" },
	};
	size_t i = 0;

	if (value == 0 && k->none_ok) {
		(void)snprintf(ret, size, "none");
		return;
	}
	switch (k->kind) {
	case KNOB_SIZE:
		while (i < ARRAY_SIZE(sizes) - 1 && value < sizes[i].unit)
			i++;
		knob_format_ratio(value, sizes[i].unit, value == 1 ? " byte" : sizes[i].suffix, ret,
				  size);
		break;
	case KNOB_TIME:
		if (value < MS_PER_SEC)
			(void)snprintf(ret, size, "%lld ms", (long long)value);
		else
			knob_format_ratio(value, MS_PER_SEC, " s", ret, size);
		break;
	case KNOB_CPUS:
		knob_format_ratio(value, 1000, "", ret, size);
		break;
	case KNOB_COUNT:
		(void)snprintf(ret, size, "%lld", (long long)value);
		break;
	}
}

int knob_check(const struct knob *k, const struct knob_claim *claim, const struct knob_range *range,
	       struct error *err)
{
	char min[32], max[32];
	bool below = claim->value < range->min;

	if (!below && claim->value <= range->max)
		return 0;
	knob_format(k, range->min, min, sizeof(min));
	knob_format(k, range->max, max, sizeof(max));
	return error_field(err, claim->field, "%s: %s %s %s (allowed: %s to %s%s)", claim->field,
			   claim->given, below ? "is below the minimum of" : range->above,
			   below ? min : max, min, max,
			   k->none_ok && claim->value == 0 ? ", or none" : "");
}

/* The bounds that a claim is held to. */
static struct knob_range knob_range_of(const struct knob *k, const struct knob_claim *claim)
{
	return claim->range ? *claim->range
			    : (struct knob_range){ k->min, k->max, "is above the maximum of" };
}

static int knob_check_claim(const struct knob *k, const struct knob_claim *claim, struct error *err)
{
	struct knob_range range = knob_range_of(k, claim);

	return knob_check(k, claim, &range, err);
}

static int knob_refuse_type(const struct knob *k, const struct knob_claim *claim, struct error *err)
{
	struct knob_range range = knob_range_of(k, claim);
	char min[32], max[32];

	knob_format(k, range.min, min, sizeof(min));
	knob_format(k, range.max, max, sizeof(max));
	return error_field(err, claim->field, "%s: %s is not %s (allowed: %s to %s)", claim->field,
			   claim->given, kinds[k->kind].wanted, min, max);
}

/* Fills claim->value. "none" or null mean no limit; 0 does not, because a computed 0 is likely a mistake. */
static int knob_parse_text(const struct knob *k, const char *text, struct knob_claim *claim,
			   struct error *err)
{
	int64_t value = 0;
	int r;

	if (k->none_ok && strcmp(text, "none") == 0) {
		claim->value = 0;
		return 0;
	}
	/* A daemon replaces the word before this is called (engine/submit.c). */
	if (k == knob_find("timeout") && strcmp(text, "adaptive") == 0)
		return error_field(err, claim->field,
				   "%s: only a whole request to a daemon (`atoll serve`) can have "
				   "an adaptive timeout; give a time",
				   claim->field);
	r = kinds[k->kind].parse(text, &value);
	if (r == -ERANGE)
		value = INT64_MAX;
	else if (r < 0)
		return knob_refuse_type(k, claim, err);
	claim->value = value;
	if (value == 0 && k->zero_ok && !strpbrk(text, "123456789"))
		return 0;
	return knob_check_claim(k, claim, err);
}

static int knob_parse_number(const struct knob *k, const json_t *json, struct knob_claim *claim,
			     struct error *err)
{
	static const double far = 9e18; /* below 2^63, above every bound */
	double scaled = json_number_value(json) * (double)kinds[k->kind].scale;
	int64_t value;

	if (json_is_integer(json)) {
		if (__builtin_mul_overflow(json_integer_value(json), kinds[k->kind].scale, &value))
			value = json_integer_value(json) < 0 ? INT64_MIN : INT64_MAX;
	} else if (scaled > far || scaled < -far) {
		value = scaled < 0 ? INT64_MIN : INT64_MAX;
	} else {
		value = (int64_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
		/* Less than one base unit: rounding up would accept it. */
		if (scaled > 0 && scaled < 1)
			value = 0;
		if (kinds[k->kind].whole && (double)value != scaled)
			return knob_refuse_type(k, claim, err);
	}
	claim->value = value;
	if (value == 0 && k->zero_ok && !(scaled > 0))
		return 0;
	return knob_check_claim(k, claim, err);
}

/* Fills claim->value. */
static int knob_parse(const struct knob *k, const json_t *value, struct knob_claim *claim,
		      struct error *err)
{
	if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
		return knob_parse_text(k, json_string_value(value), claim, err);
	if (json_is_number(value))
		return knob_parse_number(k, value, claim, err);
	return json_is_null(value) && k->none_ok ? 0 : knob_refuse_type(k, claim, err);
}

int knob_parse_at(const char *field, const struct knob *k, const json_t *value, int64_t *ret,
		  struct error *err)
{
	struct quoted given = quote_json(value);
	struct knob_claim claim = { .field = field, .given = given.text };
	int r = knob_parse(k, value, &claim, err);

	if (r < 0)
		return r;
	*ret = claim.value;
	return 0;
}

int knob_refuse(const char *field, const struct knob *k, const json_t *value,
		const struct knob_range *range, struct error *err)
{
	struct quoted given = quote_json(value);
	struct knob_claim claim = { .field = field, .given = given.text, .range = range };

	return knob_parse(k, value, &claim, err);
}

int knob_parse_json(const struct knob *k, const json_t *value, int64_t *ret, struct error *err)
{
	char field[64];

	(void)snprintf(field, sizeof(field), "limits.%s", k->key);
	return knob_parse_at(field, k, value, ret, err);
}

static int limits_refuse_key(const struct reader *at, const char *key)
{
	struct suggestion s = { 0 };

	if (strcmp(key, "gpus") == 0)
		return reader_refuse(at, "GPUs are not available in a sandbox yet; the key is "
					 "reserved, leave it out");
	for (size_t i = 0; i < limit_knobs_count; i++)
		suggest_offer(&s, key, limit_knobs[i].key);
	if (s.best)
		return reader_refuse(at, "there is no such limit; did you mean '%s'?", s.best);
	return reader_refuse(at, "there is no such limit");
}

/* Docker's way to give cpus: so many microseconds of every period. */
static int limits_apply_quota(const struct reader *r, struct limits *l, uint32_t *set)
{
	const struct knob *cpus = knob_find("cpus"), *quota = knob_find("cpu_quota"),
			  *period = knob_find("cpu_period");
	struct reader at = reader_at(r, "cpu_quota"), at_period = reader_at(r, "cpu_period");
	struct knob_claim claim = { .field = at.field };
	char given[64];
	int64_t period_us;
	int e;

	if (!(*set & knob_bit(quota)) || l->cpu_quota_us == 0) {
		if ((*set & knob_bit(period)) && l->cpu_period_us != 0)
			return reader_refuse(&at_period, "it only means something together with "
							 "cpu_quota; give both, or cpus");
		return 0;
	}
	if (*set & knob_bit(cpus))
		return reader_refuse(&at, "give cpus or cpu_quota, not both");
	period_us = (*set & knob_bit(period)) && l->cpu_period_us ? l->cpu_period_us : PERIOD_US;
	claim.value = l->cpu_quota_us * 1000 / period_us;
	(void)snprintf(given, sizeof(given), "%lld of every %lld microseconds",
		       (long long)l->cpu_quota_us, (long long)period_us);
	claim.given = given;
	e = knob_check_claim(cpus, &claim, r->err);
	if (e < 0)
		return e;
	l->cpus_milli = claim.value;
	*set |= knob_bit(cpus);
	return 0;
}

int limits_parse_at(const char *where, const json_t *object, struct limits *l, uint32_t *set,
		    struct error *err)
{
	struct reader top = { .err = err };
	struct reader r = reader_at(&top, where);
	struct limits read = *l;
	uint32_t named = 0;
	const char *key;
	const json_t *value;
	int e;

	if (!json_is_object(object))
		return reader_refuse(&r, "%s is not an object of limits, such as {\"timeout\": 5}",
				     quote_json(object).text);
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		const struct knob *k = knob_find(key);
		struct reader at = reader_at(&r, key);
		int64_t amount = 0;

		if (!k)
			return limits_refuse_key(&at, key);
		e = knob_parse_at(at.field, k, value, &amount, err);
		if (e < 0)
			return e;
		knob_set(k, &read, amount);
		named |= knob_bit(k);
	}
	e = limits_apply_quota(&r, &read, &named);
	if (e < 0)
		return e;
	*l = read;
	*set |= named;
	return 0;
}

void limits_presets(struct limits *ret)
{
	for (size_t i = 0; i < limit_knobs_count; i++)
		knob_set(&limit_knobs[i], ret, limit_knobs[i].preset);
}

void limits_ceilings(struct limits *ret, int32_t cores)
{
	for (size_t i = 0; i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];

		knob_set(k, ret, k->kind == KNOB_CPUS ? MAX(cores, 1) * 1000LL : k->ceiling);
	}
}

void limits_overlay(struct limits *l, const struct limits *over, uint32_t set)
{
	for (size_t i = 0; i < limit_knobs_count; i++)
		if (set & knob_bit(&limit_knobs[i]))
			knob_set(&limit_knobs[i], l, knob_get(&limit_knobs[i], over));
}

void knob_flag_text(const struct knob *k, int64_t value, char *ret, size_t size)
{
	static const struct {
		int64_t unit;
		char letter;
	} sizes[] = { { GiB, 'g' }, { MiB, 'm' }, { KiB, 'k' } };

	if (k->kind == KNOB_TIME) {
		bool whole = value % MS_PER_SEC == 0;

		(void)snprintf(ret, size, "%" PRId64 "%s",
			       (int64_t)(whole ? value / MS_PER_SEC : value), whole ? "s" : "ms");
		return;
	}
	for (size_t i = 0; k->kind == KNOB_SIZE && i < ARRAY_SIZE(sizes); i++) {
		if (value >= sizes[i].unit && value % sizes[i].unit == 0) {
			(void)snprintf(ret, size, "%" PRId64 "%c", value / sizes[i].unit,
				       sizes[i].letter);
			return;
		}
	}
	(void)snprintf(ret, size, "%" PRId64, value);
}

json_t *knob_to_json(const struct knob *k, int64_t value)
{
	if (value == 0 && k->none_ok)
		return json_null();
	if (kinds[k->kind].whole)
		return json_integer(value);
	return json_real((double)value / (double)kinds[k->kind].scale);
}

json_t *limits_to_json(const struct limits *l)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < limit_knobs_count; i++) {
		const struct knob *k = &limit_knobs[i];

		if (json_object_set_new(object, k->key, knob_to_json(k, knob_get(k, l))) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}
