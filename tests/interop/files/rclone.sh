#!/usr/bin/env bash
# rclone's azurefiles: sync up, check, change, move, list, read a part, sync down, remove.
. "$(dirname "$0")/common.sh"
rclone version | head -1
touch rclone.conf
export RCLONE_CONFIG="$SCRATCH/rclone.conf" RCLONE_CONFIG_S_TYPE=azurefiles RCLONE_CONFIG_S_ENDPOINT="$STAMP_FILE_ENDPOINT"
export RCLONE_CONFIG_S_ACCOUNT="$STAMP_ACCOUNT" RCLONE_CONFIG_S_KEY="$STAMP_KEY" RCLONE_CONFIG_S_SHARE_NAME="$STAMP_SHARE"
# Says FAIL with the words that follow, and ends.
fail() { echo "FAIL $*" && exit 1; }
# In the root of a share, rclone 1.76 takes the folder of a file for one that is named ".".
rclone copy --retries 1 data s:top/up
rclone check --download data s:top/up
touch -d 2020-02-03T04:05:06.1234567Z data/empty
echo changed >data/deep/er/1.txt
rm data/deep/er/2.txt
rclone sync --retries 1 data s:top/up
rclone check --download data s:top/up
rclone lsl s:top/up/empty | grep -q "2020-02-03 .*:05:06.1234567" || fail "time of the file: $(rclone lsl s:top/up/empty)"
[ "$(rclone lsf -R --files-only s:top/up | wc -l)" = 22 ] || fail "files: $(rclone lsf -R s:top/up)"
cmp <(rclone cat --offset 5000000 --count 1000 s:top/up/large.bin) <(tail -c +5000001 data/large.bin | head -c 1000)
echo streamed | rclone rcat --azurefiles-max-stream-size 1Mi s:top/streamed
[ "$(rclone cat s:top/streamed)" = streamed ] || fail "rcat: $(rclone cat s:top/streamed)"
rclone moveto s:top/streamed s:top/up/moved
rclone copyto s:top/up/moved s:top/up/copied
[ "$(rclone cat s:top/up/copied)" = streamed ] || fail "copyto: $(rclone cat s:top/up/copied)"
rclone moveto s:top/up s:top/renamed
rclone delete s:top/renamed --include "/{moved,copied}"
rclone copy --retries 1 s:top/renamed back
diff -r data back
rclone purge s:top/renamed
[ -z "$(rclone lsf s:top)" ] || fail "left: $(rclone lsf s:top)"
echo "all passed"
