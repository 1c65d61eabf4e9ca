#!/usr/bin/env bash
# take-home.sh TARBALL: times what a person does first with the package, from empty folders and with an empty cache of npm:
# running and first blob, first test green, sizes, 1,000 resets of the library. docs/measurements/figures.md has the figures.
# node and npm are those of the PATH. It leaves nothing behind.
set -euo pipefail
tarball=$(realpath "$1")
examples=$(realpath "$(dirname "$0")/../../examples")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export npm_config_cache=$work/cache npm_config_fund=false npm_config_audit=false
port=21000
now() { node -p 'Date.now()'; }
mkdir "$work/run" "$work/test" "$work/only"
echo "node $(node --version); load average $(cut -d' ' -f1 /proc/loadavg 2>/dev/null)"

cd "$work/run"
cat >put.mjs <<'E2'
import { createHmac } from "node:crypto";
const account = "devstoreaccount1";
const key = Buffer.from("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==", "base64");
async function put(path, query, text, more) {
  const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-08-06", ...more };
  const named = Object.entries(headers).sort().map(([name, value]) => `${name}:${value}\n`);
  const length = text.length === 0 ? "" : text.length;
  const signed = `PUT\n\n\n${length}\n\n\n\n\n\n\n\n\n${named.join("")}/${account}/${account}${path}${query.replace("?", "\n").replace("=", ":")}`;
  const authorization = `SharedKey ${account}:${createHmac("sha256", key).update(signed).digest("base64")}`;
  const url = `http://127.0.0.1:${process.argv[2]}/${account}${path}${query}`;
  const { status } = await fetch(url, { method: "PUT", headers: { ...headers, authorization }, body: Buffer.from(text) });
  if (status !== 201) throw new Error(`${path}: ${status}`);
}
await put("/first", "?restype=container", "", {});
await put("/first/blob", "", "hello", { "x-ms-blob-type": "BlockBlob" });
E2
begun=$(now)
npx --yes --package "$tarball" stamp up -d --port-base $port >up.log 2>&1
running=$(now)
node put.mjs $port
echo "tarball to running: $((running - begun)) ms ($(grep -o 'ready after.*' up.log)); to the first blob: $(($(now) - begun)) ms"
npx --yes --package "$tarball" stamp down >/dev/null

cd "$work/test"
npm init -y >/dev/null
begun=$(now)
npm install --save-dev "$tarball" @azure/storage-blob >/dev/null 2>&1
installed=$(now)
cp -r "$examples/node-test" .
node --test node-test/notes.test.mjs >test.log
echo "npm i -D: $((installed - begun)) ms; to the first suite green: $(($(now) - begun)) ms ($(grep -E 'pass [0-9]+' test.log))"

cd "$work/only"
npm init -y >/dev/null
npm install "$tarball" >/dev/null 2>&1
echo "tarball $(stat -c %s "$tarball" 2>/dev/null || stat -f %z "$tarball") bytes; installed with its dependencies $(du -sk node_modules | cut -f1) KiB"
for _ in 1 2 3; do
  begun=$(now)
  ./node_modules/.bin/stamp --version >/dev/null
  echo "stamp --version: $(($(now) - begun)) ms, of which node -p is a part"
done
cat >resets.mjs <<'E2'
const begun = performance.now();
const { startStamp } = await import("stamp-storage");
const imported = performance.now();
const stamp = await startStamp();
const started = performance.now();
const mebibytes = () => Math.round(process.memoryUsage().rss / 1_048_576);
const times = [];
console.log(`import ${Math.round(imported - begun)} ms, start ${Math.round(started - imported)} ms, ${mebibytes()} MiB`);
for (let i = 1; i <= 1_000; i++) {
  const at = performance.now();
  await stamp.reset();
  times.push(performance.now() - at);
  if (i % 250 === 0) console.log(`${i} resets: ${mebibytes()} MiB`);
}
times.sort((a, b) => a - b);
const [p50, p99, most] = [499, 989, 999].map((at) => Math.round(times[at]));
console.log(`reset: p50 ${p50} ms, p99 ${p99} ms, most ${most} ms; ${Math.round(process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6)} s of processor time`);
await stamp.stop();
E2
node resets.mjs
echo "load average $(cut -d' ' -f1 /proc/loadavg 2>/dev/null)"
