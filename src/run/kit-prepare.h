/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the kits of kit.h: for `atoll prepare`, and for a pool after its other work. Never while a request
 * waits.
 */
#pragma once

#include "atoll/atoll.h"
#include "base/error.h"

#include <stdbool.h>

struct kit_watch {
	/* text: how it ended; NULL: it begins. say may be NULL. */
	void (*say)(void *data, const char *title, const char *text);
	void *data;
	const char *const *only; /* names of languages, NULL-terminated; NULL: all */
	bool behind;		 /* at low priority */
	int cancel_fd;		 /* readable: stop; negative: none */
};
/* Makes the missing kits, one language after the other. */
int kit_prepare(struct atoll *a, const struct kit_watch *watch, struct error *err) _must_check_;
/* The same in a process of its own at the lowest priority, which ends with this one. */
void kit_prepare_behind(const char *data_dir);
