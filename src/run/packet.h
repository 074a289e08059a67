/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte form of the runner contract (run/runner.h): a request and the events of its run as packets, over any connection. The page
 * for engineers of other runners is doc/runner-protocol.md. Pure.
 *
 *   packet    length of what follows, four bytes, the highest first │ kind, one byte │ payload
 *   client   OPEN ─▶ … START | DISCARD … INPUT, SIGNAL, RESIZE, KILL …
 *   runner   ADMISSION | REFUSED … STARTED, STDOUT, STAGE … END
 *
 * A payload is bytes of the program, or JSON text; END has two texts, a summary in one line and the result, so that passing
 * a result on takes no parser. Bounds are per kind: the reader of a packet knows them from its first five bytes.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define RUNNER_PROTOCOL "atoll-runner/1"

enum {
	PACKET_HEAD_BYTES = 5,
	PACKET_BYTES_MAX = 64 << 10, /* bytes of a program in one packet */
	PACKET_WORD_MAX = 4 << 10,   /* a small JSON text */
	PACKET_EVENT_MAX = 16 << 20, /* an event */
	PACKET_TEXT_MAX = 256 << 20, /* a request, a result */
	PACKET_INPUT_ROOM =
		64 << 10, /* bytes of input that may be sent before the first INPUT_ROOM */
};

enum packet_kind {
	/* of the client */
	PACKET_OPEN = 'O',	/* JSON: the request */
	PACKET_START = 'S',	/* JSON */
	PACKET_DISCARD = 'D',	/* empty */
	PACKET_KILL = 'K',	/* empty */
	PACKET_INPUT = 'I',	/* bytes */
	PACKET_INPUT_END = 'E', /* empty */
	PACKET_SIGNAL = 'G',	/* JSON */
	PACKET_RESIZE = 'W',	/* JSON */
	/* of the runner */
	PACKET_ADMISSION = 'A', /* JSON */
	PACKET_REFUSED = 'R',	/* JSON; the last */
	PACKET_STARTED = 's',	/* JSON, as all of these that have no bytes */
	PACKET_STDOUT = 'o',	/* bytes */
	PACKET_STDERR = 'e',	/* bytes */
	PACKET_STAGE = 't',
	PACKET_USAGE = 'u',
	PACKET_RICH = 'r',
	PACKET_HOST_CALL = 'h',
	PACKET_INPUT_ROOM_MADE = 'i',
	PACKET_END = 'Z', /* a line of JSON, and JSON; the last */
};

enum packet_side { PACKET_OF_CLIENT, PACKET_OF_RUNNER };

struct packet {
	enum packet_kind kind;
	struct span payload;
};

/* Whether the side may send packets of that kind. */
bool packet_kind_is_of(enum packet_kind kind, enum packet_side side);
/* The most bytes of its payload; of unknown kinds, which readers ignore, too. */
size_t packet_payload_max(enum packet_kind kind);

/*
 * The first packet of these bytes. 1: *ret, which points into bytes, and how many bytes it took; 0: there is no whole
 * packet yet, and *ret_used is how many bytes it will take, 0 if its head is not there; -EPROTO: empty; -EMSGSIZE: too long.
 */
int packet_read(struct span bytes, struct packet *ret, size_t *ret_used) _must_check_;

/* The five bytes in front of a payload of n bytes. */
void packet_head(enum packet_kind kind, size_t n, char ret[PACKET_HEAD_BYTES]);
/* Appends a packet. -EMSGSIZE: the payload is too long. */
int packet_write(struct buf *b, enum packet_kind kind, struct span payload) _must_check_;
/* The same for a tree, as compact text; NULL: -ENOMEM. Does not take it over. */
int packet_write_json(struct buf *b, enum packet_kind kind, const json_t *tree) _must_check_;

/* START: {"interactive", "disconnect": "cancel" | "keep", "rows", "columns"}, each of them optional. */
struct packet_start {
	bool interactive;	/* input follows the request's own stdin */
	bool keep;		/* a lost connection does not end the run */
	uint16_t rows, columns; /* of a terminal; 0: as the runner has it */
};
/* 0; -EINVAL: *ret_problem says which member makes no sense. Members that are not known are ignored. */
int packet_start_from_json(const json_t *tree, struct packet_start *ret,
			   const char **ret_problem) _must_check_;
json_t *packet_start_to_json(const struct packet_start *start);
/* RESIZE: {"rows", "columns"}, or "cols", as terminals in browsers have it. -EINVAL. */
int packet_size_from_json(const json_t *tree, uint16_t *ret_rows,
			  uint16_t *ret_columns) _must_check_;
/* SIGNAL: {"signal": "INT" | "SIGINT" | 2}. The number, or -EINVAL. */
int packet_signal_from_json(const json_t *tree) _must_check_;

/* END: its two texts, which point into the payload. -EPROTO: there is no line. */
struct packet_end {
	struct span summary, result;
};
int packet_read_end(struct span payload, struct packet_end *ret) _must_check_;
