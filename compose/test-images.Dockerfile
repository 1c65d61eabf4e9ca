# etcd and HAProxy in one image, of Debian's packages: what tests/drills/compose-ha.slow.ts takes where the images of compose.ha.yml can't be pulled.
FROM node:26-bookworm-slim
RUN apt-get -qq update \
 && apt-get -qq install -y --no-install-recommends etcd-client etcd-server haproxy wget > /dev/null \
 && rm -rf /var/lib/apt/lists/*
