/**
 * Each answer of the geo door with each of its numbers at its maximum, and at one that is none (above 2^53 - 1): a primary refuses it, or goes on. The
 * answers are made from the descriptors, so a new field is among them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { type Outcome, ok, utf8 } from "@stamp/base";
import type { Transport } from "@stamp/ports";
import { GeoDoor } from "@stamp/wire";
import { GeoLink } from "./geo-link.ts";

const wide: ReadonlySet<ScalarType | undefined> = new Set([ScalarType.UINT64, ScalarType.INT64, ScalarType.SINT64]);
const narrow: ReadonlySet<ScalarType | undefined> = new Set([ScalarType.UINT32, ScalarType.INT32]);
const isNumber = ({ scalar }: DescField): boolean => wide.has(scalar) || narrow.has(scalar);

/** Paths of all numbers of a message. */
const pathsOf = (desc: DescMessage): string[] =>
  desc.fields.flatMap((field) => {
    if (field.message !== undefined) return pathsOf(field.message).map((path) => `${field.localName}.${path}`);
    return isNumber(field) ? [field.localName] : [];
  });

/** A message with one element in each list and 1 in each number, but at `path`. */
function filled(desc: DescMessage, path: string, number: bigint): Message {
  const values: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const { localName, message } = field;
    const inner = path.startsWith(`${localName}.`) ? path.slice(localName.length + 1) : "";
    const own = path === localName ? number : 1n;
    const value = message !== undefined ? filled(message, inner, number) : wide.has(field.scalar) ? own : Number(own % 2n ** 32n);
    if (message === undefined && !isNumber(field)) continue;
    values[localName] = field.fieldKind === "list" ? [value] : value;
  }
  return create(desc, values);
}

const options = { timeoutMs: 1_000, signal: new AbortController().signal };
const name = utf8("n");
/** By method: what a primary does with its answer. */
const uses: Readonly<Record<string, (link: GeoLink) => Promise<Outcome<unknown>>>> = {
  ship: (link) => link.ship({ epoch: 1, name, commits: [] }, options),
  seed: (link) => link.seed({ epoch: 1, sequence: 1, lastTicket: 1, low: name, high: utf8("o"), rows: [] }, options),
  writeData: (link) => link.writeData(name, name, options),
  pinData: (link) => link.pinData(name, [1], options),
  report: (link) => link.report({ epoch: 1n, paired: 1n, complete: true } as never, options),
  pushSettings: (link) => link.pushSettings({}, options),
  tellVersions: (link) => link.versions([name], options),
};

test("far answers: no number in an answer of another stamp is thrown, and none that is kept is out of its bounds", async () => {
  let asked = 0;
  for (const { localName, output } of GeoDoor.methods) {
    const use = uses[localName];
    assert.ok(use !== undefined, `${localName} has a use here`);
    for (const path of pathsOf(output)) {
      for (const number of [0n, 2n ** 32n - 1n, BigInt(Number.MAX_SAFE_INTEGER), 2n ** 63n, 2n ** 64n - 1n]) {
        const client = { [localName]: async () => ok(filled(output, path, number)) };
        const transport = { client: () => client } as unknown as Transport;
        const link = new GeoLink({
          account: "acct",
          table: "Blob",
          peer: "b",
          doors: ["b"],
          transportTo: () => ok(transport),
          level: () => 4,
        } as never);
        const answer: Outcome<unknown> = await use(link);
        const what: string = `${localName} ${path} ${number}: ${JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? `${value}` : value))}`;
        asked++;
        if (!answer.ok) assert.equal(answer.failure.reason, "badRequest", what);
        if (answer.ok && localName === "writeData") {
          const { place, pinTermMs } = answer.value as { place: { offsetBytes: number; lengthBytes: number }; pinTermMs: number };
          assert.ok(Number.isSafeInteger(place.offsetBytes + place.lengthBytes), what);
          assert.ok(pinTermMs >= 1_000 && pinTermMs <= 600_000, what);
        }
      }
    }
  }
  assert.ok(asked >= 40, `${asked} answers`);
});
