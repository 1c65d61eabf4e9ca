import assert from "node:assert/strict";
import { test } from "node:test";
import { partitionServerConfigSchema, rowCacheBytesOf } from "./config.ts";

const mebibyte = 1024 * 1024;

test("partition server: the row cache follows the memory of the machine within bounds, unless it is configured", () => {
  const config = partitionServerConfigSchema.parse({});
  const mebibytes = [undefined, 512, 4_096, 8_192, 24_576, 65_536, 1_048_576].map(
    (memory) => rowCacheBytesOf(config, memory === undefined ? undefined : memory * mebibyte) / mebibyte,
  );
  assert.deepEqual(mebibytes, [64, 64, 512, 1_024, 3_072, 8_192, 8_192]);
  assert.equal(rowCacheBytesOf(partitionServerConfigSchema.parse({ rowCacheBytesMax: 8192 }), 65_536 * mebibyte), 8_192);
  assert.throws(() => partitionServerConfigSchema.parse({ rowCacheBytesMax: 100 }));
});
