/* SPDX-License-Identifier: Apache-2.0 */
/* See packet.h. One row a kind: the side that sends it, and its bound. */
#include "run/packet.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

static const struct packet_row {
	char kind;
	enum packet_side side;
	size_t payload_max;
} packet_rows[] = {
	{ PACKET_OPEN, PACKET_OF_CLIENT, PACKET_TEXT_MAX },
	{ PACKET_START, PACKET_OF_CLIENT, PACKET_WORD_MAX },
	{ PACKET_DISCARD, PACKET_OF_CLIENT, 0 },
	{ PACKET_KILL, PACKET_OF_CLIENT, 0 },
	{ PACKET_INPUT, PACKET_OF_CLIENT, PACKET_BYTES_MAX },
	{ PACKET_INPUT_END, PACKET_OF_CLIENT, 0 },
	{ PACKET_SIGNAL, PACKET_OF_CLIENT, PACKET_WORD_MAX },
	{ PACKET_RESIZE, PACKET_OF_CLIENT, PACKET_WORD_MAX },
	{ PACKET_ADMISSION, PACKET_OF_RUNNER, PACKET_EVENT_MAX },
	{ PACKET_REFUSED, PACKET_OF_RUNNER, PACKET_EVENT_MAX },
	{ PACKET_STARTED, PACKET_OF_RUNNER, PACKET_EVENT_MAX },
	{ PACKET_STDOUT, PACKET_OF_RUNNER, PACKET_BYTES_MAX },
	{ PACKET_STDERR, PACKET_OF_RUNNER, PACKET_BYTES_MAX },
	{ PACKET_STAGE, PACKET_OF_RUNNER, PACKET_EVENT_MAX },
	{ PACKET_USAGE, PACKET_OF_RUNNER, PACKET_EVENT_MAX },
	{ PACKET_RICH, PACKET_OF_RUNNER, PACKET_EVENT_MAX },
	{ PACKET_HOST_CALL, PACKET_OF_RUNNER, PACKET_EVENT_MAX },
	{ PACKET_INPUT_ROOM_MADE, PACKET_OF_RUNNER, PACKET_WORD_MAX },
	{ PACKET_END, PACKET_OF_RUNNER, PACKET_TEXT_MAX },
};

static const struct packet_row *packet_row(char kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(packet_rows); i++)
		if (packet_rows[i].kind == kind)
			return &packet_rows[i];
	return NULL;
}

bool packet_kind_is_of(enum packet_kind kind, enum packet_side side)
{
	const struct packet_row *row = packet_row((char)kind);

	return row && row->side == side;
}

size_t packet_payload_max(enum packet_kind kind)
{
	const struct packet_row *row = packet_row((char)kind);

	return row ? row->payload_max : PACKET_WORD_MAX;
}

int packet_read(struct span bytes, struct packet *ret, size_t *ret_used)
{
	const unsigned char *head = (const unsigned char *)bytes.data;
	enum packet_kind kind;
	size_t n;

	*ret_used = 0;
	if (bytes.len < PACKET_HEAD_BYTES)
		return 0;
	n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	kind = head[4];
	if (n == 0)
		return -EPROTO;
	if (n - 1 > packet_payload_max(kind))
		return -EMSGSIZE;
	*ret_used = 4 + n;
	if (bytes.len < *ret_used)
		return 0;
	*ret = (struct packet){ kind, { bytes.data + PACKET_HEAD_BYTES, n - 1 } };
	return 1;
}

void packet_head(enum packet_kind kind, size_t n, char ret[PACKET_HEAD_BYTES])
{
	assert(n <= packet_payload_max(kind));
	n++;
	for (int i = 0; i < 4; i++)
		ret[i] = (char)(n >> (24 - 8 * i) & 0xff);
	ret[4] = (char)kind;
}

int packet_write(struct buf *b, enum packet_kind kind, struct span payload)
{
	char head[PACKET_HEAD_BYTES];
	const size_t before = b->len;
	int r;

	if (payload.len > packet_payload_max(kind))
		return -EMSGSIZE;
	packet_head(kind, payload.len, head);
	r = buf_append(b, head, sizeof(head));
	if (r == 0)
		r = buf_append(b, payload.data, payload.len);
	if (r < 0)
		b->len = before;
	return r;
}

int packet_write_json(struct buf *b, enum packet_kind kind, const json_t *tree)
{
	_cleanup_free_ char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;

	return text ? packet_write(b, kind, span_of(text)) : -ENOMEM;
}

static bool packet_number(const json_t *value, uint16_t *ret)
{
	const json_int_t n = json_integer_value(value);

	if (n < 1 || n > UINT16_MAX)
		return false;
	*ret = (uint16_t)n;
	return true;
}

int packet_size_from_json(const json_t *tree, uint16_t *ret_rows, uint16_t *ret_columns)
{
	const json_t *columns = json_object_get(tree, "columns");
	uint16_t n_rows, n_columns;

	if (!packet_number(json_object_get(tree, "rows"), &n_rows) ||
	    !packet_number(columns ? columns : json_object_get(tree, "cols"), &n_columns))
		return -EINVAL;
	*ret_rows = n_rows;
	*ret_columns = n_columns;
	return 0;
}

int packet_start_from_json(const json_t *tree, struct packet_start *ret, const char **ret_problem)
{
	const json_t *interactive = json_object_get(tree, "interactive");
	const char *disconnect = json_string_value(json_object_get(tree, "disconnect"));
	struct packet_start s = { .interactive = json_is_true(interactive) };

	*ret_problem = NULL;
	if (!json_is_object(tree))
		*ret_problem = "START must be a JSON object.";
	else if (interactive && !json_is_boolean(interactive))
		*ret_problem = "interactive: give true or false.";
	else if (json_object_get(tree, "disconnect") &&
		 (!disconnect || (strcmp(disconnect, "cancel") && strcmp(disconnect, "keep"))))
		*ret_problem = "disconnect: give cancel or keep.";
	else if (json_object_get(tree, "rows") &&
		 packet_size_from_json(tree, &s.rows, &s.columns) < 0)
		*ret_problem = "rows and columns must be numbers from 1 to 65535.";
	if (*ret_problem)
		return -EINVAL;
	s.keep = disconnect && strcmp(disconnect, "keep") == 0;
	*ret = s;
	return 0;
}

json_t *packet_start_to_json(const struct packet_start *start)
{
	json_t *tree = json_pack("{s:b, s:s}", "interactive", start->interactive, "disconnect",
				 start->keep ? "keep" : "cancel");

	if (tree && start->rows &&
	    (json_object_set_new(tree, "rows", json_integer(start->rows)) < 0 ||
	     json_object_set_new(tree, "columns", json_integer(start->columns)) < 0)) {
		json_decref(tree);
		return NULL;
	}
	return tree;
}

int packet_signal_from_json(const json_t *tree)
{
	const json_t *value = json_object_get(tree, "signal");
	const char *name = json_string_value(value);
	const json_int_t number = json_integer_value(value);

	if (json_is_integer(value))
		return number > 0 && number < NSIG ? (int)number : -EINVAL;
	if (name && strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; name && i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return -EINVAL;
}

int packet_read_end(struct span payload, struct packet_end *ret)
{
	const char *line = payload.len > 0 ? memchr(payload.data, '\n', payload.len) : NULL;

	if (!line)
		return -EPROTO;
	*ret = (struct packet_end){
		.summary = { payload.data, (size_t)(line - payload.data) },
		.result = { line + 1, payload.len - (size_t)(line + 1 - payload.data) },
	};
	return 0;
}
