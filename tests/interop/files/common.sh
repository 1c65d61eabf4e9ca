# Sourced by the scripts of this folder. Each gets:
#   STAMP_ACCOUNT, STAMP_KEY  name and key of the account      STAMP_FILE_ENDPOINT  URL of the Files service and account
#   SCRATCH                   an empty folder                  TOOLS                the folder of the programs
set -euo pipefail
cd "$SCRATCH"
export HOME="$SCRATCH" PATH="$TOOLS:$PATH"
mkdir -p data/deep/er "data/with blank"
for i in $(seq 20); do echo "line $i of $RANDOM" >"data/deep/er/$i.txt"; done
head -c 9437184 /dev/urandom >data/large.bin
: >data/empty
echo plus >"data/with blank/a+b%20c ü.txt"
