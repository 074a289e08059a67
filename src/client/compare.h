/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a program's output with the expected one, as contest judges do. Pure. */
#pragma once

#include "spec/request.h"

/* White space at the end of a line, and empty lines at the end of the text, do not count. */
bool outputs_match(struct span got, struct span expected);
