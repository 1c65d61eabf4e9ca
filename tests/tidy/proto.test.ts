/**
 * Fields that a person gives with a gRPC tool are explained in proto/: every field of a request, or of a message in one, has a comment; that of
 * a length, a size or a time names the unit of its name; texts of the calls for clients and operators have an example.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../tools/commands.ts";

interface Field {
  readonly message: string;
  readonly name: string;
  readonly type: string;
  readonly comment: string;
}

/** Between processes only: tools have no use for them. */
const internal = new Set(["PartitionServer", "ExtentFragments"]);
/** For clients and operators, to be called by hand. */
const byHand = new Set(["FrontEnd", "Accounts", "Signals", "AvailabilityControl", "FaultRules", "LocationService", "Requests"]);

/** Unit of a number, by the end of its name, and the words for it. */
const units: readonly (readonly [RegExp, RegExp])[] = [
  [/_ms$/, /millisecond/i],
  [/_seconds$/, /second/i],
  [/_days$/, /\bdays?\b/i],
  [/_bytes$/, /\b(?:bytes?|[KM]iB)\b/i],
];

function parse(files: Readonly<Record<string, string>>) {
  const fields = new Map<string, Field[]>();
  const calls: { readonly service: string; readonly request: string }[] = [];
  for (const text of Object.values(files)) {
    let block = "";
    let comment: string[] = [];
    for (const line of text.split("\n").map((each) => each.trim())) {
      const [, kind, name = ""] = /^(message|service|enum) (\w+) \{/.exec(line) ?? [];
      const [, request] = /^rpc \w+\((?:stream )?(\w+)\)/.exec(line) ?? [];
      const [, , type = "", field] = /^(repeated |optional )?(map<[^>]+>|[\w.]+) (\w+) = \d+(?: \[.*\])?;/.exec(line) ?? [];
      if (line.startsWith("//")) {
        comment.push(line.slice(2).trim());
        continue;
      }
      if (kind !== undefined) block = kind === "enum" ? "" : name;
      else if (request !== undefined) calls.push({ service: block, request });
      else if (field !== undefined && block !== "" && !/^(import|package|syntax|reserved|return)\b/.test(line))
        fields.set(block, [...(fields.get(block) ?? []), { message: block, name: field, type, comment: comment.join(" ") }]);
      comment = [];
    }
  }
  return { fields, calls };
}

/** Fields of these messages, and of those in them. */
function within(fields: ReadonlyMap<string, readonly Field[]>, messages: readonly string[]): Field[] {
  const seen = new Set<string>();
  const open = [...messages];
  for (let message = open.pop(); message !== undefined; message = open.pop()) {
    if (seen.has(message)) continue;
    seen.add(message);
    open.push(...(fields.get(message) ?? []).map(({ type }) => type));
  }
  return [...seen].flatMap((message) => fields.get(message) ?? []);
}

function unexplained(files: Readonly<Record<string, string>>): string[] {
  const { fields, calls } = parse(files);
  const requests = (of: (service: string) => boolean): string[] => calls.filter(({ service }) => of(service)).map(({ request }) => request);
  const asked = within(
    fields,
    requests((service) => !internal.has(service)),
  );
  const given = requests((service) => byHand.has(service)).flatMap((request) => fields.get(request) ?? []);
  return [
    ...asked.filter(({ comment }) => comment === "").map(({ message, name }) => `${message}.${name}: no comment`),
    ...asked.flatMap(({ message, name, comment }) => {
      const [, words] = units.find(([suffix]) => suffix.test(name)) ?? [];
      return words === undefined || words.test(comment) ? [] : [`${message}.${name}: no unit: ${comment}`];
    }),
    ...given
      .filter(({ type, comment }) => type === "string" && !/e\.g\.|page before|as GetQueueMessages told|: \d/.test(comment))
      .map(({ message, name, comment }) => `${message}.${name}: no example: ${comment}`),
  ].sort();
}

const protos = globSync("proto/stamp/v1/*.proto", { cwd: root }).sort();

test("proto: fields of requests have comments, with the unit of a number and an example of a text", () => {
  const files = Object.fromEntries(protos.map((path) => [path, readFileSync(join(root, path), "utf8")]));
  assert.deepEqual(unexplained(files), []);
  const { fields, calls } = parse(files);
  assert.ok(
    within(
      fields,
      calls.map(({ request }) => request),
    ).length > 500,
    "the fields are found",
  );
});

test("proto: a field without a comment, a unit or an example is found", () => {
  const text = `
service FrontEnd {
  rpc Do(DoRequest) returns (Done);
}
message DoRequest {
  // Its name.
  string name = 1;
  // How long.
  optional uint32 wait_ms = 2;
  repeated Inner inner = 3;
}
message Inner {
  oneof kind {
    bool first = 1;
  }
}
message Done {
  bool never_asked = 1;
}`;
  assert.deepEqual(unexplained({ "a.proto": text }), [
    "DoRequest.inner: no comment",
    "DoRequest.name: no example: Its name.",
    "DoRequest.wait_ms: no unit: How long.",
    "Inner.first: no comment",
  ]);
});
