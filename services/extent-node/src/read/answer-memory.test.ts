/** Memory of answers is used again when the answer was sent, and not before; a read that fails gives nothing back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import type { CallContext } from "@stamp/ports";
import { AnswerMemory, type LentMemory } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

const lengthBytes = 100_000;

function lent(memory: AnswerMemory): { lent: LentMemory; sent(): void } {
  let sent = (): void => assert.fail("nobody wanted to know");
  const whenSent = (told: () => void): void => {
    sent = told;
  };
  const own = memory.lend({ whenSent } as unknown as CallContext);
  assert.ok(own !== undefined);
  return { lent: own, sent: () => sent() };
}

test("memory of answers: it is free when the answer was sent, or at once if the answer lies elsewhere; never after a failure", () => {
  const memory = new AnswerMemory(new Simulation({ seed: 1 }).world("en").clock);
  const first = lent(memory);
  const bytes = first.lent.of(lengthBytes) as Uint8Array;
  first.lent.answered(bytes.subarray(16));
  const second = lent(memory);
  const failed = second.lent.of(lengthBytes) as Uint8Array;
  assert.ok(failed.buffer !== bytes.buffer, "the first answer was not sent yet");
  first.sent();
  const third = lent(memory);
  assert.ok(third.lent.of(lengthBytes)?.buffer === bytes.buffer);
  third.lent.answered(new Uint8Array(lengthBytes));
  assert.ok(lent(memory).lent.of(lengthBytes)?.buffer === bytes.buffer, "nobody used it");
  assert.ok(lent(memory).lent.of(lengthBytes)?.buffer !== failed.buffer);
});

test("memory of answers: small reads have memory of their own, and so has every read whose transport can't tell", () => {
  const memory = new AnswerMemory(new Simulation({ seed: 1 }).world("en").clock);
  const { lent: own } = lent(memory);
  assert.equal(own.of(100), undefined);
  own.answered(new Uint8Array(100));
  assert.equal(memory.lend({} as CallContext), undefined);
});

test("memory of answers: large reads at once, from files of every replica, are whole, and a block that rotted is found", async () => {
  const config = { scrubBytesPerSecond: 0 };
  const cluster = new Cluster(212, { simulation: { network: { roundTrip: true } }, config });
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const sizes = [100_000, 250_000, 120_000, 250_000, 90_000, 800_000];
    const offsets: bigint[] = [];
    let end = 0;
    for (const [i, size] of sizes.entries()) {
      const answer = unwrap(await cluster.append("en-1", id, end, [pattern(size, i)]));
      offsets.push(answer.offsetsBytes[0] as bigint);
      end = Number(answer.endBytes);
    }
    for (const name of names) unwrap(await cluster.seal(name, id, end));
    await cluster.sim.sleep(1_000);
    for (const name of names) {
      const reads = sizes.flatMap((size, i) => [0, 70_000].map((from) => ({ i, from, length: size - from })));
      const answers = await Promise.all(
        reads.map(({ i, from, length }) => cluster.read(name, id, (offsets[i] as bigint) + BigInt(from), length)),
      );
      for (const [at, { i, from, length }] of reads.entries()) {
        const expected = pattern(sizes[i] as number, i).subarray(from, from + length);
        assert.equal(
          Buffer.compare(unwrap(answers[at] as (typeof answers)[number]).payload, expected),
          0,
          `${name}, append ${i} from ${from}`,
        );
      }
    }
    const disk = cluster.sim.disk("en-1");
    const path = disk.paths().find((each) => each.endsWith(".extent")) ?? "";
    disk.corrupt(path, 8192 + Number(offsets[1]) + 150_000);
    // The memory of this read held the same block, as it was, before.
    assert.equal(reasonOf(await cluster.read("en-1", id, offsets[1] as bigint, 250_000)), "damaged");
  });
});

test("memory of answers: what nobody needs any more is let go after some seconds", async () => {
  const simulation = new Simulation({ seed: 213 });
  await simulation.run(async () => {
    const memory = new AnswerMemory(simulation.world("en").clock);
    const answers = Array.from({ length: 4 }, () => lent(memory));
    for (const { lent: own } of answers) own.answered(own.of(lengthBytes) as Uint8Array);
    for (const { sent } of answers) sent();
    const before = memory.freeBytes;
    assert.ok(before >= 4 * lengthBytes);
    await simulation.sleep(6_000);
    assert.equal(memory.freeBytes, before, "it was in use when these seconds began");
    await simulation.sleep(5_000);
    assert.equal(memory.freeBytes, 0);
  });
});
