#!/usr/bin/env bash
# restic: two backups of a changing folder, a check of every byte, prune of the first, restore of the second.
. "$(dirname "$0")/common.sh"
need restic
export AZURE_ACCOUNT_NAME="$ACCOUNT" AZURE_ACCOUNT_KEY="$KEY" HTTPS_PROXY="$PROXY" RESTIC_PASSWORD=secret
restic() { command restic --cacert "$AUTHORITY" -r "azure:$CONTAINER:/backup" -q "$@"; }
restic version
make_data data
restic init
restic backup data
rm data/deep/er/7.txt && head -c 3000000 /dev/urandom >data/new.bin
restic backup data
restic check --read-data
restic forget --keep-last 1 --prune
restic check --read-data
[ "$(restic snapshots --json | grep -o '"short_id"' | wc -l)" = 1 ]
restic restore latest --target back
diff -r data back/data
