/** Members that survive a majority hold everything that was acknowledged, also what they do not know to be committed. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { compareBytes, fromUtf8, unwrap, utf8 } from "@stamp/base";
import { encodeOperations } from "../consensus/records.ts";
import { decodeKeyState } from "../store/store.ts";
import { begin, emptied, scene, serving, settled, Writer } from "../testing/replicated-run.ts";
import { openSurvivor, type Survivor, withTail } from "./survivor.ts";

const keys = async (survivor: Survivor, checksum: (bytes: Uint8Array) => number): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  for await (const [key, value] of survivor.snapshot.entries()) {
    const name = fromUtf8(key);
    if (name.startsWith("k/")) found.set(name.slice(2), fromUtf8(unwrap(decodeKeyState(value, checksum)).value ?? utf8("")));
  }
  return found;
};

test("survivors: whenever all lock services crash and one disk is lost, the longest log of the others has all that was acknowledged", async () => {
  let withEnd = 0;
  for (let seed = 1; seed <= 20; seed++) {
    begin({ seed, timeLimitMs: 900_000 });
    const { sim, names } = scene;
    await sim.run(async () => {
      await serving();
      await settled();
      const writer = new Writer(sim.world("writer"));
      await writer.begin();
      void writer.write(10_000).catch(() => {});
      await sim.sleep(50 + sim.prng.float() * 200);
      const acknowledged = new Map(writer.acknowledged);
      const lost = scene.active() as string;
      for (const name of names) sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
      emptied([lost]);
      const survivors: Survivor[] = [];
      for (const name of names.filter((each) => each !== lost)) survivors.push(unwrap(await openSurvivor(sim.offline(name), 7)));
      const [newest] = survivors.sort((a, b) => b.last.term - a.last.term || b.last.index - a.last.index) as [Survivor];
      const found = await keys(newest, (bytes) => sim.world("writer").digest.crc32c(bytes));
      assert.ok(acknowledged.size > 0);
      for (const [key, text] of acknowledged) assert.equal(found.get(key), text, `seed ${seed}: ${key}`);
      if (newest.snapshot.version > newest.committedVersion) withEnd += 1;
      assert.equal(newest.snapshot.takenAtMs, 7);
      for (const survivor of survivors) await survivor.close();
      const none = await openSurvivor(sim.offline(lost), 0);
      assert.ok(!none.ok && none.failure.code === "notFound", "an empty folder has none");
    });
  }
  assert.ok(withEnd > 0, "some have entries that they do not know to be committed");
});

test("survivor, rows with the end of a log: put, replaced and deleted keys are read in order, within a range and a limit", async () => {
  const rows = new Map(["b", "d", "f"].map((key) => [key, `${key} of before`]));
  const pairs = [...rows].map(([key, value]) => [utf8(key), utf8(value)] as const);
  const stored = {
    get: async (key: Uint8Array) => pairs.find(([other]) => compareBytes(other, key) === 0)?.[1],
    range: async function* ({ gte, lt }: { gte?: Uint8Array; lt?: Uint8Array }) {
      for (const pair of pairs) if ((!gte || compareBytes(pair[0], gte) >= 0) && (!lt || compareBytes(pair[0], lt) < 0)) yield pair;
    },
  };
  const entry = (index: number, ...operations: Parameters<typeof encodeOperations>[0]) =>
    ({ term: 1, index, body: { kind: "data", data: encodeOperations(operations) } }) as const;
  const put = (key: string) => ({ kind: "put", key: utf8(key), value: utf8(`${key} of the end`) }) as const;
  const all = withTail(stored, [entry(2, put("a"), put("d"), put("e")), entry(3, { kind: "delete", key: utf8("f") }, put("g"))]);
  const read = async (range: Parameters<typeof all.range>[0]): Promise<string[]> => {
    const found: string[] = [];
    for await (const [key, value] of all.range(range)) found.push(`${fromUtf8(key)}=${fromUtf8(value)}`);
    return found;
  };
  assert.deepEqual(await read({}), ["a=a of the end", "b=b of before", "d=d of the end", "e=e of the end", "g=g of the end"]);
  assert.deepEqual(await read({ gte: utf8("b"), lt: utf8("e") }), ["b=b of before", "d=d of the end"]);
  assert.deepEqual(await read({ limit: 2 }), ["a=a of the end", "b=b of before"]);
  assert.equal(await all.get(utf8("f")), undefined);
  assert.equal(fromUtf8((await all.get(utf8("d"))) ?? utf8("")), "d of the end");
});
