import assert from "node:assert/strict";
import { test } from "node:test";
import { release, unwrap } from "@stamp/base";
import type { Clock, World } from "@stamp/ports";
import { type GetStatusResponse, Status } from "@stamp/wire";
import { statusService } from "./status-service.ts";

const clockAt = (now: { monotonicMs: number; wallMs: number; suspendedMs: number }): Clock => ({
  monotonicMs: () => now.monotonicMs,
  wallMs: () => now.wallMs,
  suspendedMs: () => now.suspendedMs,
  after: () => ({ cancel: () => {} }),
});

test("status: tells the release, the wall clock, and how far it was set, not how long the machine was suspended", async () => {
  const now = { monotonicMs: 1_000.5, wallMs: 1_700_000_000_000, suspendedMs: 0 };
  const world = { clock: clockAt(now) } as unknown as World;
  const service = statusService(world, "extent-node", "extent-node-1", () => ({
    ready: true,
    waitingFor: [],
    state: "serving",
    facts: {},
  }));
  const ask = service.handlers[Status.method.getStatus.localName] as unknown as (request: object) => Promise<never>;
  const status = async (): Promise<GetStatusResponse> => unwrap(await ask({ withoutFacts: true }));
  const first = await status();
  assert.deepEqual([first.release, first.wallMs, first.wallSetMs], [release, 1_700_000_000_000n, 0n]);
  now.monotonicMs += 5_000;
  now.suspendedMs += 60_000;
  now.wallMs += 65_000;
  assert.equal((await status()).wallSetMs, 0n);
  now.wallMs -= 3_000;
  assert.equal((await status()).wallSetMs, -3_000n);
  assert.equal((await status()).uptimeMs, 5_000n);
});
