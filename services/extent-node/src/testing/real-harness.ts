/** The stamp's answers to a real extent node in a test: its id, and the term of the stream manager. */
import assert from "node:assert/strict";
import { type Outcome, ok, refused } from "@stamp/base";
import { type Listener, served, type World } from "@stamp/ports";
import { LockService, MetadataStore } from "@stamp/wire";
import type { ExtentNodeRole } from "../extent-node.ts";

export const stampId = "3f6f0d1e-0000-4000-8000-000000000002";
export const timeoutMs = 10_000;
export const loopback = "127.0.0.1:0";

export async function serveLock(world: World): Promise<Listener> {
  const no = async (): Promise<Outcome<never>> => refused("unavailable", "notReady", "not in this test");
  return world.transport.serve(loopback, [
    served(MetadataStore, {
      getKeys: no,
      listKeys: no,
      readChanges: no,
      transact: no,
      readSnapshot: no,
      getStamp: async () => ok({ stampId }),
    }),
    served(LockService, {
      acquireLease: no,
      renewLease: no,
      releaseLease: no,
      refuseRenewals: no,
      listLeases: no,
      getLease: async () => ok({ leaseEpoch: 1n }),
    }),
  ]);
}

export async function untilReady(role: ExtentNodeRole): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!role.status.ready) {
    assert.ok(performance.now() < endMs, `ready in time: ${role.status.waitingFor}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
