/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as packets: what is read lies inside of them, keeps its bound, and is written as it was. */
#include <assert.h>
#include <string.h>

#include "run/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { (const char *)data, size };
	struct packet f;
	size_t used;

	while (packet_read(rest, &f, &used) == 1) {
		struct buf b = { .max = 1 << 20 };
		json_t *tree = json_loadb(f.payload.data, f.payload.len, 0, NULL);
		struct packet_start start;
		struct packet_end end;
		const char *problem;
		uint16_t rows, columns;

		assert(used == PACKET_HEAD_BYTES + f.payload.len && used <= rest.len);
		assert(f.payload.len <= packet_payload_max(f.kind));
		if (used < b.max) {
			assert(packet_write(&b, f.kind, f.payload) == 0);
			assert(b.len == used && memcmp(b.data, rest.data, used) == 0);
		}
		buf_done(&b);
		if (packet_start_from_json(tree, &start, &problem) < 0)
			assert(problem);
		if (packet_size_from_json(tree, &rows, &columns) == 0)
			assert(rows > 0 && columns > 0);
		assert(packet_signal_from_json(tree) != 0);
		if (packet_read_end(f.payload, &end) == 0)
			assert(end.summary.len + 1 + end.result.len == f.payload.len);
		json_decref(tree);
		rest.data += used;
		rest.len -= used;
	}
	return 0;
}
