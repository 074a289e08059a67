/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of limits. A row gives JSON key, command-line flag, kind, bounds, default, ceiling and help.
 * The command line, the JSON and YAML readers, the policies and the HTTP and OpenAPI descriptions are made from
 * it. A new limit is a member and a row.
 */
#pragma once

#include "base/error.h"
#include "spec/limits.h"

#include <jansson.h>
#include <stdbool.h>

enum knob_kind { KNOB_SIZE, KNOB_TIME, KNOB_COUNT, KNOB_CPUS };

struct knob {
	const char *key;  /* "memory" */
	const char *flag; /* "--memory", or NULL */
	enum knob_kind kind;
	size_t offset; /* of the int64_t in struct limits */
	int64_t min,
		max;	/* hard bounds of the type; a configuration may raise a ceiling up to max */
	int64_t preset; /* default; 0 with none_ok: none */
	int64_t ceiling; /* shipped ceiling; KNOB_CPUS: 0 = the host's cores */
	const char *help;
	char letter;   /* 'm', or 0 */
	bool none_ok;  /* "none" and null are values */
	bool per_turn; /* an execution in a session may have its own; others are of its sandbox */
	bool zero_ok;  /* 0 means "none", too: for settings, not for limits */
};

struct knob_range;

extern const struct knob limit_knobs[];
extern const size_t limit_knobs_count;

const struct knob *knob_find(const char *key);
int64_t knob_get(const struct knob *k, const struct limits *l);
void knob_set(const struct knob *k, struct limits *l, int64_t value);
/* A bit per row, for sets of members that a request or policy names. */
uint32_t knob_bit(const struct knob *k);

/* A JSON number or string. The error names key, value and bounds; field is "limits.<key>". */
int knob_parse_json(const struct knob *k, const json_t *value, int64_t *ret,
		    struct error *err) _must_check_;
/* The same for a number elsewhere, with a row of the caller's own: the error's field is as given. */
int knob_parse_at(const char *field, const struct knob *k, const json_t *value, int64_t *ret,
		  struct error *err) _must_check_;
/* Refuses a value as knob_parse_at() does, but with the narrower bounds in range. 0: the value is accepted. */
int knob_refuse(const char *field, const struct knob *k, const json_t *value,
		const struct knob_range *range, struct error *err) _must_check_;
/*
 * A whole {"memory": …} object; unknown keys are refused. Sets members and their bits in *set. cpu_quota (with
 * cpu_period) also sets cpus, so other code need not know them. An error's field is "<where>.<key>".
 */
int limits_parse_at(const char *where, const json_t *object, struct limits *l, uint32_t *set,
		    struct error *err) _must_check_;
void limits_presets(struct limits *ret);		 /* every member's default */
void limits_ceilings(struct limits *ret, int32_t cores); /* every member's shipped ceiling */
/* Copies the members of over whose bits are in set. */
void limits_overlay(struct limits *l, const struct limits *over, uint32_t set);
/* "512 MiB", "30 s", "1.5", for messages and tables. */
void knob_format(const struct knob *k, int64_t value, char *ret, size_t size);
/* As the flag takes it: "1g", "60s", "1500ms", "200". */
void knob_flag_text(const struct knob *k, int64_t value, char *ret, size_t size);
/* In the unit of the JSON form: seconds, bytes, cores, a count; none is null. */
json_t *knob_to_json(const struct knob *k, int64_t value);
json_t *limits_to_json(const struct limits *l);

/* A value that was asked for, as it was written. */
struct knob_claim {
	const char *field; /* "limits.memory" */
	const char *given; /* "20g" */
	int64_t value;
	const struct knob_range *range; /* the allowed range; NULL: the row's own bounds */
};
struct knob_range {
	int64_t min, max;
	const char *above; /* "is above the ceiling of" */
};
/* Refuses a value out of range with one sentence that names field, value and bounds. */
int knob_check(const struct knob *k, const struct knob_claim *claim, const struct knob_range *range,
	       struct error *err) _must_check_;
