/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program printed what was expected, as judges of contests compare. Pure. */
#pragma once

#include "spec/request.h"

/* White space at the end of a line, and empty lines at the end of the text, do not count. */
bool outputs_match(struct span got, struct span expected);
