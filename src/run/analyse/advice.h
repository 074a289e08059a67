/* SPDX-License-Identifier: Apache-2.0 */
/* From an error to its category and one sentence of advice. */
#pragma once

#include "run/analyse/family.h"

struct advice_input {
	const struct family *family; /* NULL: only the common rows */
	const struct finding *finding;
	struct program_source *source;
	const json_t *result;
};

struct advice_output {
	const char *category; /* NULL: no row fits */
	struct buf text;
};

/* The error is that there was no more memory: its advice names the limit. */
bool advice_is_of_memory(const struct advice_input *in);
/* The caller frees ret->text with buf_done(). */
int advice_find(const struct advice_input *in, struct advice_output *ret) _must_check_;
