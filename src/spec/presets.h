/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults by language, as an administrator gives them (doc/atoll.yaml.example, SANDBOX_LANGUAGE_CONFIG_FILE): Codomyrmex's
 * object of languages. Of its keys `default_memory_mb` is used. `limits`, as in requests, is an addition.
 * `image` and `seccomp_profile` are for containers and ignored. Pure.
 *
 *   {"python3.10": {"image": "…", "seccomp_profile": "…", "default_memory_mb": 512, "allow_network": false,
 *                   "limits": {"timeout": 20}}}
 */
#pragma once

#include "base/error.h"
#include "spec/limits.h"

#include <jansson.h>
#include <stdbool.h>

enum { PRESETS_MAX = 64, PRESET_NAME_MAX = 40 };

struct preset {
	char name[PRESET_NAME_MAX + 1]; /* as given: "python3.10" */
	char language[PRESET_NAME_MAX +
		      1]; /* without its version: "python"; "": no such language */
	char version[PRESET_NAME_MAX +
		     1]; /* "3.10": for requests of that version; "": for the language */
	struct limits limits;
	uint32_t set; /* knob_bit()s of the members that are given */
	bool allow_network;
};

struct presets {
	struct preset list[PRESETS_MAX];
	size_t n;
};

int presets_parse(const json_t *root, struct presets *ret, struct error *err) _must_check_;
