/** Traces of requests at a collector of OpenTelemetry: one trace through all roles that work for a request. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { BlobSASPermissions, BlobServiceClient } from "@azure/storage-blob";
import { type Logger, silentLogger } from "@stamp/ports";
import { type OtlpTracer, otlpTracer } from "@stamp/ports-node";
import { startStamp, threeOnDisk } from "./index.ts";

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}

interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number; readonly message?: string };
}

interface Received extends ReceivedSpan {
  readonly service: string;
  readonly instance: string;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
}

const textOf = (attributes: readonly Attribute[], key: string): string =>
  attributes.find((each) => each.key === key)?.value.stringValue ?? "";

interface Collector {
  readonly endpoint: string;
  readonly spans: readonly Received[];
  /** Status with which it answers. */
  status: number;
}

/** A collector that takes spans over OTLP/HTTP as JSON. */
async function collector(t: TestContext): Promise<Collector> {
  const spans: Received[] = [];
  const received = { endpoint: "", spans, status: 200 };
  const server: Server = createServer(async (request, response) => {
    assert.equal(request.url, "/v1/traces");
    const { resourceSpans } = JSON.parse(await text(request)) as Export;
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = textOf(resource.attributes, "service.name");
      const instance = textOf(resource.attributes, "service.instance.id");
      for (const each of scopeSpans.flatMap((scope) => scope.spans)) spans.push({ ...each, service, instance });
    }
    response.writeHead(received.status, { "Content-Type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  received.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return received;
}

const tracerFor = (name: string, endpoint: string, logger: Logger = silentLogger, share = 1): Promise<OtlpTracer> =>
  otlpTracer({ endpoint, share, role: name.replace(/-\d+$/, ""), name, release: "0.0.0", logger });

const traceId = "0af7651916cd43dd8448eb211c80319c";
const clientSpan = "b7ad6b7169203331";

test("traces: a put is one trace of front-end, partition server and three extent nodes, below the span of its client", async (t) => {
  const told = await collector(t);
  const names = ["front-end-1", "partition-server-1", "extent-node-1", "extent-node-2", "extent-node-3"];
  const tracers = new Map(await Promise.all(names.map(async (name) => [name, await tracerFor(name, told.endpoint)] as const)));
  const none = await tracerFor("other", told.endpoint);
  const stamp = await startStamp({ ...threeOnDisk, tracerOf: (name) => tracers.get(name) ?? none });
  t.after(() => stamp.stop());
  const container = BlobServiceClient.fromConnectionString(stamp.connectionString).getContainerClient("traced");
  await container.create();
  const expiresOn = new Date(Date.now() + 3_600_000);
  const url = await container.getBlockBlobClient("a").generateSasUrl({ permissions: BlobSASPermissions.parse("cw"), expiresOn });
  const put = async (flags: string): Promise<string> => {
    const headers = { "x-ms-blob-type": "BlockBlob", traceparent: `00-${traceId}-${clientSpan}-${flags}` };
    const { status, headers: answered } = await fetch(url, { method: "PUT", headers, body: "hello" });
    assert.equal(status, 201);
    return answered.get("x-ms-request-id") ?? "";
  };
  const requestId = await put("01");
  await put("00");
  await Promise.all([...tracers.values(), none].map((tracer) => tracer.close()));

  const spans = told.spans.filter((each) => each.traceId === traceId);
  const named = spans.map(({ instance, name }) => `${instance.replace(/-\d+$/, "")} ${name}`).sort();
  assert.deepEqual(named, [
    "extent-node ExtentNode/Append",
    "extent-node ExtentNode/Replicate",
    "extent-node ExtentNode/Replicate",
    "front-end blob request",
    "partition-server PartitionServer/Execute",
  ]);
  assert.equal(new Set(spans.map(({ instance }) => instance)).size, 5);
  const chain = ["blob request", "PartitionServer/Execute", "ExtentNode/Append", "ExtentNode/Replicate"];
  let above = clientSpan;
  for (const name of chain) {
    const found = spans.filter((each) => each.name === name);
    for (const span of found) {
      assert.equal(span.parentSpanId, above, name);
      assert.equal(textOf(span.attributes, "stamp.request_id"), requestId, name);
    }
    above = found[0]?.spanId ?? "";
  }
  const [door] = spans.filter(({ service }) => service === "stamp-front-end");
  assert.equal(textOf(door?.attributes ?? [], "stamp.operation"), "PutBlob");
  // The container was created without a traceparent: a trace of its own.
  assert.ok(told.spans.some((each) => each.name === "blob request" && each.parentSpanId === undefined && each.traceId !== traceId));
  assert.ok(told.spans.every(({ service }) => service !== "stamp-other"));
});

test("traces: a collector that refuses is told once, and once more when it takes spans again", async (t) => {
  const told = await collector(t);
  const lines: string[] = [];
  let heard = Promise.withResolvers<void>();
  const hear = (message: string): void => {
    lines.push(message);
    heard.resolve();
  };
  const tracer = await tracerFor("front-end-1", told.endpoint, { ...silentLogger, warn: hear, info: hear });
  t.after(() => tracer.close());
  told.status = 400;
  tracer.begin("one", undefined, {}).end({});
  await heard.promise;
  heard = Promise.withResolvers();
  while (told.spans.length < 2) {
    tracer.begin("two", undefined, {}).end({}, "failed");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  told.status = 200;
  tracer.begin("three", undefined, {}).end({});
  await heard.promise;
  assert.deepEqual(lines, ["the collector takes no spans; they are dropped", "the collector takes spans again"]);
  assert.deepEqual(told.spans.find(({ name }) => name === "two")?.status, { code: 2, message: "failed" });
});

test("traces: with a share of 0 only requests are traced whose client says so", async (t) => {
  const told = await collector(t);
  const tracer = await tracerFor("front-end-1", told.endpoint, silentLogger, 0);
  assert.match(tracer.begin("own", undefined, {}).traceparent, /-00$/);
  const asked = tracer.begin("asked", `00-${traceId}-${clientSpan}-01`, {});
  assert.match(asked.traceparent, new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
  asked.end({});
  await tracer.close();
  assert.deepEqual(
    told.spans.map(({ name }) => name),
    ["asked"],
  );
});
