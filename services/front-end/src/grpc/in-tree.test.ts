/** Calls on an account with a hierarchical namespace: those on blobs would go past the tree, so each of them is refused before anything is asked. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { defaultServiceProperties, makeToken } from "@stamp/azure-rest";
import { FailureError, ok } from "@stamp/base";
import type { CallContext } from "@stamp/ports";
import { FrontEnd } from "@stamp/wire";
import { frontEndHandlers, type GrpcDoorParts } from "./grpc.ts";

const account = "lake";
const key = Uint8Array.of(1, 2, 3);
const hmacSha256 = (secret: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", secret).update(message).digest();

/** Handlers of an account, and what they asked for: the test's objects answer nothing. */
function started(hierarchicalNamespace: boolean) {
  const asked: string[] = [];
  const noted: ProxyHandler<object> = {
    get: (_target, name) => {
      asked.push(String(name));
      throw new Error("asked");
    },
  };
  const properties = { ...defaultServiceProperties, hierarchicalNamespace };
  const known = { kind: "known", keys: [key], wellKnownKeys: [], serviceProperties: { blob: properties }, role: undefined };
  const digest = { hmacSha256, equal: (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0 };
  const parts = {
    world: { digest, clock: { wallMs: () => 0, monotonicMs: () => 0 } },
    accounts: { find: async () => ok(known), roleKnown: () => ok(undefined) },
    objects: new Proxy(
      { tables: {}, parts: { queues: {} } },
      { get: (target, name) => Reflect.get(target, name) ?? noted.get?.({}, name, {}) },
    ),
  } as unknown as GrpcDoorParts;
  const token = makeToken({ account, expiresMs: 1_000 }, key, hmacSha256);
  const context = {
    deadlineMs: 1_000,
    signal: new AbortController().signal,
    metadata: { authorization: `Bearer ${token}` },
  } as unknown as CallContext;
  const handlers = frontEndHandlers(parts) as unknown as Record<string, (request: unknown, context: CallContext) => unknown>;
  return { asked, handlers, context };
}

const request = { account, container: "fs", blob: "d/f", conditions: undefined, maxResults: 0, payload: new Uint8Array(0) };

async function* once(): AsyncGenerator<unknown> {
  yield request;
}

/** Code of the failure; "asked" if the call went on to what is stored. */
async function outcomeOf(name: string, hierarchical: boolean): Promise<string> {
  const { handlers, context } = started(hierarchical);
  const handler = handlers[name] as (request: unknown, context: CallContext) => unknown;
  try {
    const result = handler(name === "putBlob" ? once() : request, context);
    const answer =
      Symbol.asyncIterator in (result as object)
        ? await (result as AsyncGenerator<unknown>).next().then(() => ({ ok: true as const }))
        : ((await result) as { ok: boolean; failure?: { code: string } });
    return answer.ok ? "ok" : ((answer as { failure?: { code: string } }).failure?.code ?? "");
  } catch (error) {
    return error instanceof FailureError ? error.failure.code : "asked";
  }
}

test("grpc door: every call on blobs of an account with directories is refused by name, and goes on in a flat account", async () => {
  const onBlobs = Object.keys(FrontEnd.method).filter((name) => /blob/i.test(name));
  assert.deepEqual(onBlobs, ["putBlob", "getBlob", "getBlobProperties", "listBlobs", "deleteBlob", "locateBlob"]);
  for (const name of onBlobs) {
    assert.equal(await outcomeOf(name, true), "unimplemented", name);
    assert.equal(await outcomeOf(name, false), "asked", name);
  }
});

test("grpc door: whatever names a blob is one of those calls, so that a new one is looked at here", () => {
  const naming = Object.entries(FrontEnd.method).filter(([, { input }]) => input.fields.some(({ localName }) => localName === "blob"));
  assert.deepEqual(
    naming.map(([name]) => name),
    ["putBlob", "getBlob", "getBlobProperties", "deleteBlob", "locateBlob"],
  );
});
