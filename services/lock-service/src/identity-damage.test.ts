/**
 * Damage to the identity store of a process: the process starts, and waits for the end of its old lease. The store carries no proof and no mark
 * (docs/formats/store-proof.md): a lost end gives an incarnation that is too low, which must never end a lease early. An extent node that does not
 * know its number of starts refuses.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { allRules, unwrap } from "@stamp/base";
import { LeaseTable } from "@stamp/lease";
import { openIdentity } from "@stamp/ports";
import { quickFolder, storesIn } from "./testing/real-stores.ts";

const starts = 4;
const termMs = 1_000;

interface Started {
  readonly id: string;
  readonly incarnation: number;
  readonly instance: string;
}

async function start(folder: string, kept: number | undefined): Promise<Started> {
  const identity = await openIdentity({ ...storesIn(folder), rules: allRules }, { kept });
  await identity.close();
  return { id: identity.id, incarnation: identity.incarnation, instance: identity.instance };
}

const request = ({ id, incarnation, instance }: Started) => ({
  name: "stream-manager",
  holder: "sm",
  identity: id,
  instance,
  incarnation,
  address: "a:1",
  termMs,
});

/** Whether `next` gets the lease at once that `last` holds. */
function takesOver(last: Started, next: Started): boolean {
  const table = new LeaseTable([], 0, allRules);
  const first = unwrap(table.acquire(request(last), 0).outcome);
  const early = table.acquire(request(next), termMs - 1).outcome;
  if (early.ok) return true;
  assert.equal(early.failure.reason, "leaseHeld");
  const late = unwrap(table.acquire(request(next), termMs).outcome);
  assert.ok(late.epoch > first.epoch, "after its end the lease is had, with a higher epoch");
  return false;
}

test("identity store: whatever byte is flipped or cut off, the process waits for its old lease, or is the next incarnation", async (t) => {
  const good = mkdtempSync(join(quickFolder, "stamp-identity-good-"));
  t.after(() => rmSync(good, { recursive: true, force: true }));
  let last: Started = await start(good, 0);
  for (let i = 1; i < starts; i++) last = await start(good, 0);
  assert.equal(last.incarnation, starts);
  const damages = readdirSync(join(good, "stores/identity")).flatMap((name) => {
    const path = `stores/identity/${name}`;
    const size = statSync(join(good, path)).size;
    const step = Math.max(1, Math.floor(size / 8));
    return Array.from({ length: Math.ceil(size / step) }, (_, i) => i * step).flatMap((at) => [
      { path, at, cut: false },
      { path, at, cut: true },
    ]);
  });
  const seen = { refused: 0, waits: 0, next: 0 };
  for (const { path, at, cut } of [undefined, ...damages].map((each) => each ?? { path: "", at: 0, cut: false })) {
    const folder = mkdtempSync(join(quickFolder, "stamp-identity-"));
    try {
      cpSync(good, folder, { recursive: true });
      if (path !== "") {
        const bytes = readFileSync(join(folder, path));
        bytes[at] = (bytes[at] as number) ^ (1 << (at % 8));
        writeFileSync(join(folder, path), cut ? bytes.subarray(0, at) : bytes);
      }
      const strict = mkdtempSync(join(quickFolder, "stamp-identity-strict-"));
      cpSync(folder, strict, { recursive: true });
      const refused: boolean = await start(strict, undefined).then(
        () => false,
        () => true,
      );
      rmSync(strict, { recursive: true, force: true });
      if (refused) seen.refused += 1;
      const next: Started = await start(folder, 0);
      const told = `${path} at ${at}, ${cut ? "cut" : "flipped"}: ${JSON.stringify(next)}`;
      assert.ok(!refused || next.id !== last.id, told);
      const isNext: boolean = next.id === last.id && next.incarnation === last.incarnation + 1;
      assert.ok(next.incarnation <= last.incarnation + 1, told);
      assert.equal(takesOver(last, next), isNext, told);
      seen[isNext ? "next" : "waits"] += 1;
      // An extent node keeps the number in a file too: its reports are never older.
      assert.ok((await start(folder, last.incarnation + 1)).incarnation > last.incarnation + 1, told);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  t.diagnostic(`${damages.length} damages: ${JSON.stringify(seen)}`);
  assert.ok(seen.refused > 0 && seen.waits > 0 && seen.next > 0, JSON.stringify(seen));
});
