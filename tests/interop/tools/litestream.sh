#!/usr/bin/env bash
# litestream: rows written while it replicates, stop, restore into another file, compare; then once more on top of that.
# Every restore comes after the stop has ended: a running litestream has not yet sent the rows of its last interval.
. "$(dirname "$0")/common.sh"
need litestream sqlite3
litestream version
target="account-name: $ACCOUNT, account-key: $KEY, endpoint: $ENDPOINT, bucket: $CONTAINER, path: db"
echo "dbs: [{path: $SCRATCH/a.db, replicas: [{type: abs, $target, sync-interval: 100ms}]}]" >a.yml
# Adds rows to a.db, each by a process of its own.
write() { for i in $(seq "$1"); do sqlite3 -cmd '.timeout 5000' a.db "INSERT INTO t(v) VALUES (hex(randomblob(300)))"; done; }
rows() { sqlite3 "$1" 'SELECT * FROM t'; }
# Waits until N rows can be restored: a litestream that is stopped before its first interval has sent nothing.
stored() {
  for _ in $(seq 300); do
    rm -f probe.db*
    litestream restore -config a.yml -o probe.db "$SCRATCH/a.db" >/dev/null 2>&1 && [ "$(rows probe.db | wc -l)" -ge "$1" ] && return
    sleep 0.1
  done
  cat replicate.log && return 1
}
sqlite3 a.db 'PRAGMA journal_mode = WAL; CREATE TABLE t(i INTEGER PRIMARY KEY, v TEXT);' >/dev/null
# round ROWS FIRST ALL FILE: adds ROWS while litestream runs, stops it when FIRST rows can be restored, and compares ALL rows with a restored FILE.
round() {
  litestream replicate -config a.yml >replicate.log 2>&1 &
  write "$1"
  stored "$2"
  kill $! && wait $! || { cat replicate.log; exit 1; }
  litestream restore -config a.yml -o "$4" "$SCRATCH/a.db"
  [ "$(rows "$4" | wc -l)" = "$3" ]
  cmp <(rows a.db) <(rows "$4")
}
round 150 1 150 b.db
round 50 151 200 c.db
