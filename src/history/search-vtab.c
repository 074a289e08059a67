/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. A table for SQLite that is made of nothing but `history.found`: what a search found, in its order. One
 * statement joins it with the rows, where asking for each of them would cost more than the search.
 */
#include "history/store.h"

#include <stdlib.h>

struct search_table {
	sqlite3_vtab base;
	const struct search_rows *found;
};

struct search_cursor {
	sqlite3_vtab_cursor base;
	size_t i;
};

static const struct search_rows *search_rows_of(const sqlite3_vtab_cursor *cursor)
{
	return ((const struct search_table *)(const void *)cursor->pVtab)->found;
}

static struct search_cursor *cursor_of(sqlite3_vtab_cursor *cursor)
{
	return (struct search_cursor *)(void *)cursor;
}

static int on_connect(sqlite3 *db, void *found, int argc, const char *const *argv,
		      sqlite3_vtab **ret, char **err)
{
	struct search_table *table = calloc(1, sizeof(*table));
	int rc = table ? sqlite3_declare_vtab(db, "CREATE TABLE x(at INTEGER)") : SQLITE_NOMEM;

	(void)argc;
	(void)argv;
	(void)err;
	if (rc != SQLITE_OK) {
		free(table);
		return rc;
	}
	table->found = found;
	*ret = &table->base;
	return SQLITE_OK;
}

static int on_disconnect(sqlite3_vtab *table)
{
	free(table);
	return SQLITE_OK;
}

static int on_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	info->estimatedCost = 1;
	return SQLITE_OK;
}

static int on_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	struct search_cursor *cursor = calloc(1, sizeof(*cursor));

	(void)table;
	if (!cursor)
		return SQLITE_NOMEM;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *cursor)
{
	free(cursor);
	return SQLITE_OK;
}

static int on_filter(sqlite3_vtab_cursor *cursor, int plan, const char *name, int argc,
		     sqlite3_value **argv)
{
	(void)plan;
	(void)name;
	(void)argc;
	(void)argv;
	cursor_of(cursor)->i = search_rows_of(cursor)->begin;
	return SQLITE_OK;
}

static int on_next(sqlite3_vtab_cursor *cursor)
{
	cursor_of(cursor)->i++;
	return SQLITE_OK;
}

static int on_eof(sqlite3_vtab_cursor *cursor)
{
	return cursor_of(cursor)->i >= search_rows_of(cursor)->end;
}

static int on_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
	(void)column;
	sqlite3_result_int64(context, search_rows_of(cursor)->ats[cursor_of(cursor)->i]);
	return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
	*ret = search_rows_of(cursor)->ats[cursor_of(cursor)->i];
	return SQLITE_OK;
}

int search_rows_register(struct history *h)
{
	static const sqlite3_module module = {
		.xConnect = on_connect,
		.xBestIndex = on_plan,
		.xDisconnect = on_disconnect,
		.xOpen = on_open,
		.xClose = on_close,
		.xFilter = on_filter,
		.xNext = on_next,
		.xEof = on_eof,
		.xColumn = on_column,
		.xRowid = on_rowid,
	};

	return sqlite3_create_module(h->db, "found", &module, &h->found);
}
