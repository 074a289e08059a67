/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as a JSON request; an accepted request must keep within its bounds. */
#include <assert.h>
#include <string.h>

#include "spec/request.h"
#include "spec/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document doc = { "fuzz", (const char *)data, size };
	struct error err = { 0 };
	struct request *req = NULL;
	json_t *root = NULL;
	int r = json_parse(&doc, &root, &err);

	if (r == 0) {
		r = request_parse(root, &req, &err);
		json_decref(root);
	}
	if (r < 0) {
		assert(err.text[0] && strlen(err.text) < sizeof(err.text));
		return 0;
	}
	for (size_t i = 0; i < req->n_files; i++)
		assert(request_check_path(req->files[i].path, strlen(req->files[i].path), NULL) ==
		       0);
	assert(req->args && !req->args[req->n_args]);
	assert(req->code.data || req->entry || req->n_stages > 0);
	(void)request_free(req);
	return 0;
}
