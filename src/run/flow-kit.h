/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling with a kit (kit.h). */
#pragma once

#include "run/run.h"

/* The host path of the kit that fits this compile, in run.memory; NULL: none. */
const char *flow_kit(struct local_run *run);
/* Changes the compile stage into one that uses the kit. */
int flow_use_kit(struct local_run *run, const char *kit, struct sandbox_spec *in) _must_check_;
/* False: compile again without the kit. */
bool flow_kit_stands(const struct local_run *run, const struct sandbox_spec *in,
		     const struct job_outcome *o);
