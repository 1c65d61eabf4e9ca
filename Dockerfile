# One image for every process of a stamp; docker-compose.yml says which one a container runs.
# Behind a proxy with a CA of its own: docker build --secret id=ca,src=/path/to/ca.crt .
FROM node:26-bookworm-slim

ENV NODE_ENV=production
WORKDIR /stamp

# Dependencies first, by the lock file alone: this layer is kept while only code changes.
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml .npmrc ./
RUN --mount=type=secret,id=ca,required=false \
    if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi \
 && npm install --global --no-audit --no-fund pnpm@10.34.9 \
 && pnpm fetch --prod \
 && rm -rf ~/.npm ~/.cache

COPY packages packages
COPY services services
RUN pnpm install --prod --frozen-lockfile --offline

# `docker compose exec front-end-1 stamp status`
RUN printf '#!/bin/sh\nexec node /stamp/packages/cli/src/main.ts "$@"\n' > /usr/local/bin/stamp \
 && chmod 755 /usr/local/bin/stamp \
 && mkdir /data /secret /compile-cache && chown node:node /data /secret /compile-cache && chmod 700 /secret

USER node
# Code compiled once, here: a container starts in half the time.
ENV NODE_COMPILE_CACHE=/compile-cache
RUN for main in services/*/src/main.ts; do node "$main" --help > /dev/null; done \
 && node packages/cli/src/main.ts status --help > /dev/null
VOLUME /data
ENV STAMP_DATA_DIR=/data

# Which service: lock-service, extent-node, stream-manager, partition-manager, partition-server, front-end.
ENV STAMP_SERVICE=front-end
# As the supervisor starts them: docs/decisions/0090-buffers-count-as-heap.md.
ENV MALLOC_MMAP_THRESHOLD_=524288 MALLOC_TRIM_THRESHOLD_=16777216 MALLOC_ARENA_MAX=2
CMD ["sh", "-c", "exec node --max-semi-space-size=4 /stamp/services/$STAMP_SERVICE/src/main.ts"]
