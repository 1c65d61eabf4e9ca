/** Tests how the place of an account is given. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkListens, placeIn } from "./place.ts";

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

test("archive: a service at whose address nothing listens is told before anything is asked, and one that listens is not", async () => {
  const server = createServer((socket) => socket.destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const place = (blob: string, queue: string) => ({
    account: "acme",
    key: "QQ==",
    urls: { blob, queue, table: `http://127.0.0.1:${port}/acme` },
  });
  const here = `http://127.0.0.1:${port}/acme`;
  await checkListens(place(here, here));
  const closed = createServer();
  closed.listen(0, "127.0.0.1");
  await once(closed, "listening");
  const free = `http://127.0.0.1:${(closed.address() as { port: number }).port}/acme`;
  closed.close();
  await once(closed, "close");
  await assert.rejects(checkListens(place(here, free)), { message: new RegExp(`^nothing listens there: queue at ${free}; start it`) });
  server.close();
});
