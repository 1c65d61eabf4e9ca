# Sourced by the scripts of this folder. Each gets:
#   ACCOUNT, KEY   name and key of a storage account      CONTAINER  name of an empty container
#   ENDPOINT       URL of the Blob service and account    AUTHORITY  PEM file that certifies ENDPOINT
#   PROXY          URL of a proxy whose tunnels all lead to the Blob service
#   SCRATCH        an empty folder                        TOOLS      the folder that install.sh filled
set -euo pipefail
cd "$SCRATCH"
export PATH="$TOOLS/py/bin:$TOOLS/barman/bin:$PATH" PYTHONPATH="$TOOLS/py:$TOOLS/barman" HOME="$SCRATCH"
export SSL_CERT_FILE="$AUTHORITY" REQUESTS_CA_BUNDLE="$AUTHORITY"
keys="AccountName=$ACCOUNT;AccountKey=$KEY"
export AZURE_STORAGE_CONNECTION_STRING="DefaultEndpointsProtocol=https;$keys;BlobEndpoint=$ENDPOINT"

# Ends the script as skipped, with the reason.
skip() { echo "$1 is not installed" && exit 77; }
# need PROGRAM...: skips the script when a program is missing. need_python MODULE...: the same for modules of Python.
need() { for program in "$@"; do command -v "$program" >/dev/null || skip "$program"; done; }
need_python() { for module in "$@"; do python -c "import $module" 2>/dev/null || skip "Python's $module"; done; }
python() { "$TOOLS/python" "$@"; }

# make_data FOLDER: 40 small files, one of 9 MiB, an empty one, a name with blanks, a plus, a percent sign, an umlaut.
make_data() {
  mkdir -p "$1/deep/er" "$1/with blank"
  for i in $(seq 40); do echo "line $i of $RANDOM" >"$1/deep/er/$i.txt"; done
  head -c 9437184 /dev/urandom >"$1/large.bin"
  : >"$1/empty"
  echo plus >"$1/with blank/a+b%20c ü.txt"
}

# PostgreSQL refuses to run as root: user postgres runs it then, and owns SCRATCH.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
postgres_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
sql() { as_postgres "$postgres_bin/psql" -h "$SCRATCH" -d postgres -Atqc "$1"; }
# A server that a failing script leaves would keep SCRATCH.
trap 'stop_postgres 2>/dev/null || true; kill $(jobs -p) 2>/dev/null || true' EXIT
# Returns when the server has replayed the whole archived log: it serves reads before that.
start_postgres() {
  as_postgres "$postgres_bin/pg_ctl" -D data -w -t 120 -l postgres.log start >/dev/null || { cat postgres.log; return 1; }
  for _ in $(seq 120); do [ "$(sql 'SELECT pg_is_in_recovery()')" = f ] && return; sleep 1; done
  cat postgres.log
  return 1
}
stop_postgres() { [ ! -e data/postmaster.pid ] || as_postgres "$postgres_bin/pg_ctl" -D data -m fast -w stop >/dev/null; }
# make_postgres COMMAND: makes and starts a database in SCRATCH/data that archives its log with COMMAND.
make_postgres() {
  [ -x "$postgres_bin/postgres" ] || skip "PostgreSQL's server"
  [ "$(id -u)" != 0 ] || chown -R postgres "$SCRATCH"
  as_postgres "$postgres_bin/initdb" -D data -A trust -U postgres --no-sync >/dev/null
  printf "%s = '%s'\n" listen_addresses '' unix_socket_directories "$SCRATCH" \
    archive_mode on archive_command "$1" >>data/postgresql.conf
  start_postgres
}
# Number of rows and a digest of all rows of table t.
rows() { sql "SELECT count(*), md5(string_agg(i || v, ',' ORDER BY i)) FROM t"; }
