#!/usr/bin/env bash
# DVC: push of two versions of a tracked folder, pull of each into an empty cache, garbage collection of the first.
. "$(dirname "$0")/common.sh"
need git dvc
need_python dvc_azure
dvc --version
export DVC_NO_ANALYTICS=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@localhost
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@localhost
mkdir project && cd project && git init -q
make_data data && cp -r data ../first
dvc init -q
dvc remote add -q -d stamp "azure://$CONTAINER/store"
dvc remote modify -q --local stamp connection_string "$AZURE_STORAGE_CONNECTION_STRING"
dvc add -q data && git add . && git commit -qm first
dvc push -q
rm data/deep/er/3.txt && head -c 2000000 /dev/urandom >data/more.bin
dvc add -q data && git commit -qam second
dvc push -q
cp -r data ../second && rm -rf data .dvc/cache .dvc/tmp
git checkout -q HEAD~1 && dvc pull -q && diff -r data ../first
git checkout -q - && dvc gc -q -f -w -c
rm -rf data .dvc/cache .dvc/tmp
dvc pull -q && diff -r data ../second
