/* SPDX-License-Identifier: Apache-2.0 */
/* /openapi.json: OpenAPI 3.1 of a router's table; nothing is listed that does not exist, nor the reverse. */
#pragma once

#include "http/router.h"

#include <jansson.h>

/* NULL: no memory. */
json_t *openapi_make(const struct router *router);
