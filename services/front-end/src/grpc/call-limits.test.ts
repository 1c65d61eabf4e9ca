/** Calls of the gRPC door carry the trace of their caller. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { defaultServiceProperties, makeToken, parsed } from "@stamp/azure-rest";
import { ok } from "@stamp/base";
import type { CallContext } from "@stamp/ports";
import type { CallLimits } from "../routing/router.ts";
import { frontEndHandlers, type GrpcDoorParts } from "./grpc.ts";

const account = "acme";
const key = Uint8Array.of(1, 2, 3);
const hmacSha256 = (secret: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", secret).update(message).digest();
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("gRPC door: what a call asks of partition servers has the trace of its caller, and no cause without one", async () => {
  const causes: unknown[] = [];
  const known = { kind: "known", keys: [key], wellKnownKeys: [], serviceProperties: { blob: defaultServiceProperties }, role: undefined };
  const digest = { hmacSha256, equal: (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0 };
  const listContainers = async (_question: object, { cause }: CallLimits) => {
    causes.push(cause);
    return parsed({ containers: [] });
  };
  const parts = {
    world: { digest, clock: { wallMs: () => 0, monotonicMs: () => 0 } },
    accounts: { find: async () => ok(known), roleKnown: () => ok(undefined) },
    objects: { tables: {}, parts: { queues: {} }, listContainers },
  } as unknown as GrpcDoorParts;
  const authorization = `Bearer ${makeToken({ account, expiresMs: 1_000 }, key, hmacSha256)}`;
  const { listContainers: list } = frontEndHandlers(parts);
  const traced = { "request-id": "a-1", traceparent };
  for (const some of [traced, { traceparent }, {}]) {
    const { signal } = new AbortController();
    const context = { deadlineMs: 1_000, signal, metadata: { authorization, ...some } } as unknown as CallContext;
    const { ok: isDone } = await list({ account, prefix: "", marker: "", maxResults: 0 } as Parameters<typeof list>[0], context);
    assert.ok(isDone);
  }
  assert.deepEqual(causes, [traced, { "request-id": "0af7651916cd43dd8448eb211c80319c", traceparent }, undefined]);
});
