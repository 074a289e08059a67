/* SPDX-License-Identifier: Apache-2.0 */
/* The table of interpreters that a broker may keep and fork from, made from languages/. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "plan/warm-table.h"
#include "run/toolchain/registry.h"

/*
 * One row for each language whose `warm` section says fork, if its runtime and runner are on this host. The
 * table lives as long as memory and the registry. A broken language file is skipped; it is reported when its
 * language is asked for.
 */
int registry_warm_table(struct registry *reg, const char *data_dir, struct arena *memory,
			struct warm_table *ret, struct error *err) _must_check_;
