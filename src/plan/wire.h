/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan as bytes: header, records, data, in one sealed memfd. The reader trusts nothing: it requires the
 * seals (so checked bytes cannot change), maps the memfd read-only, and checks every record against op_table,
 * its own ceilings and the list of host paths that may be shown.
 */
#pragma once

#include "plan/plan.h"

struct plan_header {
	char magic[8]; /* "ATOLLPL1" */
	uint32_t n_ops;
	uint32_t reserved;
	uint64_t data_len;
};

/* The broker's own bounds, independent of the plan. */
struct plan_ceilings {
	const char *const
		*sources; /* host paths that may be shown, with all below; NULL-terminated */
	int64_t limits[_STAGE_LIMIT_MAX];
	int64_t disk_bytes, files;
	bool places; /* plans without namespaces are permitted */
};

struct plan_map { /* the bytes of a plan, mapped or copied */
	struct plan_view view;
	void *base;
	size_t size;
	bool copied;
};

/* Pure: bytes in, view out. Checks everything but the ceilings. */
int plan_decode(const void *bytes, size_t len, struct plan_view *ret,
		struct error *err) _must_check_;
int plan_check(const struct plan_view *v, const struct plan_ceilings *c,
	       struct error *err) _must_check_;
int plan_encode(const struct plan *p, struct buf *ret) _must_check_;
/* A view on sealed bytes that plan_decode has accepted: no check at all. */
static inline struct plan_view plan_trusted_view(const void *bytes)
{
	const struct plan_header *h = bytes;
	const struct op *ops = (const struct op *)(const void *)(h + 1);

	return (struct plan_view){ .ops = ops,
				   .n_ops = h->n_ops,
				   .data = (const char *)(ops + h->n_ops),
				   .data_len = h->data_len };
}
/* A view on a plan that is being built, for --explain and tests. */
struct plan_view plan_as_view(const struct plan *p);
