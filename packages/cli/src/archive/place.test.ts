/** Tests how the place of an account is given. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { placeIn } from "./place.ts";

test("archive: a connection string is read from a file, and what is wrong with it is told without its key", (context) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-place-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "connection");
  writeFileSync(path, "AccountName=acme;AccountKey=c2VjcmV0;EndpointSuffix=example.org\n");
  const { account, key, urls } = placeIn(`@${path}`);
  assert.deepEqual([account, key, urls.blob], ["acme", "c2VjcmV0", "https://acme.blob.example.org"]);
  writeFileSync(path, "AccountKey=c2VjcmV0");
  assert.throws(() => placeIn(`@${path}`), { message: "the connection string has no AccountName" });
  assert.throws(() => placeIn(`@${path}.none`), /the file of the connection string can't be read: ENOENT/);
});
