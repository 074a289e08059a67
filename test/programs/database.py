# SPDX-License-Identifier: Apache-2.0
import sqlite3

with sqlite3.connect("shop.db") as db:
    db.execute("pragma journal_mode=wal")
    db.execute("create table item (id integer primary key, name text unique, price real)")
    db.executemany("insert into item (name, price) values (?, ?)", [("nut", 0.5), ("bolt", 1.25), ("gear", 9)])
    print(db.execute("select count(*), sum(price), max(name) from item").fetchone())
    try:
        db.execute("insert into item (name) values ('nut')")
    except sqlite3.IntegrityError as problem:
        print(problem)
    for row in db.execute("with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select i, i * i from n"):
        print(*row)
    print(db.execute("select json_extract('{\"a\": [1, 2]}', '$.a[1]')").fetchone())
db.close()
