#!/usr/bin/env bash
# barman-cloud: archived log, a backup of a database in use, restore with recovery, compare, deletion of the backup.
. "$(dirname "$0")/common.sh"
need_python barman psycopg2 azure.storage.blob
python -c 'import barman.version; print("barman", barman.version.__version__)'
url=$ENDPOINT/$CONTAINER
# cloud COMMAND ARGUMENT...: runs barman-cloud-COMMAND.
cloud() { as_postgres "$TOOLS/python" -m "barman.clients.cloud_$1" --cloud-provider=azure-blob-storage "${@:2}"; }
log="$TOOLS/python -m barman.clients.cloud_"
make_postgres "${log}walarchive --cloud-provider=azure-blob-storage $url db %p"
sql "CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 20000) AS i"
cloud backup --immediate-checkpoint --max-archive-size 20MB -h "$SCRATCH" -U postgres -d postgres "$url" db
sql "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(20001, 25000) AS i"
before=$(rows) && stop_postgres
rm -rf data && as_postgres mkdir -m 700 data
first_id='import json, sys; print(json.load(sys.stdin)["backups_list"][0]["backup_id"])'
backup=$(cloud backup_list --format json "$url" db | python -c "$first_id")
cloud restore "$url" db "$backup" "$SCRATCH/data"
echo "restore_command = '${log}walrestore --cloud-provider=azure-blob-storage $url db %f %p'" >>data/postgresql.conf
as_postgres touch data/recovery.signal
start_postgres
[ "$(rows)" = "$before" ]
stop_postgres
cloud backup_delete --backup-id "$backup" "$url" db
cloud backup_list --format json "$url" db | python -c 'import json, sys; assert json.load(sys.stdin)["backups_list"] == []'
