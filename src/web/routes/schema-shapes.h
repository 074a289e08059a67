/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files with shapes: words that several of them take, and the tables of the book. */
#pragma once

#include "spec/result.h"
#include "web/routes/schema-table.h"

#include <stddef.h>

#define SCHEMA_STATUS RESULT_STATUSES
#define SCHEMA_STATE  "queued|running|" SCHEMA_STATUS

extern const struct schema history_shapes[], host_shapes[], session_shapes[], compat_shapes[];
