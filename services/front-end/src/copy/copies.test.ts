/** Copies that go on after their request: parts in order, ends, failures, and the taking over of what another left. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Outcome, ok, refused } from "@stamp/base";
import { copyStaleMs } from "@stamp/objects";
import type { HttpClient, OutgoingRequest } from "@stamp/ports";
import { NodeRandom } from "@stamp/ports-node";
import { BlobSchema, CopyPartsSchema } from "@stamp/wire";
import { ScopeKeys } from "../accounts/content-key.ts";
import type { LocatedBlob, Objects } from "../objects/objects.ts";
import type { OperationKind, ResultKind } from "../routing/router.ts";
import { Copies } from "./copies.ts";
import { ForeignSources } from "./foreign-sources.ts";

const named = (blob: string): LocatedBlob => ({
  account: "a",
  container: "c",
  containerIncarnation: 1n,
  blob,
  snapshotStamp: 0n,
  versionStamp: 0n,
});
const to = named("target");
const from = named("source");
const wallMs = 1_000_000_000;

type Answer = Outcome<ResultKind> | undefined;
const blobAnswer = (init: MessageInitShape<typeof BlobSchema> = {}): Outcome<ResultKind> =>
  ok({ case: "blob", value: create(BlobSchema, init) });
const error = (code: string): Outcome<ResultKind> => ok({ case: "error", value: { code, message: "", details: {} } as never });

/** A router that answers as `answer` says, else as a source of three parts and a destination that takes them. */
function copiesOver(answer: (kind: OperationKind) => Answer | Promise<Answer> = () => undefined, role?: { readonly role: string }) {
  const asked: OperationKind[] = [];
  const execute = async (kind: OperationKind): Promise<Outcome<ResultKind>> => {
    asked.push(kind);
    const given = await answer(kind);
    if (given) return given;
    if (kind.case !== "readParts") return blobAnswer();
    const first = Number(kind.value.first);
    const parts = first < 3 ? [{ index: BigInt(first), inline: Uint8Array.of(first) }] : [];
    const next = first < 2 ? { next: BigInt(first + 1) } : {};
    const source = { etag: '"e"', committedBlockCount: 7, sealed: true };
    return ok({ case: "copyParts", value: create(CopyPartsSchema, { blob: source, parts, ...next }) });
  };
  // Pauses are short here.
  const after = (_delayMs: number, callback: () => void) => {
    const timer = setTimeout(callback, 1);
    return { cancel: () => clearTimeout(timer) };
  };
  const clock = { wallMs: () => wallMs, monotonicMs: () => performance.now(), after };
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const parts = {
    world: { clock, random: new NodeRandom(), logger },
    config: { requestTimeoutMs: 1_000, downloadWindowBytes: 1_000 },
    router: { execute },
    // Without a role this stamp is the account's only one.
    accounts: { roleKnown: () => ok(role) },
    scopes: new ScopeKeys({ find: async () => undefined, findAgain: async () => undefined }),
    foreignSources: new ForeignSources(undefined, []),
  };
  const receive = async (_to: LocatedBlob, body: AsyncIterable<Uint8Array>) => {
    let lengthBytes = 0;
    for await (const chunk of body) lengthBytes += chunk.length;
    return { ok: true, value: { inline: new Uint8Array(0), places: [{ extentId: 1n, offsetBytes: 0n, lengthBytes }] } };
  };
  return { asked, parts, copies: new Copies({ parts, receive, pins: () => ({ drop: () => {} }) } as unknown as Objects, "me") };
}

const said = (asked: readonly OperationKind[]) =>
  asked.map((kind) => {
    if (kind.case === "readParts") return `read ${kind.value.first}`;
    if (kind.case === "addToCopy") return `add ${kind.value.position}>${kind.value.next}`;
    return kind.case === "endCopy" ? `end ${kind.value.description ?? ""}` : kind.case;
  });
const job = { to, copyId: "id", from: { name: from, etag: '"e"' }, position: 0n, scope: undefined };

test("copies: parts are read and added one after another, then the copy is ended with what the source is", async () => {
  const { asked, copies } = copiesOver();
  await copies.begin(job);
  assert.deepEqual(said(asked), ["read 0", "add 0>1", "read 1", "add 1>2", "read 2", "add 2>3", "end "]);
  const end = asked.at(-1);
  assert.ok(end?.case === "endCopy" && end.value.appendBlockCount === 7 && end.value.sealed === true && end.value.copier === "me");
  assert.equal(copies.count, 0);
});

test("copies: nothing is read or added for an account of which this stamp has a copy only", async () => {
  const { asked, copies } = copiesOver(undefined, { role: "secondary" });
  await copies.begin(job);
  assert.deepEqual(said(asked), []);
});

test("copies: a source that was changed ends the copy as failed; a copy that is over is left alone", async () => {
  const changed = copiesOver((kind) => (kind.case === "readParts" ? error("ConditionNotMet") : undefined));
  await changed.copies.begin(job);
  assert.match(said(changed.asked).join(), /^read 0,end ConditionNotMet/);
  const over = copiesOver((kind) => (kind.case === "addToCopy" ? error("NoPendingCopyOperation") : undefined));
  await over.copies.begin(job);
  assert.deepEqual(said(over.asked), ["read 0", "add 0>1"]);
});

test("copies: what fails for a while is tried again from where the copy stands", async () => {
  let failures = 2;
  const { asked, copies } = copiesOver((kind) =>
    kind.case === "readParts" && kind.value.first === 1n && failures-- > 0 ? refused("unavailable", "notReady", "not now") : undefined,
  );
  await copies.begin(job);
  assert.deepEqual(said(asked).filter((one) => one === "read 0").length, 1);
  assert.equal(said(asked).at(-1), "end ");
});

test("copies: one that was left alone is claimed by whoever meets it, and goes on where it stands", async () => {
  const work = { copier: "gone", beatMs: BigInt(wallMs - copyStaleMs), next: 2n, from, fromEtag: '"e"' };
  const pending = { copyId: "id", status: "pending", work };
  const { asked, copies } = copiesOver((kind) => (kind.case === "claimCopy" ? blobAnswer({ copy: pending }) : undefined));
  const fresh = { ...pending, work: { ...work, beatMs: BigInt(wallMs - copyStaleMs + 1) } };
  copies.met(to, create(BlobSchema, { copy: fresh }));
  copies.met(to, create(BlobSchema, { copy: { ...pending, status: "success" } }));
  assert.equal(copies.count, 0);
  copies.met(to, create(BlobSchema, { copy: pending }));
  copies.met(to, create(BlobSchema, { copy: pending }));
  assert.equal(copies.count, 1, "once");
  while (copies.count > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(said(asked), ["claimCopy", "read 2", "add 2>3", "end "]);
});

test("copies: a few at a time; the others wait, and none is begun after the stop", async () => {
  let go = (): void => {};
  const gate = new Promise<undefined>((resolve) => {
    go = () => resolve(undefined);
  });
  const slow = copiesOver(() => gate);
  const begun = Array.from({ length: 10 }, (_, i) => slow.copies.begin({ ...job, copyId: `id-${i}` }));
  assert.equal(slow.copies.count, 10);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(slow.asked.length, 4, "the first four read");
  go();
  await Promise.all(begun);
  assert.equal(slow.copies.count, 0);
  const { asked, copies } = copiesOver();
  await copies.stop();
  await copies.begin(job);
  assert.deepEqual(asked, []);
});

test("copies: one from elsewhere that was left alone goes on with the same URL, ETag and parts", async () => {
  const mebibyte = 1024 * 1024;
  const totalBytes = 20 * mebibyte;
  const requests: OutgoingRequest[] = [];
  const http: HttpClient = {
    async request(request) {
      requests.push(request);
      const [, start = 0, last = 0] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "")?.map(Number) ?? [];
      const length = request.method === "HEAD" ? totalBytes : last - start + 1;
      async function* body(): AsyncGenerator<Uint8Array, undefined> {
        if (request.method === "GET") yield new Uint8Array(length);
      }
      const ranged = request.method === "GET" ? { "content-range": `bytes ${start}-${last}/${totalBytes}` } : {};
      const headers = { "content-length": String(length), etag: '"1"', ...ranged };
      return ok({ status: request.method === "GET" ? 206 : 200, headers, body: body() });
    },
    close() {},
  };
  const fromUrl = "https://files.example/a/b?sig=secret";
  const work = { copier: "gone", beatMs: BigInt(wallMs - copyStaleMs), next: 1n, fromUrl, fromEtag: '"1"' };
  const pending = { copyId: "id", status: "pending", totalBytes: BigInt(totalBytes), work };
  const { asked, copies, parts } = copiesOver((kind) =>
    kind.case === "claimCopy" ? blobAnswer({ copy: pending, blobType: "BlockBlob" }) : undefined,
  );
  parts.foreignSources = new ForeignSources(http, ["https://files.example"]);
  copies.met(to, create(BlobSchema, { copy: pending }));
  while (copies.count > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(said(asked), ["claimCopy", "add 1>2", "add 2>3", "end "]);
  assert.deepEqual(
    requests.map(({ method, target, headers }) => [method, target, headers.range, headers["if-match"]]),
    [
      ["GET", "/a/b?sig=secret", `bytes=${8 * mebibyte}-${16 * mebibyte - 1}`, '"1"'],
      ["GET", "/a/b?sig=secret", `bytes=${16 * mebibyte}-${20 * mebibyte - 1}`, '"1"'],
      ["HEAD", "/a/b?sig=secret", undefined, '"1"'],
    ],
  );
});
