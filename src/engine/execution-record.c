/* SPDX-License-Identifier: Apache-2.0 */
/* See execution-record.h. */
#include "engine/execution-record.h"

#include "base/fd.h"

void execution_record_init(struct execution_record *r)
{
	*r = (struct execution_record){ .files_fd = -EBADF, .value_fd = -EBADF };
}

void execution_record_done(struct execution_record *r, struct history *h, const char *id)
{
	free((char *)(uintptr_t)r->end_text.data);
	free(r->summary.message);
	r->files_fd = fd_close(r->files_fd);
	r->value_fd = fd_close(r->value_fd);
	json_decref(r->body);
	json_decref(r->result);
	free(r->timeout_chosen);
	free((char *)(uintptr_t)r->text.data);
	if (r->text_filed && !r->row)
		(void)history_output_delete(h, id, HISTORY_REQUEST);
	free((char *)(uintptr_t)r->result_text.data);
	free(r->key);
}
