/** Reads of an extent that is stored as fragments on real extent nodes: dead, slow and damaged nodes, old places. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { concatBytes, type Outcome, ok, ownerEpoch, type RuleName, unwrap } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { fragmentBytesOf } from "@stamp/extent";
import type { CallOptions, World } from "@stamp/ports";
import { ExtentFragments, ExtentNode, fromWire, type ReadFragmentRequestSchema, StreamManager } from "@stamp/wire";
import type { Location, Place } from "../index.ts";
import { Stamp } from "../testing/harness.ts";
import { ExtentReader } from "./extent-reader.ts";

const timeoutMs = 5_000;
const forever = { timeoutMs: Number.POSITIVE_INFINITY };

/** A stream with one sealed extent, made into fragments by a call; readers are told that the fragments are all there is. */
class Coded {
  readonly stamp: Stamp;
  readonly profile: Profile;
  readonly names: readonly string[];
  readonly written: { readonly place: Place; readonly bytes: Uint8Array }[] = [];
  location: Location & { coded: NonNullable<Location["coded"]>; sealedLengthBytes: number };
  /** Questions where the extent is. */
  asked = 0;
  /** Creation number of the extent. */
  creation = 0n;
  readonly #lengths: readonly number[];

  constructor(seed: number, profileName: string, lengths = [70_000, 3, 900_000, 250_000, 1, 1_200_000, 65_536], config: object = {}) {
    this.#lengths = lengths;
    this.profile = profileOf(profileName) as Profile;
    this.names = Array.from({ length: this.profile.fragments + 1 }, (_, i) => `en${i + 1}`);
    this.stamp = new Stamp(seed, { nodes: this.names, journalSegmentBytes: 1 << 23, ...config });
    this.location = { extentId: 0, version: 0, addresses: [], sealedLengthBytes: 0, coded: { profile: profileName, fragments: [] } };
  }

  get sim() {
    return this.stamp.sim;
  }

  run(body: () => Promise<void>): Promise<void> {
    return this.sim.run(async () => {
      for (const name of this.names) await this.sim.until(() => this.sim.role(name)?.status.ready === true, 30_000, `${name} is ready`);
      await this.#write();
      await body();
    });
  }

  async #write(): Promise<void> {
    const { stamp, sim, profile } = this;
    const stream = unwrap(await stamp.client().openForOwner("/a", ownerEpoch(1), { create: true, timeoutMs: 30_000 }));
    for (const [i, length] of this.#lengths.entries()) {
      const bytes = new Uint8Array(length).map((_, at) => (at * 13 + i * 7 + (at >> 9)) & 0xff);
      const [place] = unwrap(await stream.append([bytes], forever)) as [Place];
      this.written.push({ place, bytes });
    }
    unwrap(await stamp.client("next").openForOwner("/a", ownerEpoch(2), { create: false, timeoutMs: 30_000 }));
    const world = sim.world("tester");
    const extentId = this.written[0]?.place.extentId ?? 0;
    const manager = world.transport.client("sm1", StreamManager);
    const request = { afterExtentId: BigInt(extentId - 1), limit: 1 };
    await sim.until(
      async () => unwrap(await manager.listExtents(request, { timeoutMs })).extents[0]?.checksum !== undefined,
      30_000,
      "sealed",
    );
    const [info] = unwrap(await manager.listExtents(request, { timeoutMs })).extents;
    const sealedLengthBytes = fromWire(info?.location?.sealedLengthBytes ?? 0n);
    const holder = info?.nodeIds[0] ?? "";
    const held = await world.transport.client(holder, ExtentNode).getExtentReplica({ extentId: BigInt(extentId) }, { timeoutMs });
    this.creation = unwrap(held).creation;
    const targets = this.names.slice(0, profile.fragments).map((name, index) => this.#target(name, index));
    const facts = sim.role(holder)?.status.facts;
    unwrap(
      await world.transport.client(holder, ExtentFragments).makeFragments(
        {
          smTerm: BigInt(Number(facts?.smTerm)),
          extent: {
            extentId: BigInt(extentId),
            profile: profile.name,
            sealedLengthBytes: BigInt(sealedLengthBytes),
            checksum: info?.checksum ?? 0,
            creation: this.creation,
          },
          targets,
          stampId: String(facts?.stampId),
          diskId: String(facts?.diskId),
        },
        { timeoutMs: 60_000 },
      ),
    );
    const fragments = targets.map(({ address }) => ({ version: 3, address }));
    this.location = { extentId, version: 3, addresses: [], sealedLengthBytes, coded: { profile: profile.name, fragments } };
  }

  #target(name: string, index: number) {
    return { index, version: 3n, address: name, diskId: String(this.sim.role(name)?.status.facts.diskId) };
  }

  get fragmentBytes(): number {
    return fragmentBytesOf(this.location.sealedLengthBytes, this.profile.data);
  }

  /** A node that has a data fragment of this place. */
  holderOf({ offsetBytes }: Place): string {
    return this.names[Math.floor(offsetBytes / this.fragmentBytes)] as string;
  }

  reader(process: string): ExtentReader {
    const locate = async (): Promise<Outcome<readonly Location[]>> => {
      this.asked += 1;
      return ok([this.location]);
    };
    return new ExtentReader(this.sim.world(process), locate, { locationsMax: 100 });
  }

  /** Reads everything as places, as a run, and as blocks, and compares. Returns the longest wait for a single place. */
  async readAll(reader: ExtentReader): Promise<number> {
    let longestMs = 0;
    for (const { place, bytes } of this.written) {
      const startMs = this.sim.nowMs;
      assert.deepEqual(unwrap(await reader.read(place, { timeoutMs })), bytes);
      longestMs = Math.max(longestMs, this.sim.nowMs - startMs);
    }
    const pieces: Uint8Array[] = [];
    for await (const piece of reader.readPlaces(this.written.map(({ place }) => place))) pieces.push(piece);
    assert.deepEqual(concatBytes(pieces), concatBytes(this.written.map(({ bytes }) => bytes)));
    const end = this.location.sealedLengthBytes;
    const blocks: Uint8Array[] = [];
    for (let at = 0; at < end; ) {
      const answer = unwrap(await reader.readBlocks(this.location.extentId, at, end, 300_000, { timeoutMs }));
      blocks.push(...answer.payload);
      at = fromWire(answer.nextOffsetBytes);
      assert.equal(answer.end, at === end);
    }
    assert.deepEqual(
      blocks.map(({ length }) => length),
      this.written.map(({ bytes }) => bytes.length),
    );
    assert.deepEqual(concatBytes(blocks), concatBytes(this.written.map(({ bytes }) => bytes)));
    return longestMs;
  }
}

test("coded reads: places, runs of places and whole blocks are what was written; a range inside a place too", async () => {
  for (const profileName of ["rs-4-2", "lrc-12-2-2"]) {
    const coded = new Coded(41, profileName);
    await coded.run(async () => {
      const reader = coded.reader("reader");
      await coded.readAll(reader);
      assert.equal(coded.asked, 1);
      const { place, bytes } = coded.written[5] as { place: Place; bytes: Uint8Array };
      for (const [from, length] of [
        [0, 1],
        [1_199_999, 1],
        [500_001, 300_003],
      ] as const) {
        const part = { ...place, offsetBytes: place.offsetBytes + from, lengthBytes: length };
        assert.deepEqual(unwrap(await reader.read(part, { timeoutMs })), bytes.subarray(from, from + length));
      }
      const beyond = await reader.read({ ...place, offsetBytes: coded.location.sealedLengthBytes, lengthBytes: 1 }, { timeoutMs });
      assert.ok(!beyond.ok && beyond.failure.reason === "outOfRange");
      const other = await reader.read({ ...place, lengthBytes: 0 }, { timeoutMs });
      assert.ok(!other.ok && other.failure.reason === "badRequest");
    });
  }
});

test("coded reads: blocks of the largest size are read as blocks and as places, also where a block with its header is longer than one call", async () => {
  const callBytes = 4 * 1024 * 1024;
  const headerBytes = 16 + 4 * (callBytes / 65_536);
  const lengths = [
    callBytes,
    callBytes - headerBytes - 1,
    callBytes - headerBytes,
    callBytes - headerBytes + 4,
    callBytes - 1,
    callBytes,
    9,
  ];
  const coded = new Coded(31, "rs-4-2", lengths, { journalSegmentBytes: 1 << 24 });
  await coded.run(async () => {
    assert.ok(coded.fragmentBytes > callBytes + 65_536, "one fragment holds a whole block and its header");
    await coded.readAll(coded.reader("reader"));
    // Everything in one call of the reader, and decoded where the fragment is dead.
    coded.sim.crash(coded.names[0] as string, { stayDown: true });
    const reader = coded.reader("other");
    const end = coded.location.sealedLengthBytes;
    const blocks = unwrap(await reader.readBlocks(coded.location.extentId, 0, end, 64 * 1024 * 1024, { timeoutMs: 20_000 }));
    assert.deepEqual(concatBytes(blocks.payload), concatBytes(coded.written.map(({ bytes }) => bytes)));
    assert.equal(blocks.end, true);
  });
});

test("coded reads: bytes that change on their way from a node are not given; the range is decoded from others", async () => {
  const coded = new Coded(48, "rs-4-2");
  await coded.run(async () => {
    const world = coded.sim.world("reader");
    let flipped = 0;
    const client = (address: string) => ({
      readFragment: async (request: MessageInitShape<typeof ReadFragmentRequestSchema>, options: CallOptions) => {
        const answer = await world.transport.client(address, ExtentFragments).readFragment(request, options);
        if (!answer.ok || address !== coded.names[0]) return answer;
        const payload = answer.value.payload.slice();
        payload[0] = (payload[0] as number) ^ 1;
        flipped += 1;
        return ok({ ...answer.value, payload });
      },
    });
    const noisy = { ...world, transport: { client } } as unknown as World;
    const reader = new ExtentReader(noisy, async () => ok([coded.location]), { locationsMax: 100 });
    await coded.readAll(reader);
    assert.ok(flipped > 0);
  });
});

/**
 * Puts a fragment with one flipped bit, which its own table calls intact, in the place of a data fragment, and crashes the node of another one. Returns
 * how many ranges inside blocks are read wrong, with the checksums of fragments in the places.
 */
async function wrongRanges(seed: number, without: readonly RuleName[]): Promise<number> {
  const [dead, wrong] = [0, 1];
  const coded = new Coded(seed, "rs-4-2", undefined, { without });
  let wrongCount = 0;
  await coded.run(async () => {
    const { names, fragmentBytes, sim } = coded;
    const { crc32c } = sim.world("tester").digest;
    const { extentId, sealedLengthBytes, coded: places } = coded.location;
    const node = (name: string) => sim.world("tester").transport.client(name, ExtentFragments);
    const read = { extentId: BigInt(extentId), offsetBytes: 0n, lengthBytes: fragmentBytes, version: 3n };
    const contents: Uint8Array[] = [];
    for (const index of places.fragments.keys())
      contents.push(unwrap(await node(names[index] as string).readFragment({ ...read, index }, { timeoutMs })).payload.slice());
    const { checksum = 0 } = unwrap(await node(names[0] as string).listFragments({ withHeads: true }, { timeoutMs })).fragments[0] ?? {};
    const bad = (contents[wrong] as Uint8Array).slice();
    bad[30_000] = (bad[30_000] as number) ^ 4;
    const { stampId, diskId, smTerm } = sim.role(names[wrong] as string)?.status.facts ?? {};
    const of = {
      smTerm: BigInt(Number(smTerm)),
      stampId: String(stampId),
      diskId: String(diskId),
      maker: "faulty",
      version: 4n,
      index: wrong,
    };
    const extent = { extentId: BigInt(extentId), profile: "rs-4-2", sealedLengthBytes: BigInt(sealedLengthBytes), checksum };
    for (let at = 0; at < fragmentBytes; at += 1 << 20) {
      const payload = bad.slice(at, at + (1 << 20));
      const piece = { offsetBytes: BigInt(at), payload, payloadChecksum: crc32c(payload), last: at + payload.length === fragmentBytes };
      unwrap(await node(names[wrong] as string).writeFragment({ ...of, extent, ...piece }, { timeoutMs }));
    }
    const fragments = places.fragments.map((place, index) => ({
      ...place,
      version: index === wrong ? 4 : 3,
      checksum: crc32c(contents[index] as Uint8Array),
    }));
    coded.location = { ...coded.location, coded: { ...places, checksum, fragments } };
    sim.crash(names[dead] as string, { stayDown: true });
    const reader = coded.reader("reader");
    for (const { place, bytes } of coded.written) {
      for (let at = 0; at < bytes.length; at += 9_000) {
        const part = { ...place, offsetBytes: place.offsetBytes + at, lengthBytes: Math.min(9_000, bytes.length - at) };
        const answer = unwrap(await reader.read(part, { timeoutMs }));
        if (Buffer.compare(answer, bytes.subarray(at, at + part.lengthBytes)) !== 0) wrongCount += 1;
      }
    }
  });
  return wrongCount;
}

test("coded reads: a range inside a block is not read or decoded from a fragment that is not the recorded one", async () => {
  for (const seed of [50, 51]) assert.equal(await wrongRanges(seed, []), 0);
  assert.ok((await wrongRanges(50, ["fragmentsCompared"])) > 0, "without the rule");
});

test("coded reads: a fragment of another code with the same name is not read, and disproves the place", async () => {
  const coded = new Coded(49, "rs-4-2");
  await coded.run(async () => {
    const { place, bytes } = coded.written[2] as { place: Place; bytes: Uint8Array };
    const real = coded.location;
    // Places by a record that was put back from an older copy: another code, the same versions.
    const fragments = Array.from({ length: 9 }, (_, i) => ({ version: 3, address: coded.names[i % 6] as string }));
    coded.location = { ...real, coded: { profile: "rs-6-3", fragments } };
    const failed = await coded.reader("reader").read(place, { timeoutMs: 300 });
    assert.ok(!failed.ok, "no bytes rather than others");
    coded.location = real;
    assert.deepEqual(unwrap(await coded.reader("again").read(place, { timeoutMs })), bytes);
  });
});

test("coded reads: with as many nodes dead as the code bears, everything is read, and none waits for a timeout", async () => {
  for (const [profileName, lost] of [
    ["rs-4-2", [0, 1]],
    ["rs-4-2", [2, 5]],
    ["rs-6-3", [0, 3, 4]],
    ["lrc-12-2-2", [0, 1, 6]],
    ["lrc-12-2-2", [3, 12, 14]],
  ] as const) {
    const coded = new Coded(42, profileName);
    await coded.run(async () => {
      for (const index of lost) coded.sim.crash(coded.names[index] as string, { stayDown: true });
      const longestMs = await coded.readAll(coded.reader("reader"));
      assert.ok(longestMs < 1_000, `${profileName} without ${lost}: ${longestMs} ms`);
    });
  }
});

test("coded reads, reported: one slow fragment stalls a read until a timeout; here by its hedge, and after a few it is not waited for", async () => {
  const coded = new Coded(43, "lrc-12-2-2");
  await coded.run(async () => {
    const reader = coded.reader("reader");
    const { place, bytes } = coded.written[2] as { place: Place; bytes: Uint8Array };
    const part = { ...place, lengthBytes: 1_000 };
    coded.sim.pause(coded.holderOf(place));
    const tookMs: number[] = [];
    for (let i = 0; i < 6; i++) {
      const startMs = coded.sim.nowMs;
      assert.deepEqual(unwrap(await reader.read(part, { timeoutMs })), bytes.subarray(0, 1_000));
      tookMs.push(coded.sim.nowMs - startMs);
    }
    assert.ok((tookMs[0] as number) < 300, `${tookMs}`);
    assert.ok((tookMs.at(-1) as number) < 30, `it is asked beside the others at once: ${tookMs}`);
    // A source of the first plan is silent as well: all others are asked.
    const index = coded.names.indexOf(coded.holderOf(place));
    const group = coded.profile.groups.find((each) => each.includes(index)) as readonly number[];
    coded.sim.pause(coded.names[group.find((each) => each !== index) as number] as string);
    const startMs = coded.sim.nowMs;
    assert.deepEqual(unwrap(await reader.read(part, { timeoutMs })), bytes.subarray(0, 1_000));
    assert.ok(coded.sim.nowMs - startMs < 600, "every wait is hedged");
    for (const name of coded.names) coded.sim.resume(name);
  });
});

test("coded reads: a damaged chunk is a lost chunk", async () => {
  const coded = new Coded(44, "rs-4-2");
  await coded.run(async () => {
    for (const name of coded.names.slice(0, 2)) {
      const [path] = coded.sim
        .disk(name)
        .paths()
        .filter((each) => each.endsWith(".fragment")) as [string];
      for (let at = 8_192 + 10; at < 8_192 + coded.fragmentBytes; at += 65_536) coded.sim.disk(name).corrupt(path, at);
    }
    await coded.readAll(coded.reader("reader"));
  });
});

test("coded reads, reported: a disproved place is trusted for minutes; here it is looked up again at once, and the read does not fail", async () => {
  const coded = new Coded(45, "rs-4-2");
  await coded.run(async () => {
    const reader = coded.reader("reader");
    await coded.readAll(reader);
    assert.equal(coded.asked, 1);
    // The state after a repair: fragment 0 is on the spare node now, its old file is deleted.
    const spare = coded.names.at(-1) as string;
    const world = coded.sim.world("tester");
    const facts = (name: string) => coded.sim.role(name)?.status.facts;
    const smTerm = BigInt(Number(facts("sm1")?.term));
    const { extentId, sealedLengthBytes } = coded.location;
    const manager = world.transport.client("sm1", StreamManager);
    const [info] = unwrap(await manager.listExtents({ afterExtentId: BigInt(extentId - 1), limit: 1 }, { timeoutMs })).extents;
    const at = (name: string, index: number, version: bigint) => ({ index, version, address: name, diskId: String(facts(name)?.diskId) });
    unwrap(
      await world.transport.client(spare, ExtentFragments).repairFragment(
        {
          smTerm,
          extent: {
            extentId: BigInt(extentId),
            profile: "rs-4-2",
            sealedLengthBytes: BigInt(sealedLengthBytes),
            checksum: info?.checksum ?? 0,
            creation: coded.creation,
          },
          target: at(spare, 0, 4n),
          sources: coded.names.slice(0, 6).map((name, index) => at(name, index, 3n)),
          stampId: String(facts(spare)?.stampId),
        },
        { timeoutMs: 30_000 },
      ),
    );
    const gone = { smTerm, extentId: BigInt(extentId), fragmentVersion: 3n, diskId: String(facts("en1")?.diskId) };
    unwrap(await world.transport.client("en1", ExtentFragments).deleteFragment(gone, { timeoutMs }));
    const fragments = coded.location.coded.fragments.with(0, { version: 4, address: spare });
    coded.location = { ...coded.location, version: 5, coded: { ...coded.location.coded, fragments } };
    const longestMs = await coded.readAll(reader);
    assert.ok(longestMs < 300, `${longestMs} ms`);
    assert.equal(coded.asked, 2, "asked once more, and the new place is believed");
  });
});

test("coded reads: places that are disproved are looked up again at once, also while a node of them is silent", async () => {
  const coded = new Coded(47, "rs-4-2");
  await coded.run(async () => {
    const reader = coded.reader("reader");
    const { place, bytes } = coded.written[2] as { place: Place; bytes: Uint8Array };
    const part = { ...place, lengthBytes: 1_000 };
    const current = coded.location;
    const silent = coded.names.indexOf(coded.holderOf(place));
    const elsewhere = coded.names.at(-1) as string;
    // An earlier coding, of which the silent node is all that did not move.
    const fragments = current.coded.fragments.map((each, index) => (index === silent ? each : { version: 2, address: elsewhere }));
    for (const old of [
      { ...current, version: 2, coded: { ...current.coded, fragments } },
      { ...current, version: 2, coded: undefined, addresses: [elsewhere, current.coded.fragments[silent]?.address ?? ""] },
    ]) {
      coded.location = old as typeof current;
      await reader.read(part, { timeoutMs: 1 });
      reader.learn([coded.location]);
      coded.location = current;
      coded.sim.pause(coded.names[silent] as string);
      const startMs = coded.sim.nowMs;
      assert.deepEqual(unwrap(await reader.read(part, { timeoutMs })), bytes.subarray(0, 1_000));
      assert.ok(coded.sim.nowMs - startMs < 1_200, `${coded.sim.nowMs - startMs} ms`);
      coded.sim.resume(coded.names[silent] as string);
    }
  });
});

test("coded reads: with more nodes lost than the code bears a read fails by its deadline, and goes on when they are back", async () => {
  const coded = new Coded(46, "rs-4-2");
  await coded.run(async () => {
    const reader = coded.reader("reader");
    const { place, bytes } = coded.written[2] as { place: Place; bytes: Uint8Array };
    const index = coded.names.indexOf(coded.holderOf(place));
    const lost = [index, (index + 1) % 6, (index + 2) % 6].map((each) => coded.names[each] as string);
    for (const name of lost) coded.sim.crash(name, { stayDown: true, unsynced: "kept" });
    const startMs = coded.sim.nowMs;
    const failed = await reader.read({ ...place, lengthBytes: 100 }, { timeoutMs: 700 });
    assert.ok(!failed.ok);
    assert.ok(coded.sim.nowMs - startMs <= 750, "the deadline holds");
    const waits = reader.read({ ...place, lengthBytes: 100 }, { timeoutMs: 60_000 });
    await coded.sim.sleep(500);
    for (const name of lost) coded.sim.restart(name);
    assert.deepEqual(unwrap(await waits), bytes.subarray(0, 100));
    const stop = new AbortController();
    for (const name of coded.names) coded.sim.pause(name);
    const cancelled = reader.read(place, { timeoutMs: 60_000, signal: stop.signal });
    await coded.sim.sleep(50);
    stop.abort();
    const answer = await cancelled;
    assert.ok(!answer.ok && answer.failure.reason === "cancelled");
    for (const name of coded.names) coded.sim.resume(name);
  });
});
