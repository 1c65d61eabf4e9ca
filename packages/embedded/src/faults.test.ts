/** Fault rules as an application meets them: each one seen by the retry policy of the real SDK, by the number of its tries and its result. */
import assert from "node:assert/strict";
import { subscribe } from "node:diagnostics_channel";
import dns from "node:dns";
import { once } from "node:events";
import { type ClientRequest, get, type IncomingMessage } from "node:http";
import { mock, test } from "node:test";
import {
  type BlobDownloadResponseParsed,
  BlobSASPermissions,
  BlobServiceClient,
  type ContainerClient,
  type RestError,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { type FaultRule, type Stamp, startStamp } from "./index.ts";

/** Every request that a client of this process has sent. */
const sent: string[] = [];
subscribe("http.client.request.start", (message) => {
  const { method, path, host } = (message as { readonly request: ClientRequest }).request;
  sent.push(`${method} ${host}${path}`);
});

/** Three tries after the first, without the SDK's pauses of seconds. */
const retryOptions = { maxTries: 4, retryDelayInMs: 1, maxRetryDelayInMs: 2 };
const service = ({ connectionString }: Stamp): BlobServiceClient =>
  BlobServiceClient.fromConnectionString(connectionString, { retryOptions });

async function filled(stamp: Stamp, content: Buffer = Buffer.from("hello")): Promise<ContainerClient> {
  const container = service(stamp).getContainerClient("notes");
  await container.create();
  await container.getBlockBlobClient("note").upload(content, content.length);
  return container;
}

interface Seen {
  readonly tries: number;
  /** "ok", or status and code of the error. */
  readonly result: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function seen(work: () => Promise<unknown>): Promise<Seen> {
  sent.length = 0;
  try {
    await work();
    return { tries: sent.length, result: "ok", headers: {} };
  } catch (error) {
    const { statusCode, code, name, response } = error as RestError;
    return {
      tries: sent.length,
      result: statusCode === undefined ? name : `${statusCode} ${code}`,
      headers: response?.headers.toJSON() ?? {},
    };
  }
}

interface Case {
  readonly rule: FaultRule;
  readonly work: (container: ContainerClient) => Promise<unknown>;
  readonly tries: number;
  readonly result: string;
  readonly after?: (container: ContainerClient, headers: Seen["headers"]) => Promise<void> | void;
}

const upload = (container: ContainerClient) => container.getBlockBlobClient("new").upload("new", 3);
const read = async (container: ContainerClient, name = "note"): Promise<string> => text(await container.getBlobClient(name).download());
const text = async ({ readableStreamBody }: BlobDownloadResponseParsed): Promise<string> =>
  (await bytesOf(readableStreamBody as AsyncIterable<Uint8Array>)).toString();
async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}
const exists = (container: ContainerClient): Promise<boolean> => container.getBlobClient("new").exists();

const cases: Readonly<Record<string, Case>> = {
  "busy twice: the third try is served": {
    rule: { fault: "busy", operation: "PutBlob", count: 2 },
    work: upload,
    tries: 3,
    result: "ok",
  },
  "busy for ever: four tries, 503 with Retry-After": {
    rule: { fault: "busy", operation: "PutBlob", retryAfterSeconds: 7 },
    work: upload,
    tries: 4,
    result: "503 ServerBusy",
    after: async (container, headers) => {
      assert.equal(headers["retry-after"], "7");
      assert.equal(await exists(container), false);
    },
  },
  "an error before the commit: nothing was done, and the next try does it": {
    rule: { fault: "error-before", operation: "CreateContainer", count: 1 },
    work: (container) => container.create(),
    tries: 2,
    result: "ok",
  },
  "errors before the commit for ever: nothing was done": {
    rule: { fault: "error-before", operation: "PutBlob" },
    work: upload,
    tries: 4,
    result: "500 InternalError",
    after: async (container) => assert.equal(await exists(container), false),
  },
  "an error after the commit: the SDK's second try meets its own first one": {
    rule: { fault: "error-after", operation: "CreateContainer", count: 1 },
    work: (container) => container.create(),
    tries: 2,
    result: "409 ContainerAlreadyExists",
  },
  "errors after the commit for ever: it was done": {
    rule: { fault: "error-after", operation: "PutBlob" },
    work: upload,
    tries: 4,
    result: "500 InternalError",
    after: async (container) => assert.equal(await read(container, "new"), "new"),
  },
  "a delay: one try, served": {
    rule: { fault: "delay", operation: "PutBlob", delayMs: 5 },
    work: upload,
    tries: 1,
    result: "ok",
  },
  "an answer to a read that is cut in the middle: the SDK gives up": {
    rule: { fault: "cut", operation: "GetBlob", afterBytes: 3, count: 1 },
    work: read,
    tries: 1,
    result: "AbortError",
  },
  "no answer to a write: the SDK writes again": {
    rule: { fault: "cut", operation: "PutBlob", afterBytes: 0, count: 1 },
    work: upload,
    tries: 2,
    result: "ok",
  },
  "no answer to a HEAD": {
    rule: { fault: "cut", operation: "GetBlobProperties", afterBytes: 0, count: 1 },
    work: (container) => container.getBlobClient("note").getProperties(),
    tries: 2,
    result: "ok",
  },
};

test("faults: what the retry policy of the SDK makes of each", async () => {
  await using stamp = await startStamp();
  for (const [name, { rule, work, tries, result, after }] of Object.entries(cases)) {
    await stamp.reset();
    const container = await filled(stamp);
    const fresh = service(stamp).getContainerClient("fresh");
    await stamp.faults.add(rule);
    const found = await seen(() => work(rule.operation === "CreateContainer" ? fresh : container));
    const hits = (await stamp.faults.list())[0]?.hits;
    assert.equal(await stamp.faults.remove(), 1);
    assert.deepEqual({ tries: found.tries, result: found.result }, { tries, result }, name);
    assert.equal(hits, rule.fault === "delay" ? 1 : result === "ok" || rule.count === 1 ? (rule.count ?? 1) : 4, name);
    await after?.(container, found.headers);
  }
});

test("faults: a block that is appended again after an error behind the commit is there twice, unless its place is named", async () => {
  await using stamp = await startStamp();
  const container = await filled(stamp);
  const log = container.getAppendBlobClient("log");
  await log.create();
  await stamp.faults.add({ fault: "error-after", operation: "AppendBlock", count: 1 });
  assert.deepEqual((await seen(() => log.appendBlock("x", 1))).tries, 2);
  assert.equal(await read(container, "log"), "xx");
  await stamp.faults.add({ fault: "error-after", operation: "AppendBlock", count: 1 });
  const found = await seen(() => log.appendBlock("y", 1, { conditions: { appendPosition: 2 } }));
  assert.deepEqual([found.tries, found.result], [2, "412 AppendPositionConditionNotMet"]);
  assert.equal(await read(container, "log"), "xxy");
});

test("faults: an answer of 1 MiB that is cut has the bytes before the cut, whatever the door's chunks", async () => {
  await using stamp = await startStamp();
  const content = Buffer.alloc(1024 * 1024, "0123456789abcdef");
  const container = await filled(stamp, content);
  await stamp.faults.add({ fault: "cut", operation: "GetBlob", afterBytes: 300_001, count: 2 });
  const url = await container.getBlobClient("note").generateSasUrl({
    permissions: BlobSASPermissions.parse("r"),
    expiresOn: new Date(Date.now() + 3_600_000),
  });
  for (const range of [undefined, "bytes=16-"]) {
    const [answer] = (await once(get(url, range === undefined ? {} : { headers: { range } }), "response")) as [IncomingMessage];
    const pieces: Buffer[] = [];
    answer.on("data", (piece: Buffer) => pieces.push(piece));
    await assert.rejects(once(answer, "end"), { code: "ECONNRESET" });
    assert.ok(Buffer.concat(pieces).equals(content.subarray(0, 300_001)));
  }
  const [whole] = (await once(get(url), "response")) as [IncomingMessage];
  assert.ok((await bytesOf(whole)).equals(content));
});

test("faults: a throttle refuses what is beyond its rate, and only that", async () => {
  await using stamp = await startStamp();
  const container = await filled(stamp);
  await stamp.faults.add({ fault: "throttle", operation: "GetBlobProperties", perSecond: 1 });
  const tryOnce = BlobServiceClient.fromConnectionString(stamp.connectionString, { retryOptions: { maxTries: 1 } });
  const note = tryOnce.getContainerClient(container.containerName).getBlobClient("note");
  const found: string[] = [];
  for (let i = 0; i < 20; i++) found.push((await seen(() => note.getProperties())).result);
  const [state] = await stamp.faults.list();
  assert.equal(found[0], "ok");
  // A HEAD has no body, in which the code would be.
  assert.equal(found.filter((result) => result.startsWith("503")).length, state?.hits);
  assert.equal(found.filter((result) => result === "ok").length, 20 - (state?.hits ?? 0));
});

test("faults: with a stale secondary a read goes to the secondary, is not found there, and comes back", async (context) => {
  await using stamp = await startStamp();
  await filled(stamp);
  // Names of the hosts of accounts, as a name service would have them.
  context.after(() => mock.restoreAll());
  mock.method(dns, "lookup", (_host: string, options: { readonly all?: boolean }, done: (...found: unknown[]) => void) =>
    options.all === true ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4),
  );
  const { port } = new URL(stamp.endpoints.blob);
  const key = /AccountKey=([^;]*)/.exec(stamp.connectionString)?.[1] ?? "";
  const account = "devstoreaccount1";
  const hostOf = (name: string): string => `${name}.blob.localhost`;
  const credential = new StorageSharedKeyCredential(account, key);
  const options = { retryOptions: { ...retryOptions, secondaryHost: hostOf(`${account}-secondary`) } };
  const client = new BlobServiceClient(`http://${hostOf(account)}:${port}`, credential, options);
  const note = client.getContainerClient("notes").getBlobClient("note");
  const secondary = new BlobServiceClient(`http://${hostOf(`${account}-secondary`)}:${port}`, credential, { retryOptions });
  const hosts = (): string[] =>
    sent
      .map((line) => /\/\/?|-secondary/.exec(line.split(" ")[1] ?? "")?.[0] ?? "")
      .map((part) => (part === "-secondary" ? "secondary" : "primary"));

  assert.equal((await seen(() => secondary.getContainerClient("notes").getBlobClient("note").getProperties())).result.slice(0, 3), "403");
  await stamp.faults.add({ fault: "stale-secondary", behindMs: 3_600_000 });
  await stamp.faults.add({ fault: "busy", operation: "GetBlob", count: 1 });
  assert.equal((await seen(async () => assert.equal(await text(await note.download()), "hello"))).result, "ok");
  assert.deepEqual(hosts(), ["primary", "secondary", "primary"]);
  const { geoReplication } = await secondary.getStatistics();
  assert.equal(geoReplication?.status, "live");
  assert.ok((geoReplication?.lastSyncOn?.getTime() ?? Number.NaN) <= Date.now() - 3_600_000);
  const found = await seen(() => secondary.getContainerClient("other").create());
  assert.equal(found.result.slice(0, 3), "403");
  await stamp.faults.remove();
  assert.equal((await seen(() => secondary.getContainerClient("notes").getBlobClient("note").getProperties())).result.slice(0, 3), "403");
});

test("faults: a request that is delayed while the stamp stops is served, and does not hold up the end", async () => {
  await using stamp = await startStamp();
  const container = await filled(stamp);
  await stamp.faults.add({ fault: "delay", operation: "PutBlob", delayMs: 100_000 });
  const asked = seen(() => upload(container));
  while ((await stamp.faults.list())[0]?.hits === 0) await new Promise((resolve) => setImmediate(resolve));
  const [{ tries, result }] = await Promise.all([asked, stamp.stop()]);
  assert.deepEqual([tries, result], [1, "ok"]);
});

test("faults: wrong rules are refused in words, and rules end with their front-end", async () => {
  await using stamp = await startStamp();
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [{ fault: "slow" }, /fault: .*"busy"/],
    [{ fault: "delay" }, /delayMs: delay needs it/],
    [{ fault: "busy", delayMs: 5 }, /delayMs: busy takes none/],
    [{ fault: "busy", operation: "PutBlobs" }, /operation: the name of an operation/],
    [{ fault: "busy", share: 0 }, /share/],
    [{ fault: "busy", colour: "red" }, /colour/],
    [{ fault: "busy", header: "a b" }, /header: NAME, or NAME: VALUE/],
    [{ fault: "busy", startsAfterMs: 5, endsAfterMs: 5 }, /endsAfterMs: it has to be above startsAfterMs/],
    [undefined, /the rule/],
  ];
  for (const [rule, said] of wrong) await assert.rejects(stamp.faults.add(rule as FaultRule), said);
  assert.equal(await stamp.faults.add({ fault: "busy", id: "mine", service: undefined }), "mine");
  await assert.rejects(stamp.faults.add({ fault: "busy", id: "mine" }), /there is a fault rule mine/);
  assert.equal(await stamp.faults.add({ fault: "busy" }), "rule-1");
  assert.equal(await stamp.faults.remove("mine"), 1);
  assert.equal(await stamp.faults.remove("mine"), 0);
  await stamp.reset();
  assert.deepEqual(await stamp.faults.list(), []);
  await stamp.faults.add({ fault: "busy" });
  await stamp.kill("front-end-1");
  await assert.rejects(stamp.faults.list(), /front-end-1 is down/);
  await stamp.start("front-end-1");
  assert.deepEqual(await stamp.faults.list(), []);
});
