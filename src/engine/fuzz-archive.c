/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an archive, and as an event's id. What is unpacked is within its bounds and has names that the request's reader
 * takes; an id that is read is written the same.
 */
#include <assert.h>
#include <string.h>

#include "engine/archive-read.h"
#include "engine/stream/events.h"
#include "spec/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct archive_seen {
	size_t entries, bytes;
};

static int check_file(void *data, const struct archive_file *file, struct error *err)
{
	struct archive_seen *seen = data;

	(void)err;
	assert(request_check_path(file->name, strlen(file->name), NULL) == 0);
	seen->entries++;
	seen->bytes += file->data.len;
	assert(seen->entries <= ARCHIVE_ENTRIES_MAX && seen->bytes <= ARCHIVE_TOTAL_MAX);
	return 0;
}

static void check_id(const uint8_t *data, size_t size)
{
	char text[EVENT_ID] = "", again[EVENT_ID];
	struct event_cursor c, d;
	bool plain;

	memcpy(text, data, MIN(size, sizeof(text) - 1));
	if (cursor_parse(text, &c, &plain) < 0 || plain)
		return;
	cursor_format(&c, again);
	assert(cursor_parse(again, &d, &plain) == 0 && d.seq == c.seq && d.over == c.over &&
	       d.bytes[0] == c.bytes[0] && d.bytes[1] == c.bytes[1] && d.controls == c.controls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	struct archive_seen seen = { 0 };
	struct error err = { 0 };
	int r;

	if (!ready)
		archive_locale();
	ready = true;
	r = archive_read_all((struct span){ (const char *)data, size },
			     &(struct archive_sink){ check_file, &seen }, &err);
	assert(r == 0 ? err.code == ERROR_NONE : err.code != ERROR_NONE && *err.text);
	check_id(data, size);
	return 0;
}
