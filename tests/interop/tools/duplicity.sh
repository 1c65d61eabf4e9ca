#!/usr/bin/env bash
# duplicity: a full and an incremental backup, verify, restore of both times, removal of the older chain.
. "$(dirname "$0")/common.sh"
need duplicity
# The Azure SDK for duplicity is that of install.sh.
need_python azure.storage.blob
export AZURE_CONNECTION_STRING="$AZURE_STORAGE_CONNECTION_STRING"
backup() { duplicity "$@" --no-encryption --volsize 4 --archive-dir "$SCRATCH/cache" --no-print-statistics; }
duplicity --version
make_data data
cp -r data first
backup full data "azure://$CONTAINER"
sleep 2
between=$(date +%s)
sleep 2
rm data/deep/er/3.txt && head -c 2000000 /dev/urandom >data/more.bin
backup incremental data "azure://$CONTAINER"
backup verify "azure://$CONTAINER" data --compare-data
rm -rf cache
backup restore "azure://$CONTAINER" back
diff -r data back
backup restore --time "$between" "azure://$CONTAINER" older
diff -r first older
backup full data "azure://$CONTAINER"
backup remove-all-but-n-full 1 --force "azure://$CONTAINER"
[ "$(backup collection-status "azure://$CONTAINER" | grep -c ' Full  ')" = 1 ]
