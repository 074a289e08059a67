/* SPDX-License-Identifier: Apache-2.0 */
/* Which sums are kept: for each minute and each hour, and in it for each caller everything, each language, each label. */
#pragma once

#include "engine/history/histogram.h"

enum { SPAN_MINUTE = 60, SPAN_HOUR = 3600, MINUTES_KEPT_S = 6 * 3600 + 60 };
enum sum_kind { HISTOGRAM_ALL, HISTOGRAM_LANGUAGE, HISTOGRAM_LABEL };
