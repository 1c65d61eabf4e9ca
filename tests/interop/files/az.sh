#!/usr/bin/env bash
# azure-cli: az storage share, directory, file and file copy.
. "$(dirname "$0")/common.sh"
az version --query '"azure-cli"' -o tsv | sed 's/^/azure-cli /'
export AZURE_STORAGE_CONNECTION_STRING="DefaultEndpointsProtocol=http;AccountName=$STAMP_ACCOUNT;AccountKey=$STAMP_KEY;\
FileEndpoint=$STAMP_FILE_ENDPOINT"
share=az-$RANDOM$RANDOM
storage() { az storage "$@" --only-show-errors -o tsv; }
# same WHAT TOLD DUE: ends the script if both differ.
same() { [ "$2" = "$3" ] && echo "ok $1" || { echo "FAIL $1: $2, not $3" && exit 1; }; }
same "share create" "$(storage share create -n $share --quota 5 --query created)" true
storage share update -n $share --quota 7 >/dev/null
same "share show" "$(storage share show -n $share --query properties.quota)" 7
same "share list" "$(storage share list --prefix $share --query '[].name')" $share
# It says 1 GiB of an empty share.
same "share stats" "$(storage share stats -n $share)" 1
storage share metadata update -n $share --metadata a=b >/dev/null
same "share metadata" "$(storage share metadata show -n $share --query a)" b
storage share policy create -s $share -n one --permissions rl --expiry 2040-01-01T00:00Z >/dev/null
same "share policy" "$(storage share policy list -s $share --query 'keys(@)')" one
storage directory create -s $share -n folder >/dev/null
same "directory exists" "$(storage directory exists -s $share -n folder --query exists)" true
storage file upload -s $share --source data/large.bin -p folder/large.bin --validate-content --no-progress >/dev/null
same "file show" "$(storage file show -s $share -p folder/large.bin --query properties.contentLength)" 9437184
storage file download -s $share -p folder/large.bin --dest . --no-progress >/dev/null
cmp data/large.bin large.bin
storage file upload-batch -d $share --destination-path up -s data --no-progress >/dev/null
mkdir all
storage file download-batch -s $share -d all --pattern "up/*" --no-progress >/dev/null
diff -r data all/up
same "file list" "$(storage file list -s $share -p up/deep/er --query 'length(@)')" 20
storage file update -s $share -p up/empty --content-type text/x >/dev/null
storage file metadata update -s $share -p up/empty --metadata k=v >/dev/null
told=$(storage file show -s $share -p up/empty --query '[properties.contentSettings.contentType, metadata.k]')
same "file update" "$(tr '\t\n' '  ' <<<"$told")" "text/x v "
storage file resize -s $share -p up/empty --size 100 >/dev/null
same "file resize" "$(storage file show -s $share -p up/empty --query properties.contentLength)" 100
sas=$(storage file generate-sas -s $share -p folder/large.bin --permissions r --expiry 2040-01-01T00:00Z)
curl -sf "$STAMP_FILE_ENDPOINT/$share/folder/large.bin?$sas" | cmp - data/large.bin
storage file copy start -s $share -p copied.bin --source-uri "$STAMP_FILE_ENDPOINT/$share/folder/large.bin?$sas" >/dev/null
for _ in $(seq 20); do
  status=$(storage file show -s $share -p copied.bin --query properties.copy.status)
  [ "$status" = pending ] || break
done
same "file copy start" "$status" success
echo "all passed"
