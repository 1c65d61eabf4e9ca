import assert from "node:assert/strict";
import { test } from "node:test";
import { callers } from "@stamp/wire";
import { otherKey, otherLease, otherTransaction } from "./confined.ts";

const transaction = (leaseName: string, condition: string, write: string) => ({
  fence: { leaseName, leaseEpoch: 1 },
  conditions: [{ key: condition, version: 0 }],
  writes: [{ key: write }],
});

test("confined: a location service has its own lease and records at a lock service, other roles are not bounded here", () => {
  const own = "location/stamps/north-1";
  for (const caller of [...callers, undefined]) {
    const bounded = caller === "location-service";
    assert.equal(otherLease(caller, "location-service"), undefined);
    assert.equal(otherKey(caller, "location/"), undefined);
    assert.equal(otherTransaction(caller, transaction("location-service", own, own)), undefined);
    for (const refused of [
      otherLease(caller, "stream-manager"),
      otherLease(caller, "location-service-2"),
      otherKey(caller, ""),
      otherKey(caller, "location"),
      otherTransaction(caller, transaction("stream-manager", own, own)),
      otherTransaction(caller, transaction("location-service", "sm/1", own)),
      otherTransaction(caller, transaction("location-service", own, "feature-level")),
    ])
      assert.equal(refused?.failure.code, bounded ? "permissionDenied" : undefined, String(caller));
  }
});
