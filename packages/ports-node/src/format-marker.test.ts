/** The marker of a folder: frozen bytes, and the table of docs/formats/versions.md against the code. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { formatVersions } from "@stamp/base";
import { decodeFormatMarker, encodeFormatMarker } from "@stamp/ports";
import { NodeDigest } from "./digest.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array): number => digest.crc32c(bytes);
const root = new URL("../../../", import.meta.url);

test("format marker: frozen bytes; a truncated or flipped byte is no marker", () => {
  const marker = { journal: { version: 2, release: "0.1.0" }, extent: { version: 1, release: "0.1.0" } };
  const url = new URL("tests/golden/formats/v1/marker", root);
  const bytes = encodeFormatMarker(marker, crc32c);
  if (process.env.STAMP_WRITE_GOLDEN) {
    mkdirSync(new URL(".", url), { recursive: true });
    writeFileSync(url, bytes);
  }
  const frozen = new Uint8Array(readFileSync(url));
  assert.deepEqual(new Uint8Array(bytes), frozen);
  assert.deepEqual(decodeFormatMarker(frozen, crc32c), marker);
  for (let i = 0; i < frozen.length; i++) {
    assert.equal(decodeFormatMarker(frozen.subarray(0, i), crc32c), undefined, `cut at ${i}`);
    const flipped = Uint8Array.from(frozen);
    flipped[i] = (flipped[i] ?? 0) ^ 1;
    assert.equal(decodeFormatMarker(flipped, crc32c), undefined, `flipped at ${i}`);
  }
});

test("format versions: the table for people is the one in the code", () => {
  const page = readFileSync(new URL("docs/formats/versions.md", root), "utf8");
  const rows = [...page.matchAll(/^\| ([a-z-]+) \| (\d+) \|/gm)].map(([, name, version]) => [name, Number(version)]);
  assert.deepEqual(Object.fromEntries(rows), formatVersions);
});
