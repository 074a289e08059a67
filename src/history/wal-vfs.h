/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's file layer, with one difference: a transaction's frames reach the write-ahead log in one write. */
#pragma once

/* The name to open a database with; NULL: SQLite's own will have to do. */
const char *wal_vfs(void);
