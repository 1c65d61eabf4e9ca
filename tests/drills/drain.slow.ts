/**
 * The stop of a front-end of a real cluster, with a transfer on every door. `/ready` answers 503 first, and every door serves on. Then all
 * doors (blob, queue, table, gRPC) refuse at the same time, while transfers in progress go on. A transfer that ends in time is acknowledged;
 * the others are cut at the deadline, and one line of the log for each door counts them.
 */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  AccountSASPermissions,
  BlobServiceClient,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { makeToken } from "@stamp/azure-rest";
import { GrpcSignalChannel } from "@stamp/coordination";
import { startOwn } from "@stamp/drills";
import { GrpcAvailability } from "@stamp/endpoints";
import { FrontEnd } from "@stamp/wire";

const roles = { "front-end": { stopNotReadyMs: 2_500, stopDrainMs: 6_000 } };
const target = await startOwn({ frontEnds: 2, streamManagers: 1, partitionManagers: 1, roles, stopTimeoutMs: 20_000 }, false);
after(() => target.close());

const part = (name: string, from = target.connectionString): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(from)?.[1] ?? "";
const account = part("AccountName");
const key = part("AccountKey");
const signature = generateAccountSASQueryParameters(
  {
    services: "bqt",
    resourceTypes: "sco",
    permissions: AccountSASPermissions.parse("rwdlacup"),
    expiresOn: new Date(Date.now() + 3_600_000),
  },
  new StorageSharedKeyCredential(account, key),
).toString();
const [leaving = "", staying = ""] = target.connectionStrings;
const { dataDir, processes } = await target.status();
const process1 = processes.find(({ name }) => name === "front-end-1");
assert.ok(process1?.pid);
const doors = { blob: "BlobEndpoint", queue: "QueueEndpoint", table: "TableEndpoint" } as const;
type Door = keyof typeof doors;
const names = Object.keys(doors) as Door[];
const endpoint = (door: Door): string => part(doors[door], leaving);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 600, what);
    await pause(20);
  }
}

interface Transfer {
  /** "201" or the like, or the code of the error with which the connection ended. */
  readonly answer: Promise<string>;
  readonly over: () => boolean;
  /** Sends the rest. */
  readonly finish: () => void;
}

const head = Buffer.alloc(64 * 1024, "h");
const content: Readonly<Record<Door, (name: string) => [method: string, path: string, type: string, body: string]>> = {
  blob: (name) => ["PUT", `/drained/${name}?`, "application/octet-stream", "h".repeat(2 * head.length)],
  queue: (name) => ["POST", `/drained/messages?`, "application/xml", `<QueueMessage><MessageText>${name}</MessageText></QueueMessage>`],
  table: (name) => ["POST", `/drained?`, "application/json", JSON.stringify({ PartitionKey: "p", RowKey: name })],
};

/** Begins a request and sends the first half of its body. */
function begin(door: Door, name: string, from = endpoint(door)): Transfer {
  const [method, path, type, text] = content[door](name);
  const body = Buffer.from(text);
  const answer = Promise.withResolvers<string>();
  const own: Record<string, string> = door === "blob" ? { "x-ms-blob-type": "BlockBlob" } : {};
  const headers = { ...own, "Content-Type": type, "Content-Length": body.length, Accept: "application/json;odata=nometadata" };
  const sent: ClientRequest = request(`${from}${path}${signature}`, {
    method,
    headers: { ...headers, "x-ms-version": "2021-08-06", "x-ms-date": new Date().toUTCString(), DataServiceVersion: "3.0;NetFx" },
    agent: false,
  });
  let over = false;
  const end = (how: string): void => {
    over = true;
    answer.resolve(how);
  };
  sent.on("response", (got: IncomingMessage) => got.resume().on("end", () => end(String(got.statusCode))));
  sent.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  const half = Math.floor(body.length / 2);
  sent.write(body.subarray(0, half));
  return { answer: answer.promise, over: () => over, finish: () => sent.end(body.subarray(half)) };
}

const token = makeToken({ account, expiresMs: Date.now() + 3_600_000 }, Buffer.from(key, "base64"), (by, message) =>
  createHmac("sha256", by).update(message).digest(),
);
const metadata = { authorization: `Bearer ${token}` };
const grpc = target.transport.client(process1.grpc, FrontEnd);

/** A `PutBlob` over gRPC that has sent half of its blob. */
function beginGrpc(name: string): Transfer {
  const finish = Promise.withResolvers<void>();
  async function* pieces() {
    yield { account, container: "drained", blob: name, payload: head };
    await finish.promise;
    yield { payload: head };
  }
  let over = false;
  const answer = grpc.putBlob(pieces(), { timeoutMs: 60_000, metadata }).then((outcome) => {
    over = true;
    return outcome.ok ? "201" : `${outcome.failure.message}; applied: ${outcome.failure.applied}`;
  });
  return { answer, over: () => over, finish: finish.resolve };
}

const properties = async (blob: string): Promise<boolean> =>
  (await grpc.getBlobProperties({ account, container: "drained", blob }, { timeoutMs: 5_000, metadata })).ok;

const refuses = (address: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(address.includes("//") ? address : `http://${address}`);
    const socket = connect(Number(port), hostname);
    socket.on("connect", () => resolve(false)).on("error", () => resolve(true));
    socket.on("connect", () => socket.destroy());
  });

test("a front-end that stops: 503 first, then all doors at once; transfers end, or are cut at the deadline", async () => {
  const container = BlobServiceClient.fromConnectionString(staying).getContainerClient("drained");
  await container.create();
  await container.getBlockBlobClient("there").upload("x", 1);
  const made = async (url: string, method: string, body?: string): Promise<void> => {
    const headers = { "Content-Type": "application/json", "x-ms-version": "2021-08-06", Accept: "application/json;odata=nometadata" };
    const answer = await fetch(url, { method, headers, ...(body && { body }) });
    assert.equal(answer.status, 201, await answer.text());
  };
  await made(`${endpoint("queue")}/drained?${signature}`, "PUT");
  await made(`${endpoint("table")}/Tables?${signature}`, "POST", JSON.stringify({ TableName: "drained" }));

  const heard: unknown[] = [];
  const channel = new GrpcSignalChannel({ addresses: [process1.grpc], account, accountKey: key, onError: (error) => heard.push(error) });
  let connected = false;
  const subscription = channel.subscribe(
    "drained",
    () => {},
    (now) => {
      connected = now;
    },
  );
  after(() => {
    subscription.close();
    channel.close();
  });
  await until("the subscription is there", () => connected);
  const begun = (name: string): Transfer[] => [...names.map((door) => begin(door, name)), beginGrpc(name)];
  const [ending, tooLong] = [begun("ending"), begun("too-long")];
  await pause(500);

  process.kill(process1.pid ?? 0, "SIGTERM");
  const ready = (): Promise<Response> => fetch(`http://${process1.http}/ready`);
  await until("/ready answers 503", async () => (await ready()).status === 503);
  assert.equal(await new GrpcAvailability().ask(process1.grpc, AbortSignal.timeout(5_000)), false, "the front-end says it too");
  const late = names.map((door) => begin(door, "late"));
  for (const each of late) each.finish();
  assert.deepEqual(await Promise.all(late.map(({ answer }) => answer)), ["201", "201", "201"], "the doors serve on");
  assert.ok(await properties("there"), "the gRPC door serves on");

  const addresses = [...names.map(endpoint), process1.grpc];
  await until("one door refuses", async () => (await Promise.all(addresses.map(refuses))).includes(true));
  await until("all doors refuse", async () => !(await Promise.all(addresses.map(refuses))).includes(false));
  assert.equal((await ready()).status, 503, "the health door answers to the end");
  assert.deepEqual([...ending, ...tooLong].filter(({ over }) => over()).length, 0, "while all transfers go on");
  await until("the subscription ends, so that its program listens elsewhere", () => !connected);
  assert.match(String(heard[0]), /this front-end stops; try another one/);
  for (const each of ending) each.finish();
  assert.deepEqual(await Promise.all(ending.map(({ answer }) => answer)), ["201", "201", "201", "201"]);
  const cut = await Promise.all(tooLong.map(({ answer }) => answer));
  for (const code of cut.slice(0, 3)) assert.match(code, /^ECONNRESET$/);
  assert.equal(cut[3], "the service stopped before the call was over; applied: unknown");

  await until("the process has ended and is back", async () => {
    const now = (await target.status()).processes.find(({ name }) => name === "front-end-1");
    return now?.pid !== null && now?.pid !== process1.pid;
  });
  const log = readFileSync(join(dataDir, "logs", "front-end-1.log"), "utf8");
  const told = [...log.matchAll(/"door":"(\w+)","requests":(\d+)[^\n]*requests were cut/g)].map(
    ([, door, requests]) => `${door} ${requests}`,
  );
  assert.deepEqual(told.sort(), ["blob 1", "grpc 1", "queue 1", "table 1"]);
  assert.match(log, /"msg":"stopped"/, "it ended as asked");
  assert.equal((await container.getBlockBlobClient("ending").getProperties()).contentLength, 2 * head.length);
  assert.equal(await container.getBlockBlobClient("too-long").exists(), false);
});
