/* SPDX-License-Identifier: Apache-2.0 */
/* /openapi.json: OpenAPI 3.1, made from the router's table. It lists exactly the routes that exist. */
#pragma once

#include "web/http/router.h"

#include <jansson.h>

/* NULL: no memory. */
json_t *openapi_make(const struct router *router);
