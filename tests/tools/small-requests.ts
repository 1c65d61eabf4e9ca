/**
 * `node tests/tools/small-requests.ts [requests]`: small requests over one connection to a cluster of its own, and where their milliseconds go.
 * For each kind of request: the latency, and per request the time that each role's threads ran and waited for a processor (schedstat of
 * Linux). On a busy machine the waits are the latency; the time that threads ran is comparable between machines.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";

/** How the client sends a body: with the head, after it, or when the server has answered `100 Continue`. */
type Sending = "together" | "apart" | "expect";
interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
  readonly sending?: Sending;
}

const count = Number(process.argv[2] ?? "200");
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const cluster = await startOwn({}, false);
const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(cluster.connectionString)?.[1] ?? "";
const rights = generateAccountSASQueryParameters(
  {
    expiresOn: new Date(Date.now() + 3_600_000),
    permissions: AccountSASPermissions.parse("rwdacup"),
    services: AccountSASServices.parse("bq").toString(),
    resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
  },
  new StorageSharedKeyCredential(part("AccountName"), part("AccountKey")),
).toString();
const { processes } = await cluster.status();

/** Sends one request and returns the body of its answer. A status of 300 or more throws. */
function ask({ method, url, headers = {}, body = Buffer.alloc(0), sending = "together" }: Asked): Promise<string> {
  return new Promise((done, failed) => {
    const length = method === "GET" || method === "HEAD" ? {} : { "content-length": body.length };
    const expect = sending === "expect" ? { expect: "100-continue" } : {};
    const outgoing = request(url, { method, agent, headers: { "x-ms-version": "2024-11-04", ...length, ...expect, ...headers } });
    outgoing.on("error", failed).on("response", (answer: IncomingMessage) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () => ((answer.statusCode ?? 500) < 300 ? done(text) : failed(new Error(`${answer.statusCode}: ${text}`))));
    });
    if (sending === "together") outgoing.end(body);
    else {
      outgoing.flushHeaders();
      if (sending === "expect") outgoing.once("continue", () => outgoing.end(body));
      else setImmediate(() => outgoing.end(body));
    }
  });
}

/** Time that the threads of each role have run and have waited for a processor, in milliseconds. */
function schedule(): Map<string, { ran: number; waited: number }> {
  const roles = new Map<string, { ran: number; waited: number }>();
  for (const { name, pid } of [...processes, { name: "client-0", pid: process.pid }]) {
    const role = name.replace(/-\d+$/, "");
    const sum = roles.get(role) ?? { ran: 0, waited: 0 };
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ").map(Number);
      sum.ran += ran / 1e6;
      sum.waited += waited / 1e6;
    }
    roles.set(role, sum);
  }
  return roles;
}

async function measure(title: string, asked: (index: number) => Asked): Promise<string[]> {
  const answers: string[] = [];
  const latencies: number[] = [];
  const before = schedule();
  for (let index = 0; index < count; index++) {
    const startMs = performance.now();
    answers.push(await ask(asked(index)));
    latencies.push(performance.now() - startMs);
  }
  const after = schedule();
  latencies.sort((a, b) => a - b);
  const at = (share: number): string => (latencies[Math.floor(share * (count - 1))] ?? 0).toFixed(1);
  const roles = ["client", "front-end", "partition-server", "extent-node"].map((role) => {
    const per = (kind: "ran" | "waited"): string => (((after.get(role)?.[kind] ?? 0) - (before.get(role)?.[kind] ?? 0)) / count).toFixed(1);
    return `${per("ran")} + ${per("waited")}`;
  });
  // A delayed acknowledgement of TCP would show as a step at 40 ms.
  const delayed = latencies.filter((each) => each > 38 && each < 46).length;
  console.log(`| ${[title, at(0), at(0.5), at(0.9), delayed, ...roles].join(" | ")} |`);
  return answers;
}

try {
  const name = `small${Date.now()}`;
  const blob = (path: string, query = ""): string => `${part("BlobEndpoint")}/${name}${path}?${query}${rights}`;
  const queue = (path: string, query = ""): string => `${part("QueueEndpoint")}/${name}${path}?${query}${rights}`;
  const put = (letter: string, bytes: number, sending: Sending) => (index: number) => ({
    ...{ method: "PUT", url: blob(`/${letter}${index}`), headers: { "x-ms-blob-type": "BlockBlob" }, body: randomBytes(bytes), sending },
  });
  const copy = (letter: string) => (index: number) => ({
    ...{ method: "PUT", url: blob(`/copy-${letter}${index}`), headers: { "x-ms-copy-source": blob(`/${letter}${index}`) } },
  });
  await ask({ method: "PUT", url: blob("", "restype=container&") });
  await ask({ method: "PUT", url: queue("") });
  console.log("| request | min | median | 90 % | 38-46 ms | client ran + waited | front-end | partition server | extent nodes |");
  console.log("|---|---|---|---|---|---|---|---|---|");
  await measure("warming up", put("a", 2_000, "together"));
  await measure("put 2 kB, head and body together", put("a", 2_000, "together"));
  await measure("put 2 kB, head and body apart", put("b", 2_000, "apart"));
  await measure("put 2 kB, Expect: 100-continue", put("c", 2_000, "expect"));
  await measure("put 40 kB", put("d", 40_000, "together"));
  await measure("head", (index) => ({ method: "HEAD", url: blob(`/a${index}`) }));
  await measure("get 2 kB", (index) => ({ method: "GET", url: blob(`/a${index}`) }));
  await measure("get 40 kB", (index) => ({ method: "GET", url: blob(`/d${index}`) }));
  await measure("copy 2 kB", copy("a"));
  await measure("copy 40 kB", copy("d"));
  const message = Buffer.from("<QueueMessage><MessageText>hello</MessageText></QueueMessage>");
  await measure("put message", () => ({ method: "POST", url: queue("/messages"), body: message, sending: "apart" }));
  const received = await measure("get message", () => ({ method: "GET", url: queue("/messages") }));
  await measure("delete message", (index) => {
    const [, id, receipt] = /<MessageId>([^<]+).*<PopReceipt>([^<]+)/.exec(received[index] ?? "") ?? [];
    assert.ok(id !== undefined && receipt !== undefined);
    return { method: "DELETE", url: queue(`/messages/${id}`, `popreceipt=${encodeURIComponent(receipt)}&`) };
  });
} finally {
  agent.destroy();
  await cluster.close();
}
process.exit(0);
