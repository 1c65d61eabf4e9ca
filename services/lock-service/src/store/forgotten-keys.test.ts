/** Keys of accounts that a location service of a release before has recorded: in no file of the lock service's folder after its next start. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { allRules, unwrap, utf8 } from "@stamp/base";
import { silentLogger, type World } from "@stamp/ports";
import { lockServiceSchema } from "../config.ts";
import { quickFolder, storesIn } from "../testing/real-stores.ts";
import { openedStore } from "./opened-store.ts";
import { LockStore } from "./store.ts";

test("lock service: after a start no file has the keys that a record of an account had before it was written again", async (t) => {
  const folder = mkdtempSync(join(quickFolder, "stamp-forgotten-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const clock = { monotonicMs: () => 0, wallMs: () => 0 };
  const world = { ...storesIn(folder), logger: silentLogger, rules: allRules, clock } as unknown as World;
  const secret = "a-key-in-plain-text";
  const filesWith = (text: string): string[] =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
      const path = join(folder, name);
      return statSync(path).isFile() && readFileSync(path).includes(text);
    });
  const written = unwrap(await LockStore.open(world));
  await written.initialise("2b1f3c04-7f5e-4d0a-9a57-000000000001");
  const record = (value: string, version: number) =>
    written.commit([], [["location/accounts/acme", { value: utf8(value), version }]], version);
  await record(`{"name":"acme","newKeys":["${secret}"]}`, 1);
  await record('{"name":"acme"}', 2);
  await written.close();
  assert.notDeepEqual(filesWith(secret), []);
  const store = unwrap(await LockStore.open(world));
  const room = { refusal: async () => undefined, giveRoom: async () => true, broken: () => {} };
  unwrap(await openedStore(world, lockServiceSchema.parse({}), store, room));
  assert.deepEqual(filesWith(secret), []);
  assert.deepEqual(unwrap(await store.key("location/accounts/acme")), { value: utf8('{"name":"acme"}'), version: 2 });
  await store.close();
  const again = await LockStore.open(world);
  assert.ok(again.ok, "the proof of the store holds");
  assert.equal(unwrap(await again.value.page("location/", "", 10)).entries.length, 1);
  await again.value.close();
});
