/** Parts of a scan: bounded by rows and by the bytes that rows refer to, at the bounds of PartitionNames. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Outcome, ok, refused, utf8 } from "@stamp/base";
import { Simulation } from "@stamp/virtual-time";
import type { Row } from "../scan-range.ts";
import type { SeedPart } from "./apply-seed.ts";
import { RangeSeeder, type ScannedRange, type SeederOptions } from "./range-seeder.ts";

/** A row refers to as many bytes as its value says. */
const row = (key: string, dataBytes: number): Row => [utf8(key), utf8(String(dataBytes))];
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Seeds the rows and returns the parts that the other stamp took. */
async function seeded(rows: readonly Row[], options: Partial<SeederOptions>, take: (part: SeedPart) => Outcome<unknown> = () => ok()) {
  const sim = new Simulation({ seed: 1, rules: allRules });
  const range = {
    followers: { lastTicket: 9, lastSequence: 9 },
    fences: { lead: () => 0 },
    snapshot: () => ({ sequence: 9, close: () => undefined }),
    scan: async function* ({ gte, lt }: { gte: Uint8Array; lt: Uint8Array }) {
      for (const one of rows) if (textOf(one[0]) >= textOf(gte) && textOf(one[0]) < textOf(lt)) yield one;
    },
  } as unknown as ScannedRange;
  const parts: SeedPart[] = [];
  const link = {
    seed: async (part: SeedPart) => {
      const taken = take(part);
      if (taken.ok) parts.push(part);
      return taken;
    },
  };
  await sim.run(async () => {
    const seeder = new RangeSeeder(sim.world("primary"), range, link, {
      epoch: 1,
      keys: { low: utf8("a"), high: utf8("z") },
      nameOf: (key) => key.subarray(0, 1),
      dataBytesOf: (value) => Number(textOf(value)),
      ...options,
    });
    await seeder.run(utf8("a"), new AbortController().signal);
  });
  return parts;
}

const shapeOf = (parts: readonly SeedPart[]): string[] =>
  parts.map(({ rows, piece }) => `${rows.map(([key]) => textOf(key)).join("+")}${piece === undefined ? "" : piece.isLast ? "." : ".."}`);

test("parts of a scan: PartitionNames go together up to the bound of their data; a larger one goes alone, and whole", async () => {
  const rows = [row("a1", 40), row("b1", 30), row("b2", 20), row("c1", 20), row("d1", 900), row("d2", 900), row("e1", 1)];
  assert.deepEqual(shapeOf(await seeded(rows, { partDataBytesMax: 100 })), ["a1+b1+b2", "c1", "d1+d2", "e1"]);
  assert.deepEqual(shapeOf(await seeded(rows, {})), ["a1+b1+b2+c1+d1+d2+e1"]);
});

test("parts of a scan: one that fails costs no second copy of the parts before it", async () => {
  const rows = ["a", "b", "c", "d", "e"].map((key) => row(key, 80));
  let copied = 0;
  let calls = 0;
  const parts = await seeded(rows, { partDataBytesMax: 100 }, (part) => {
    copied += part.rows.reduce((sum, [, value]) => sum + Number(textOf(value)), 0);
    return ++calls % 2 === 0 ? ok() : refused("aborted", "badPlace", "the first bytes are gone");
  });
  assert.deepEqual(shapeOf(parts), ["a", "b", "c", "d", "e"]);
  assert.equal(copied, 2 * 5 * 80);
});

test("parts of a scan: pieces of a PartitionName that is larger than a part are bounded by their data, too", async () => {
  const rows = [row("a1", 1), row("b1", 10), row("b2", 10), row("b3", 99), row("b4", 10), row("b5", 10), row("c1", 1)];
  assert.deepEqual(shapeOf(await seeded(rows, { partRowsMax: 2, partDataBytesMax: 100 })), ["a1", "b1+b2..", "b3..", "b4+b5.", "c1"]);
});
