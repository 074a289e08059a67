/* SPDX-License-Identifier: Apache-2.0 */
/* See retry.h. */
#include "run/retry.h"

#include "base/macro.h"
#include "run/analyse/demand.h"

#include <string.h>

/* A program that used less than one part in so many of its time has waited: when it names a network, or only its text does. */
enum { SAID_SHARE = 2, WRITTEN_SHARE = 20 };

/* Memory that a runtime needs beside one large object, and the step of suggested limits. */
static const int64_t overhead_bytes = 64 * MiB, step_bytes = 256 * MiB;

static bool span_contains(struct span text, const char *word)
{
	return text.len > 0 && memmem(text.data, text.len, word, strlen(word));
}

/* The program waited, and its output or source shows that it was for a network, which more time cannot give. */
static bool waited_for_network(const struct retry_view *v)
{
	static const char *const said[] = {
		"Name or service not known",
		"Temporary failure in name resolution",
		"Network is unreachable",
		"Connection refused",
		"Could not resolve host",
		"Failed to resolve",
		"no such host",
		"network is unreachable",
		"UnknownHostException",
		"EAI_AGAIN",
		"ENETUNREACH",
		"ECONNREFUSED",
	};
	static const char *const written[] = { "http://", "https://" };

	if (v->cpu_us * SAID_SHARE >= v->wall_us)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(said); i++)
		if (span_contains(v->err, said[i]) || span_contains(v->out, said[i]))
			return true;
	if (v->cpu_us * WRITTEN_SHARE >= v->wall_us)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(written); i++)
		if (span_contains(v->code, written[i]) && !span_contains(v->code, "://localhost") &&
		    !span_contains(v->code, "://127.0.0.1"))
			return true;
	return false;
}

static void refine_memory(struct cause *cause, const struct retry_view *v)
{
	int64_t said = demand_in_words(v->err), written = demand_in_code(v->code);
	int64_t need = MAX(said, written);

	/* If the object would have fit, the sum of many was too much. */
	if (need + overhead_bytes <= cause->suggest || need <= cause->limit / 2)
		return;
	need = (need + overhead_bytes + step_bytes - 1) / step_bytes * step_bytes;
	cause->suggest = need <= v->ceiling ? need : -1;
}

void retry_refine(struct cause *cause, const struct retry_view *v)
{
	if (cause->suggest < 0)
		return;
	cause->suggest = MIN(cause->suggest, v->ceiling);
	if (cause->kind == CAUSE_MEMORY)
		refine_memory(cause, v);
	if ((cause->kind == CAUSE_TIMEOUT || cause->kind == CAUSE_IDLE) && waited_for_network(v))
		cause->suggest = -1;
	if (cause->suggest <= cause->limit)
		cause->suggest = -1;
	cause->retryable = cause->suggest >= 0;
}
