/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `atoll history`. */
#pragma once

#include "atoll/commands/cmd.h"

extern const struct command history_list, history_show, history_output, history_replay,
	history_diff, history_stats, history_rm, history_repair;
