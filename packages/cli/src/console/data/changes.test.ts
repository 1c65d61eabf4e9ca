import assert from "node:assert/strict";
import { test } from "node:test";
import { changes } from "./changes.ts";
import { world } from "./testing/changes-world.ts";

const fields = {
  ...{ account: "acme", container: "c", table: "t", queue: "q", name: "n", etag: "e", pairs: [], partitionKey: "p", rowKey: "" },
  ...{ properties: [], entities: [], text: "content", upload: "0".repeat(32), digests: ["0".repeat(24)], permissions: "r", hours: 1 },
  ...{ kind: "version", id: "v1" },
};
/** A signature is for one thing. */
const fieldsFor = (path: string): object => (path === "/api/make-sas" ? { ...fields, container: undefined, queue: undefined } : fields);
const block = `/api/put-block?${new URLSearchParams({ account: "acme", container: "c", name: "n", upload: "0".repeat(32), digest: "0".repeat(24), number: "0" })}`;
const paths = [...Object.keys(changes), block];

test("changes: none without cookie, key, the console's own origin, POST, or the role; nothing reaches the service", async () => {
  const { send, signIn, calls, audited } = world();
  const session = await signIn("data");
  const { origin: _, ...noOrigin } = session;
  const { cookie: __, ...noCookie } = session;
  const { "x-stamp-key": ___, ...noKey } = session;
  const reader = await signIn("read");
  for (const path of paths) {
    const body = JSON.stringify(fields);
    for (const [headers, status] of [
      [noOrigin, 403],
      [{ ...session, origin: "http://127.0.0.1:3000" }, 403],
      [{ ...session, "sec-fetch-site": "same-site" }, 403],
      [{ ...session, host: "evil.example" }, 403],
      [noCookie, 401],
      [noKey, 401],
      [reader, 403],
    ] as const)
      assert.equal((await send(path, headers, body)).status, status, path);
    assert.notEqual((await send(path, session, "", "GET")).status, 200, path);
  }
  assert.deepEqual(calls, []);
  assert.equal(audited.filter((line) => line.startsWith("session-2") && line.includes("refused")).length, paths.length - 1);
});

test("changes: each reaches the service, and is in the audit log with its target and without content", async () => {
  const { send, signIn, calls, audited } = world();
  const session = await signIn("data");
  for (const path of paths) assert.equal((await send(path, session, JSON.stringify(fieldsFor(path)))).status, 200, path);
  assert.equal(audited.length, paths.length - 1, "of a block there is no line");
  assert.ok(audited.every((line) => /^session-1 [a-z ]+: done \{"account":"acme",/.test(line)));
  assert.ok(!audited.join().includes("content") && !audited.join().includes("secret"));
  assert.ok(calls.some((call) => call.startsWith('deleteMessage ["1","2"')));
});

test("changes: a table or queue that is there already is told, although the SDK or the service keeps it to itself", async () => {
  const { send, signIn, audited } = world(undefined, true);
  const session = await signIn("data");
  for (const kind of ["table", "queue"]) {
    const { status, body } = await send(`/api/create-${kind}`, session, JSON.stringify(fields));
    assert.equal(status, 503);
    assert.match(String(body), new RegExp(`${kind}AlreadyExists: The ${kind} is there already`, "i"));
  }
  assert.match(audited.join(), /create table: failed: TableAlreadyExists.*create queue: failed: QueueAlreadyExists/);
});

test("changes: one that fails says why, to the page and to the audit log", async () => {
  const { send, signIn, audited } = world(Object.assign(new Error("The condition is not met.\nRequestId:1"), { code: "ConditionNotMet" }));
  const { status, body } = await send("/api/delete-blob", await signIn("data"), JSON.stringify(fields));
  assert.deepEqual([status, JSON.parse(String(body))], [503, { message: "ConditionNotMet: The condition is not met." }]);
  assert.match(audited[0] ?? "", /^session-1 delete blob: failed: ConditionNotMet/);
});

test("changes: fields that are missing, twice or not of their type are refused before the service is asked", async () => {
  const { send, signIn, calls } = world();
  const session = await signIn("data");
  const property = (name: string, type: string, value: string) => ({ properties: [{ name, type, value }] });
  const pair = { name: "a", value: "1" };
  for (const [path, some, words] of [
    ["delete-blob", { etag: "" }, /names no etag/],
    ["delete-blob", { name: 5 }, /names no name/],
    ["set-metadata", { pairs: [pair, { name: "A", value: "2" }] }, /"A" is there twice/],
    ["set-tags", { pairs: [pair, pair] }, /"a" is there twice/],
    ["put-entity", property("n", "Int32", "2147483648"), /an Int32 is/],
    ["put-entity", property("n", "Int32", ""), /an Int32 is/],
    ["put-entity", property("n", "Int64", "1.5"), /an Int64 is/],
    ["put-entity", property("n", "Double", " "), /a Double is/],
    ["put-entity", property("n", "Boolean", "yes"), /a Boolean is/],
    ["put-entity", property("rowKey", "String", "x"), /can't be named "rowKey"/],
    [
      "put-entity",
      { properties: [...property("n", "String", "").properties, ...property("n", "String", "").properties] },
      /"n" is there twice/,
    ],
    ["put-entity", { partitionKey: undefined }, /no partitionKey/],
    ["import-entities", { entities: Array(501).fill({}) }, /501 entities are too many/],
    ["import-entities", { entities: [null] }, /no list properties/],
    ["import-entities", { entities: [{ ...property("n", "Int32", "x"), partitionKey: "p", rowKey: "r" }] }, /an Int32 is/],
    ["commit-blob", { upload: "../x" }, /32 hexadecimal digits/],
    ["commit-blob", { digests: Array(50_001).fill("0".repeat(24)) }, /digests is a list/],
    ["commit-blob", { digests: null }, /digests is a list/],
    ["commit-blob", { digests: "" }, /digests is a list/],
    ["commit-blob", { etag: null }, /names no etag/],
    ["commit-blob", { digests: [null] }, /24 hexadecimal digits/],
    ["set-metadata", { pairs: [null] }, /no name: load the page again/],
    ["set-metadata", { pairs: [{ name: {}, value: "" }] }, /no name: load the page again/],
    ["set-tags", { pairs: [{ name: "a", value: {} }] }, /no value: load the page again/],
    ["set-tags", { pairs: { length: 1 } }, /no list pairs/],
    ["set-metadata", { pairs: [{ name: "a b", value: "" }] }, /name in metadata has no spaces/],
    ["set-metadata", { pairs: [{ name: "a", value: "\u{9b}ä\n" }] }, /value in metadata has one line/],
    ["put-entity", { properties: [null] }, /no name: load the page again/],
    ["put-entity", property("n", "String", {} as string), /no value: load the page again/],
    ["put-entity", property("n", "Edm.Null", ""), /which the service does not know/],
    ["put-entity", property("__proto__", "String", "x"), /can't be named "__proto__"/],
    ["put-entity", property("n@odata.type", "String", "Edm.Int64"), /choose another name/],
    ["put-entity", { properties: Array.from({ length: 50_000 }, (_, at) => property(`n${at}`, "", "").properties[0]) }, /too many/],
    ["make-sas", { hours: 9_000 }, /hours is a whole number/],
    ["make-sas", { hours: 0.5 }, /hours is a whole number/],
    ["make-sas", { hours: true }, /hours is a whole number/],
    ["make-sas", { container: "c" }, /one table, queue or container/],
    ["make-sas", { permissions: "z" }, /letters of raud/],
    ["make-sas", { table: undefined, queue: "q", permissions: "z" }, /z/],
  ] as const) {
    const { status, body } = await send(`/api/${path}`, session, JSON.stringify({ ...fieldsFor(`/api/${path}`), ...some }));
    assert.equal(status, 503);
    assert.match((JSON.parse(String(body)) as { readonly message: string }).message, words);
  }
  for (const body of ["", "[]", "null", "{"]) assert.equal((await send("/api/delete-blob", session, body)).status, 400);
  assert.equal((await send("/api/put-message", session, JSON.stringify({ text: "x".repeat(5 * 1_024 * 1_024) }))).status, 413);
  assert.deepEqual(calls, []);
});

test("changes: no content is in the audit log, whatever fails; refused ones are, with how long a signature would last", async () => {
  const { send, signIn, audited } = world();
  const session = await signIn("data");
  for (const some of [
    { properties: [{ name: "n", type: "Int32", value: "content".repeat(1_000) }] },
    { properties: [{ name: "n", type: "content", value: "" }] },
  ])
    await send("/api/put-entity", session, JSON.stringify({ ...fields, ...some }));
  await send("/api/set-metadata", session, JSON.stringify({ ...fields, pairs: [{ name: "content", value: "content\n" }] }));
  await send("/api/make-sas", session, JSON.stringify({ ...fieldsFor("/api/make-sas"), hours: 8_760, permissions: "r" }));
  for (const body of ["{", JSON.stringify({ text: "x".repeat(5 * 1_024 * 1_024) })]) await send("/api/put-message", session, body);
  assert.ok(!audited.join().includes("content"), audited.join("\n"));
  assert.deepEqual(
    audited.map((line) => line.slice("session-1 ".length).split(" {")[0]),
    [
      ...["put entity", "put entity", "set metadata"].map((what) => `${what}: failed: a field is missing or wrong`),
      ...["make sas: done", "put message: refused", "put message: refused"],
    ],
  );
  assert.match(audited[3] ?? "", /"permissions":"r","hours":8760/);
});

test("changes: one whose connection to the service was lost may have been made", async () => {
  const { send, signIn, audited } = world(Object.assign(new Error("socket hang up"), { code: "REQUEST_SEND_ERROR" }));
  await send("/api/clear-queue", await signIn("data"), JSON.stringify(fields));
  assert.match(audited[0] ?? "", /clear queue: unknown: the connection to the service was lost/);
});

test("changes: one that comes whole only after sign-out is not made", async () => {
  const { send, signIn, calls, audited } = world();
  const session = await signIn("data");
  const rest = Promise.withResolvers<void>();
  const answer = send(
    "/api/clear-queue",
    session,
    (async function* () {
      await rest.promise;
      yield Buffer.from(JSON.stringify(fields));
    })(),
  );
  assert.equal((await send("/api/sign-out", session, "")).status, 200);
  rest.resolve();
  assert.equal((await answer).status, 401);
  assert.deepEqual(calls, []);
  assert.ok(audited.some((line) => line.startsWith("session-1 clear queue: refused")));
});

const stalls = (): AsyncIterable<Uint8Array> => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) });

test("changes: sixteen bodies are read at once, each for 30 s; lists are answered meanwhile", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { send, signIn, calls } = world();
  const session = await signIn("data");
  const begin = () => send("/api/clear-queue", session, stalls());
  const waiting = Promise.all(Array.from({ length: 16 }, begin));
  assert.equal((await send("/api/clear-queue", session, JSON.stringify(fields))).status, 503);
  assert.match(String((await send("/api/accounts", session, "", "GET")).body), /not in this test/);
  mock.timers.tick(30_000);
  assert.deepEqual(
    (await waiting).map(({ status }) => status),
    Array.from({ length: 16 }, () => 413),
  );
  assert.deepEqual(calls, []);
  assert.equal((await send("/api/clear-queue", session, JSON.stringify(fields))).status, 200);
});

test("blocks: sixteen come at once; those that stall are told so after 120 s, and give their places back", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { send, signIn, calls } = world();
  const session = await signIn("data");
  const waiting = Promise.all(Array.from({ length: 16 }, () => send(block, session, stalls())));
  const { status, body } = await send(block, session, "x");
  assert.deepEqual([status, JSON.parse(String(body))], [503, { message: "16 uploads are under way: try again" }]);
  mock.timers.tick(120_000);
  for (const { status, body } of await waiting) {
    assert.equal(status, 504);
    assert.match(String(body), /no answer within 120 s/);
  }
  assert.equal((await send(block, session, "x")).status, 200);
  assert.equal(calls.length, 1);
});

test("blocks: a length that is missing, none, false or too long is refused before the service is asked", async () => {
  const { send, signIn, calls } = world();
  const session = await signIn("data");
  for (const length of [
    { "content-length": "" },
    { "content-length": "0" },
    { "content-length": "1.5" },
    { "content-length": "104857601" },
  ]) {
    const { status, body } = await send(block, { ...session, ...length }, "x");
    assert.equal(status, 503);
    assert.match(String(body), /a block has 1 to 104857600 bytes/);
  }
  assert.deepEqual(calls, []);
});

test("commit: a blob that is there stays without an ETag, and with one only that blob is replaced", async () => {
  const { send, signIn, calls } = world();
  const session = await signIn("data");
  for (const etag of [undefined, '"0x1"']) await send("/api/commit-blob", session, JSON.stringify({ ...fields, etag }));
  assert.match(calls[0] ?? "", /"conditions":\{"ifNoneMatch":"\*"\}/);
  assert.match(calls[1] ?? "", /"conditions":\{"ifMatch":"\\"0x1\\""\}/);
});
