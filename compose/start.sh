#!/bin/sh
# Starts what a container is for: the process that STAMP_SERVICE names, or without it a whole stamp with its data in /data.
# Arguments are options of `stamp up`.
if [ -n "$STAMP_SERVICE" ]; then
  # As the supervisor starts it: docs/design/processes.md.
  case $STAMP_SERVICE in front-end | partition-server) young=8 ;; *) young=4 ;; esac
  export MALLOC_MMAP_THRESHOLD_=524288 MALLOC_TRIM_THRESHOLD_=16777216 MALLOC_ARENA_MAX=2
  exec node --max-semi-space-size=$young "/stamp/programs/$STAMP_SERVICE.mjs"
fi

# A volume is one disk: more replicas on it, or lock services, would be lost with it. The volume remembers what it began with.
if [ ! -e "$STAMP_DATA_DIR/cluster.json" ]; then
  export STAMP_HTTP_BIND="${STAMP_HTTP_BIND:-0.0.0.0}"
  export STAMP_LOCK_SERVICES="${STAMP_LOCK_SERVICES:-1}" STAMP_STREAM_MANAGERS="${STAMP_STREAM_MANAGERS:-1}"
  export STAMP_PARTITION_MANAGERS="${STAMP_PARTITION_MANAGERS:-1}" STAMP_PARTITION_SERVERS="${STAMP_PARTITION_SERVERS:-1}"
  export STAMP_EXTENT_NODES="${STAMP_EXTENT_NODES:-1}" STAMP_COPIES="${STAMP_COPIES:-1}" STAMP_MIN_COPIES="${STAMP_MIN_COPIES:-1}"
  if [ -z "$STAMP_ACCOUNTS$AZURITE_ACCOUNTS" ]; then export STAMP_ALLOW_DEVELOPMENT_ACCOUNT="${STAMP_ALLOW_DEVELOPMENT_ACCOUNT:-true}"; fi
fi
# Whoever names accounts gets no other: at every start, because the volume remembers that the public key was served.
if [ -n "$STAMP_ACCOUNTS$AZURITE_ACCOUNTS" ]; then export STAMP_ALLOW_DEVELOPMENT_ACCOUNT="${STAMP_ALLOW_DEVELOPMENT_ACCOUNT:-false}"; fi
exec stamp up --print-logs "$@"
