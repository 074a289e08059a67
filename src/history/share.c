/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. What each caller has on record: the rows and bytes that the totals of `marks` are made of. Moves with them, in
 * their transactions, so that retention knows at once whose rows there are too many of.
 */
#include "history/store.h"

#include <stdio.h>

int share_add(struct history *h, const struct share *add)
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

int share_largest(struct history *h, enum stmt by, struct share_rank *ret)
{
	struct share_rank rank = { 0 };
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
