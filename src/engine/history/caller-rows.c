/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. The durable slots of a caller (base/caller.h has those of memory): its rows and bytes on record, of which the
 * totals of `marks` are made. They change in the transaction of the row, and so a rollback undoes both. Retention reads them to
 * find the caller with the most.
 */
#include "engine/history/store.h"

#include <stdio.h>

int caller_rows_add(struct history *h, const struct caller_rows *add)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_SHARE_ADD, &r);

	if (!s)
		return r;
	bind_text(s, 1, add->caller);
	(void)sqlite3_bind_int64(s, 2, add->rows);
	(void)sqlite3_bind_int64(s, 3, add->bytes);
	r = store_run(h, s);
	if (r < 0 || add->rows >= 0)
		return r;
	s = store_stmt(h, STMT_SHARE_DROP, &r);
	if (!s)
		return r;
	bind_text(s, 1, add->caller);
	return store_run(h, s);
}

int caller_rows_largest(struct history *h, enum stmt by, struct caller_rank *ret)
{
	struct caller_rank rank = { 0 };
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, by, &r);

	if (!s)
		return r;
	r = store_step(h, s);
	if (r <= 0)
		return r;
	(void)snprintf(rank.caller, sizeof(rank.caller), "%s",
		       (const char *)sqlite3_column_text(s, 0));
	rank.amount = sqlite3_column_int64(s, 1);
	r = store_step(h, s);
	if (r > 0)
		rank.next = sqlite3_column_int64(s, 1);
	(void)sqlite3_reset(s);
	if (r < 0)
		return r;
	*ret = rank;
	return 1;
}
