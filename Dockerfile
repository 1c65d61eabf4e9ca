# One image: a whole stamp in one container (docker run -p 127.0.0.1:10000-10004:10000-10004 -v stamp:/data stamp), or one of
# its processes, which STAMP_SERVICE names, as docker-compose.yml has them. docs/guides/deploy.md.
# Behind a proxy with a CA of its own: docker build --secret id=ca,src=/path/to/ca.crt . (with compose: STAMP_BUILD_CA=/path/to/ca.crt).

# The base image. Pin what your registry gave you: docker build --build-arg BASE=node:26-bookworm-slim@sha256:… (SECURITY.md).
ARG BASE=node:26-bookworm-slim

# Fetches the dependencies of the command line, which are those of every service, and bundles the code.
FROM ${BASE} AS build
WORKDIR /stamp

# What was fetched for one build is there for the next.
COPY stamp.mjs package.json pnpm-lock.yaml pnpm-workspace.yaml .npmrc ./
COPY packages packages
COPY services services
RUN --mount=type=secret,id=ca,required=false --mount=type=cache,target=/store \
    if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi \
 && node stamp.mjs pnpm install --frozen-lockfile --store-dir /store --filter '@stamp/cli...' --filter '@stamp/bench...' --filter @stamp/console-page
COPY LICENSE ./
COPY docs docs
RUN node packages/cluster/src/package/make-image.ts /package

# Without package managers, headers, documentation, translations, zones and Perl, which no process of a stamp reads.
FROM ${BASE} AS system
COPY compose/smaller-node.mjs compose/start.sh /tmp/
RUN node /tmp/smaller-node.mjs \
 && install -m 755 /tmp/start.sh /usr/local/bin/stamp-container \
# `docker compose exec front-end-1 stamp status`
 && printf '#!/bin/sh\nexec node /stamp/stamp.mjs "$@"\n' > /usr/local/bin/stamp \
 && chmod 755 /usr/local/bin/stamp \
 && rm -rf /tmp/* /usr/local/lib/node_modules /usr/local/include /usr/local/share/doc /usr/local/share/man /opt/yarn-* \
      /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg /usr/local/bin/pnpm* \
      /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale /usr/share/zoneinfo /usr/lib/*/gconv \
      /var/lib/apt/lists /var/cache /usr/lib/apt /usr/lib/*/libapt-* /usr/bin/apt* \
      /usr/bin/perl* /usr/lib/*/perl* /usr/lib/*/libperl* /usr/share/perl* \
# Front-ends make what files mounted there say (docs/guides/init.md).
 && mkdir -p /stamp/init.d \
 && mkdir /data /secret /certificates /master-key /compile-cache \
 && chown node:node /data /secret /certificates /master-key /compile-cache && chmod 700 /data /secret /certificates /master-key

# One layer: what the stages before have removed is in none.
FROM scratch
ARG REVISION=""
LABEL org.opencontainers.image.title="stamp" \
      org.opencontainers.image.description="A storage cluster that Azure Storage SDKs work against" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.documentation="/stamp/docs/guides/deploy.md"
COPY --from=system / /
COPY --from=build /package /stamp
COPY compose/health.mjs /stamp/health.mjs
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NODE_ENV=production
WORKDIR /stamp
USER node
# Code compiled once, here: a container starts in half the time. Its root may be read-only. The seed, which holds for
# these processes alone, lets two builds give the same bytes.
ENV STAMP_ROOT=/stamp NODE_COMPILE_CACHE=/compile-cache
RUN for role in lock-service extent-node stream-manager partition-manager partition-server front-end location-service; do \
      node --random-seed=1 "programs/$role.mjs" --help > /dev/null; \
    done \
 && node --random-seed=1 stamp.mjs status --help > /dev/null && node --random-seed=1 stamp.mjs up --help > /dev/null
VOLUME /data
ENV STAMP_DATA_DIR=/data STAMP_INIT_FILE=/stamp/init.d
HEALTHCHECK --interval=10s --timeout=8s --retries=12 --start-period=60s --start-interval=1s CMD ["node", "/stamp/health.mjs"]
CMD ["stamp-container"]
