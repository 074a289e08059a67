/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files that read settings. */
#pragma once

#include "atoll/daemon/config.h"

#define CONFIG_LISTEN	     "127.0.0.1:8700"
#define CONFIG_LISTEN_COMPAT "127.0.0.1:6000" /* where clients of the NeMo Agent Toolkit connect */

enum { CONFIG_PATH_MAX = 4096 };

/* printf into the settings' memory. NULL: no memory, or longer than a path may be. */
const char *config_text(struct config *c, const char *fmt, ...) _printf_(2, 3);
/* NULL: not set, or empty. */
const char *config_variable(const struct config_source *source, const char *name);
/* Sets one setting, by its key, from text; a refusal names origin. */
int config_apply(const char *origin, const char *key, const char *text, struct config *c,
		 struct error *err) _must_check_;
/* One setting from its ATOLL_ variable, if that is set. */
int config_apply_variable(const struct config_source *source, const char *key, struct config *c,
			  struct error *err) _must_check_;
/* ATOLL_*, then SANDBOX_*, OUTPUT_DATA_PATH and DEBUG. */
int config_apply_variables(const struct config_source *source, struct config *c,
			   struct error *err) _must_check_;
