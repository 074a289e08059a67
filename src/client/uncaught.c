/* SPDX-License-Identifier: Apache-2.0 */
/* The error nobody caught, from what a program printed last: analyse/ knows every language's form. */
#include "client/run.h"

#include "analyse/finding.h"

json_t *uncaught_find(const char *language, const char *text, size_t len)
{
	return uncaught_error(language, (struct span){ text, len });
}
