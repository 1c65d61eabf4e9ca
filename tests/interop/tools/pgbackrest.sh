#!/usr/bin/env bash
# pgBackRest: archived log, a full and an incremental backup of a database in use, verify, restore, recovery, compare.
. "$(dirname "$0")/common.sh"
need pgbackrest
port=${ENDPOINT#https://*:}
# The certificate is asked for by name: pgBackRest knows no addresses in certificates.
cat >pgbackrest.conf <<CONF
[global]
repo1-type=azure
repo1-path=/repo
repo1-azure-account=$ACCOUNT
repo1-azure-key=$KEY
repo1-azure-container=$CONTAINER
repo1-azure-endpoint=localhost
repo1-azure-uri-style=path
repo1-storage-port=${port%%/*}
repo1-storage-ca-file=$AUTHORITY
repo1-retention-full=1
log-path=$SCRATCH
lock-path=$SCRATCH
start-fast=y
[db]
pg1-path=$SCRATCH/data
pg1-socket-path=$SCRATCH
pg1-user=postgres
CONF
backrest() { as_postgres pgbackrest --config="$SCRATCH/pgbackrest.conf" --stanza=db "$@"; }
pgbackrest version
make_postgres "pgbackrest --config=$SCRATCH/pgbackrest.conf --stanza=db archive-push %p"
backrest stanza-create
sql "CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 20000) AS i"
backrest backup --type=full
sql "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(20001, 30000) AS i; DELETE FROM t WHERE i % 7 = 0"
backrest backup --type=incr
sql "INSERT INTO t VALUES (-1, 'after the last backup')"
before=$(rows) && stop_postgres
backrest verify
rm -rf data && backrest restore
start_postgres
[ "$(rows)" = "$before" ]
