/** `openComplete`: what was acknowledged is there or the store is refused, and no crash makes a good store look bad. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { allRules, type RuleName, rulesWithout, unwrap, utf8 } from "@stamp/base";
import {
  type CompleteStore,
  type CompleteStoreWorld,
  DiskError,
  decodeMarkFile,
  decodeProof,
  encodeMarkFile,
  encodeProof,
  type KeyRange,
  type KeyValue,
  type KeyValueOperation,
  markOffset,
  markPath,
  markSlotBytes,
  type OpenCompleteOptions,
  openComplete,
  type StoreProof,
  silentLogger,
} from "@stamp/ports";
import { Simulation } from "../simulation.ts";
import { digest } from "./digest.ts";

const put = (key: string, value: string): KeyValueOperation => ({ kind: "put", key: utf8(key), value: utf8(value) });
const text = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);

/** A store and a disk that a test can hurt. */
class Stage {
  readonly values = new Map<string, Uint8Array>();
  readonly files = new Map<string, Uint8Array>();
  /** The next batch throws: it got in or not. */
  failNext: "applied" | "lost" | undefined;

  open(off: readonly RuleName[] = [], options: OpenCompleteOptions = {}): ReturnType<typeof openComplete> {
    const { files } = this;
    const whole = (path: string): Uint8Array => files.get(path) ?? new Uint8Array(0);
    const world = {
      keyValue: { open: async () => ({ kind: "opened", store: this.#store() }), destroy: async () => {} },
      disk: {
        readWhole: async (path: string) => files.get(path),
        writeAtomically: async (path: string, content: Uint8Array) => void files.set(path, content.slice()),
        open: async (path: string) => ({
          write: async (offset: number, chunks: readonly Uint8Array[]) => whole(path).set(chunks[0] as Uint8Array, offset),
          sync: async () => {},
          close: async () => {},
        }),
      },
      digest,
      random: { bytes: (length: number) => new Uint8Array(length).fill(files.size + 1) },
      rules: off.length === 0 ? allRules : rulesWithout(...off),
      logger: silentLogger,
    } as unknown as CompleteStoreWorld;
    return openComplete(world, "s", options);
  }

  #store(): KeyValue {
    const { values } = this;
    const hex = (key: Uint8Array): string => Buffer.from(key).toString("latin1");
    return {
      get: async (key) => values.get(hex(key)),
      batch: async (operations) => {
        const failed = this.failNext;
        this.failNext = undefined;
        if (failed !== "lost") {
          for (const each of operations) {
            if (each.kind === "put") values.set(hex(each.key), each.value);
            else values.delete(hex(each.key));
          }
        }
        if (failed !== undefined) throw new Error("the disk is full");
      },
      range: async function* (range: KeyRange) {
        const keys = [...values.keys()].sort().slice(0, range.limit);
        for (const key of keys) yield [Buffer.from(key, "latin1"), values.get(key) as Uint8Array] as const;
      },
      close: async () => {},
    };
  }
}

async function filled(): Promise<Stage> {
  const stage = new Stage();
  const store = unwrap(await stage.open());
  await store.batch([put("a", "1"), put("b", "1")], { sync: true });
  await store.batch([put("b", "2"), put("c", "3"), put("c", "4"), { kind: "delete", key: utf8("a") }], { sync: true });
  await store.close();
  return stage;
}

async function refusal(stage: Stage, off: readonly RuleName[] = []): Promise<string | undefined> {
  const opened = await stage.open(off);
  return opened.ok ? undefined : opened.failure.message;
}

test("complete store: what was written is there, the proof is not shown", async () => {
  const stage = await filled();
  const store = unwrap(await stage.open());
  assert.equal(text(await store.get(utf8("b"))), "2");
  const shown: string[] = [];
  for await (const [key] of store.range({})) shown.push(text(key) as string);
  const all: string[] = [];
  for await (const [key] of store.everything()) all.push(text(key) as string);
  assert.deepEqual(
    [shown, all],
    [
      ["b", "c"],
      ["b", "c"],
    ],
  );
});

test("complete store: a lost key, a changed value and a foreign key are refused; not without storeComplete", async () => {
  const hurts: Record<string, (stage: Stage) => void> = {
    lost: ({ values }) => values.delete("b"),
    changed: ({ values }) => values.set("b", utf8("3")),
    older: ({ values }) => values.set("b", utf8("1")),
    foreign: ({ values }) => values.set("d", utf8("5")),
    swapped: ({ values }) => {
      values.set("b", utf8("4"));
      values.set("c", utf8("2"));
    },
  };
  for (const [name, hurt] of Object.entries(hurts)) {
    const stage = await filled();
    hurt(stage);
    assert.match((await refusal(stage)) ?? "opened", /something in it was lost or changed/, name);
    assert.equal(await refusal(stage, ["storeComplete"]), undefined, name);
  }
});

test("complete store: changed while it is in use: whoever reads everything is told at the end", async () => {
  const stage = await filled();
  const store = unwrap(await stage.open());
  stage.values.set("b", utf8("3"));
  await assert.rejects(async () => {
    for await (const _ of store.everything());
  }, /changed on its disk while it was in use/);
});

test("complete store: one that lost its end is refused; not without storeNotBehind", async () => {
  const stage = new Stage();
  const store = unwrap(await stage.open());
  await store.batch([put("a", "1")], { sync: true });
  const before = new Map(stage.values);
  await store.batch([put("a", "2")], { sync: true });
  for (const left of [before, new Map()]) {
    stage.values.clear();
    for (const [key, value] of left) stage.values.set(key, value);
    assert.match((await refusal(stage)) ?? "opened", /has lost its end|has lost everything/);
    assert.equal(await refusal(stage, ["storeNotBehind"]), undefined);
  }
});

test("complete store: the mark: gone, of another store or unreadable is refused; one torn slot is not", async () => {
  const path = markPath("s");
  const gone = await filled();
  gone.files.delete(path);
  assert.match((await refusal(gone)) ?? "opened", /is gone/);
  const other = await filled();
  const { lineage, ...proof } = unwrap(decodeMarkFile(digest, other.files.get(path) as Uint8Array));
  other.files.set(path, encodeMarkFile(digest, { ...proof, lineage: lineage.map((byte) => byte ^ 1) }));
  assert.match((await refusal(other)) ?? "opened", /of another store/);
  for (const torn of [[0], [1], [0, 1]]) {
    const stage = await filled();
    for (const slot of torn) stage.files.get(path)?.fill(7, slot * markSlotBytes, slot * markSlotBytes + 20);
    const why = await refusal(stage);
    if (torn.length === 1) assert.equal(why, undefined);
    else assert.match(why ?? "opened", /is damaged/);
    // It is whole again.
    if (torn.length === 1) assert.equal(unwrap(decodeMarkFile(digest, stage.files.get(path) as Uint8Array)).sequence, 2);
  }
});

test("complete store: a slot that is torn while it is written leaves that of the batch before", async () => {
  const stage = await filled();
  const store = unwrap(await stage.open());
  const file = (): Uint8Array => stage.files.get(markPath("s")) as Uint8Array;
  for (let sequence = 3; sequence < 7; sequence++) {
    await store.batch([put("a", String(sequence))], { sync: true });
    const torn = file().slice();
    torn.fill(7, markOffset(sequence), markOffset(sequence) + 512);
    assert.equal(unwrap(decodeMarkFile(digest, file())).sequence, sequence);
    assert.equal(unwrap(decodeMarkFile(digest, torn)).sequence, sequence - 1);
  }
});

test("complete store: after a batch that failed, and got in or not, the proof is that of what is there", async () => {
  for (const failed of ["applied", "lost"] as const) {
    const stage = await filled();
    const store = unwrap(await stage.open());
    stage.failNext = failed;
    await assert.rejects(store.batch([put("x", "1")], { sync: true }));
    await store.batch([put("y", "1")], { sync: true });
    const again = unwrap(await stage.open());
    assert.equal(text(await again.get(utf8("x"))), failed === "applied" ? "1" : undefined);
    assert.equal(text(await again.get(utf8("y"))), "1");
  }
});

test("complete store: one of an earlier version is taken over if somebody looks through it, and then has a proof", async () => {
  const stage = new Stage();
  stage.values.set("a", utf8("1"));
  assert.match((await refusal(stage)) ?? "opened", /no proof of its content/);
  unwrap(await stage.open([], { readOnly: true, adopt: async () => ({ ok: true, value: [] }) }));
  assert.equal(stage.files.size, 0);
  unwrap(await stage.open([], { adopt: async () => ({ ok: true, value: [put("b", "2")] }) }));
  assert.equal(await refusal(stage), undefined);
  stage.values.delete("a");
  assert.match((await refusal(stage)) ?? "opened", /something in it was lost/);
});

test("complete store: over the seeds, no loss of power loses what was acknowledged or has the store refused", async () => {
  for (let seed = 0; seed < 60; seed++) {
    const sim = new Simulation({ seed });
    await sim.run(async () => {
      let acknowledged = 0;
      for (let start = 0; start < 6; start++) {
        const mark = await sim.world("p").disk.readWhole(markPath("s"));
        const marked = mark === undefined ? 0 : unwrap(decodeMarkFile(digest, mark)).sequence;
        assert.ok(marked >= acknowledged, `start ${start}: the mark is at ${marked}, ${acknowledged} was acknowledged`);
        const store: CompleteStore = unwrap(await openComplete(sim.world("p"), "s"));
        const found = Number(text(await store.get(utf8("n"))) ?? 0);
        assert.ok(found >= acknowledged, `start ${start}: ${found} after ${acknowledged}`);
        let next = found;
        const writing = (async () => {
          for (;;) {
            await store.batch([put("n", String(++next)), put(`k${next % 5}`, String(next))], { sync: true });
            acknowledged = next;
          }
        })();
        void writing.catch(() => {});
        await sim.sleep(sim.prng.float() * 8);
        sim.crash("p", { unsynced: "lost" });
        sim.restart("p");
      }
    });
  }
});

test("complete store: a disk that fails while the mark is written is no damage; one that is full opens if nothing was lost", async () => {
  const sim = new Simulation({ seed: 5 });
  await sim.run(async () => {
    sim.world("p");
    const disk = sim.disk("p");
    const first = unwrap(await openComplete(sim.world("p"), "s"));
    await first.batch([put("a", "1")], { sync: true });
    await first.close();
    for (const kind of ["syncFailed", "io"] as const) {
      disk.failNext("sync", kind, markPath("s"));
      await assert.rejects(openComplete(sim.world("p"), "s"), (error) => error instanceof DiskError && error.kind === kind);
    }
    disk.failNext("read", "io", markPath("s"));
    const unread = await openComplete(sim.world("p"), "s");
    assert.ok(!unread.ok && unread.failure.message.includes("can't be read"), "what can't be read is refused");

    const totalBytes = disk.options.totalBytes;
    disk.options = { ...disk.options, totalBytes: disk.usedBytes() };
    const full = unwrap(await openComplete(sim.world("p"), "s"));
    assert.equal(text(await full.get(utf8("a"))), "1");
    await full.close();
    disk.options = { ...disk.options, totalBytes };
    const after = unwrap(await openComplete(sim.world("p"), "s"));
    await after.batch([put("a", "2")], { sync: true });
    await after.close();
    assert.equal(text(await unwrap(await openComplete(sim.world("p"), "s")).get(utf8("a"))), "2");
  });
});

const golden = new URL("../../../../tests/golden/store-proof/v1/", import.meta.url);
const proof: StoreProof = {
  lineage: new Uint8Array(16).map((_, i) => i),
  sequence: 2 ** 40 + 3,
  count: 77,
  sum: [1, 2 ** 32 - 1, 3, 4],
};

test("store proof format: proof and mark are written and read as they always were; any flipped byte is damage", () => {
  const kinds = [
    { name: "proof.bin", bytes: encodeProof(digest, proof), decode: decodeProof },
    { name: "mark.bin", bytes: encodeMarkFile(digest, proof), decode: decodeMarkFile },
  ];
  for (const { name, bytes, decode } of kinds) {
    const url = new URL(name, golden);
    if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(url, bytes);
    const stored = new Uint8Array(readFileSync(url));
    assert.deepEqual(new Uint8Array(bytes), stored);
    assert.deepEqual(unwrap(decode(digest, stored)), proof);
  }
  const stored = new Uint8Array(readFileSync(new URL("proof.bin", golden)));
  for (let i = 0; i < stored.length; i++) {
    const flipped = stored.slice();
    flipped[i] = (flipped[i] as number) ^ 0x08;
    assert.ok(!decodeProof(digest, flipped).ok && !decodeProof(digest, stored.subarray(0, i)).ok, `byte ${i}`);
  }
});
