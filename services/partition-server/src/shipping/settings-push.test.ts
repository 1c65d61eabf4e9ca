/** Keys and settings of an account on their way to its copy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Outcome, ok, refused } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import type { LeaderCalls } from "@stamp/metadata-store";
import type { Transport, World } from "@stamp/ports";
import { type CopyWord, CopyWordResponseSchema, CopyWordSchema, GetCopySettingsResponseSchema } from "@stamp/wire";
import { GeoLink } from "./geo-link.ts";
import { pushSettings } from "./settings-push.ts";

const account = "acct";
const role: AccountRole = { role: "primary", epoch: 3, paired: 5, peer: "south-1", obeyed: { operation: 5, phase: 1 } };
const [first, second, other] = [1, 2, 9].map((byte) => new Uint8Array(32).fill(byte));

/** Pushes once. `copy` answers the words of the primary; `tags` are those of the primary's settings, one for each question. */
async function pushed({
  copy,
  tags,
  isProven = true,
}: {
  copy: (word: CopyWord) => object;
  tags: (Uint8Array | undefined)[];
  isProven?: boolean;
}) {
  const words: CopyWord[] = [];
  const asked: object[] = [];
  const manager = {
    getCopySettings: async (request: { whole?: boolean }) => {
      asked.push(request);
      const settings = request.whole === true ? { settings: { keys: ["a2V5"] } } : {};
      return ok(create(GetCopySettingsResponseSchema, { tag: tags[asked.length - 1] as Uint8Array, ...settings }));
    },
  };
  const door = {
    pushSettings: async (request: object) => {
      const word = create(CopyWordSchema, request);
      words.push(word);
      return ok(create(CopyWordResponseSchema, copy(word)));
    },
  };
  const world = { transport: { client: () => manager } } as unknown as World;
  const leader = {
    call: (_ms: number, call: (address: string, leftMs: number) => unknown) => call("manager", 1),
  } as unknown as LeaderCalls;
  const transportTo = (_stamp: string, forKeys = false): Outcome<Transport> =>
    isProven || !forKeys ? ok({ client: () => door } as unknown as Transport) : refused("failedPrecondition", "unauthorized", "not proven");
  const link = new GeoLink({ account, table: "Entity", peer: "south-1", doors: ["door"], transportTo } as never);
  const outcome = await pushSettings(world, leader, link, account, role, new AbortController().signal);
  return { outcome, words, asked };
}

test("settings push: the copy is asked first, and what it gets names what it replaces and the copy", async () => {
  const copy = ({ settings }: CopyWord) => (settings === undefined ? { settingsWanted: true, tag: other } : {});
  // The primary's settings change between the two questions.
  const { outcome, words, asked } = await pushed({ copy, tags: [first, second, second] });
  assert.ok(outcome.ok);
  assert.deepEqual(
    words.map(({ tag, settings, replaces, paired, epoch }) => ({ tag, keys: settings?.keys, replaces, paired, epoch })),
    [
      { tag: first, keys: undefined, replaces: new Uint8Array(), paired: 5n, epoch: 3n },
      { tag: second, keys: ["a2V5"], replaces: other, paired: 5n, epoch: 3n },
    ],
  );
  assert.deepEqual(asked.at(-1), { account, confirmed: second });
});

test("settings push: a copy that has the settings gets no keys, and one that goes on wanting them has confirmed nothing", async () => {
  const same = await pushed({ copy: () => ({}), tags: [first, first] });
  assert.deepEqual([same.words.length, same.words[0]?.settings, same.asked.at(-1)], [1, undefined, { account, confirmed: first }]);
  const wanting = await pushed({ copy: () => ({ settingsWanted: true, tag: other }), tags: [first, first, first] });
  assert.deepEqual([wanting.words.length, wanting.asked.length], [2, 2]);
  assert.ok(wanting.asked.every((request) => !("confirmed" in request)));
});

test("settings push: whoever is not proven to be the other stamp gets no keys, and can confirm none", async () => {
  const { outcome, words, asked } = await pushed({ copy: () => ({}), tags: [first, first], isProven: false });
  assert.ok(!outcome.ok && outcome.failure.reason === "unauthorized");
  assert.deepEqual([words.length, asked.length], [0, 1]);
});
