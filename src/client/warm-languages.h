/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker is told to keep ready: the table of interpreters it may fork from, out of languages/. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "plan/warm-table.h"
#include "toolchain/registry.h"

/*
 * One row for each language whose `warm` section says fork, and whose runtime and runner are on this host. It lives
 * as long as memory and the registry. A broken language file is passed over: whoever asks for that language is told.
 */
int registry_warm_table(struct registry *reg, const char *data_dir, struct arena *memory,
			struct warm_table *ret, struct error *err) _must_check_;
