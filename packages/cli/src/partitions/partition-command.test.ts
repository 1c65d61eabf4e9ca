import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { FailureCode, FailureReason } from "@stamp/base";
import { encodeKey } from "@stamp/objects";
import { RangePartitionSchema } from "@stamp/wire";
import { keyText } from "../key-text.ts";
import { toJson } from "../print.ts";
import { rangeTable } from "../status/status.ts";
import { splitKeyOf, whatNext } from "./partition-command.ts";

const keys: readonly [Uint8Array, string][] = [
  [encodeKey([["acct"], [], []]), "acct"],
  [encodeKey([["acct"], [0, "photos"], []]), "acct/photos"],
  [encodeKey([["acct"], [1, "photos", 12, "a b/é"]]), "acct/photos@12/a b/é"],
  [encodeKey([["acct"], [1, "photos", 12, "x"], [3, 4, 5]]), "acct/photos@12/x/3/4/5"],
  [encodeKey([["acct"], [1, "t", 7, "a\nb"]]), "acct/t@7/a·b"],
  [encodeKey([["acct"], [1, "t", 7, "p".repeat(1_000)]]), `acct/t@7/${"p".repeat(50)}…`],
  [Uint8Array.of(0xff, 0), "0xff00"],
  [
    encodeKey([["acct"], [1, "photos"]]).slice(0, -2),
    `0x${Buffer.from(encodeKey([["acct"], [1, "photos"]]).slice(0, -2)).toString("hex")}`,
  ],
];

for (const [key, text] of keys) {
  test(`a key is shown as ${JSON.stringify(text.slice(0, 30))}`, () => {
    assert.equal(keyText(key), text);
  });
}

test("partition list: bounds are names, the ends of a table are words", () => {
  const highKey = encodeKey([["acct"], [1, "t", 7, "p0500"]]);
  const text = rangeTable({ ranges: [create(RangePartitionSchema, { rangeId: "entity-e5", table: "Entity", highKey })] });
  assert.match(text, /start +acct\/t@7\/p0500 /);
});

test("partition list --json: a bound is what --at-key takes", () => {
  const highKey = encodeKey([["acct"], [1, "t", 7, "p0500"]]);
  const told = JSON.parse(toJson({ highKey })) as { readonly highKey: string };
  assert.deepEqual(splitKeyOf(told.highKey), highKey);
});

test("partition commands: what was lost on the way can be looked at, what moves be tried again; a wrong name is only that", () => {
  const next = (code: FailureCode, reason: FailureReason): string => whatNext({ code, reason, message: "", applied: "no" });
  assert.match(next("unavailable", "connectFailed"), /The next leader finishes or undoes what was begun; see: .*partition list/);
  assert.match(next("failedPrecondition", "wrongPartition"), /Try again when .*partition list/);
  assert.equal(next("notFound", "wrongPartition"), "");
  assert.equal(next("invalidArgument", "badRequest"), "");
});

test("partition split --at-key: what is no key of a table is refused before anybody is asked", () => {
  const key = encodeKey([["acct"], [1, "t", 7, "p0500"]]);
  assert.deepEqual(splitKeyOf(Buffer.from(key).toString("hex")), key);
  for (const wrong of ["", "zz", "ff", "00", "0", Buffer.from(key.slice(0, -1)).toString("hex"), Buffer.from("acct/t").toString("hex")]) {
    assert.throws(() => splitKeyOf(wrong), /docs\/formats\/key\.md/, wrong);
  }
});
