# One image for every process of a stamp; docker-compose.yml says which one a container runs.
# Behind a proxy with a CA of its own: docker build --secret id=ca,src=/path/to/ca.crt . (with compose: STAMP_BUILD_CA=/path/to/ca.crt).

# The base image. Pin what your registry gave you: docker build --build-arg BASE=node:26-bookworm-slim@sha256:… (SECURITY.md).
ARG BASE=node:26-bookworm-slim

# Fetches the dependencies of the command line, which are those of every service, and compiles the code once.
FROM ${BASE} AS build
WORKDIR /stamp

# Dependencies first, by the lock file alone: this layer is kept while only code changes.
COPY stamp.mjs package.json pnpm-lock.yaml pnpm-workspace.yaml .npmrc ./
RUN --mount=type=secret,id=ca,required=false \
    if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi \
 && node stamp.mjs pnpm fetch --prod

COPY packages packages
COPY services services
# From what was fetched, only what the command line and the services need. Binaries of other systems and types are for nobody here.
RUN rm -rf node_modules \
 && node stamp.mjs pnpm install --prod --frozen-lockfile --offline --filter '@stamp/cli...' \
 && find node_modules/.pnpm -path '*/prebuilds/*' -type d ! -name "linux-$(node -p process.arch)" -prune -exec rm -rf {} + \
 && find node_modules/.pnpm -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' \) -delete \
 && rm -rf node_modules/.pnpm/zod@*/node_modules/zod/src .tools stamp.mjs

# Without package managers, headers, documentation, translations and Perl, which no process of a stamp reads.
FROM ${BASE} AS system
COPY compose/smaller-node.mjs /tmp/
RUN node /tmp/smaller-node.mjs \
 && rm -rf /tmp/* /usr/local/lib/node_modules /usr/local/include /usr/local/share/doc /usr/local/share/man /opt/yarn-* \
      /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg /usr/local/bin/pnpm* \
      /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale /usr/lib/*/gconv /var/lib/apt/lists /var/cache \
      /usr/bin/perl* /usr/lib/*/perl* /usr/lib/*/libperl* /usr/share/perl* \
# `docker compose exec front-end-1 stamp status`
 && printf '#!/bin/sh\nexec node /stamp/packages/cli/src/main.ts "$@"\n' > /usr/local/bin/stamp \
 && chmod 755 /usr/local/bin/stamp \
 && mkdir /data /secret /certificates /master-key /compile-cache \
 && chown node:node /data /secret /certificates /master-key /compile-cache && chmod 700 /data /secret /certificates /master-key

# One layer: what the stages before have removed is in none.
FROM scratch
COPY --from=system / /
COPY --from=build /stamp /stamp
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NODE_ENV=production
WORKDIR /stamp
USER node
# Code compiled once, here: a container starts in half the time. Its root may be read-only.
ENV NODE_COMPILE_CACHE=/compile-cache
RUN for main in services/*/src/main.ts; do node "$main" --help > /dev/null; done \
 && node packages/cli/src/main.ts status --help > /dev/null
VOLUME /data
ENV STAMP_DATA_DIR=/data

# Which service: lock-service, extent-node, stream-manager, partition-manager, partition-server, front-end, location-service.
ENV STAMP_SERVICE=front-end
# As the supervisor starts them: docs/decisions/0090-buffers-count-as-heap.md.
ENV MALLOC_MMAP_THRESHOLD_=524288 MALLOC_TRIM_THRESHOLD_=16777216 MALLOC_ARENA_MAX=2
CMD ["sh", "-c", "case $STAMP_SERVICE in front-end|partition-server) young=8;; *) young=4;; esac; exec node --max-semi-space-size=$young /stamp/services/$STAMP_SERVICE/src/main.ts"]
