import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, extentVersion, ownerEpoch } from "@stamp/base";
import { Replica, type ReplicaMeta } from "@stamp/extent";
import * as fc from "fast-check";
import { LocalExtent } from "./local-extent.ts";
import { LocalExtents } from "./local-extents.ts";

function made(id: number, lengthBytes: number): LocalExtent {
  const meta: ReplicaMeta = {
    extentId: extentId(id),
    version: extentVersion(1),
    ownerEpoch: ownerEpoch(1),
    state: "open",
    fenced: false,
    restarted: false,
    sealedLengthBytes: undefined,
    checksum: undefined,
    durableBytes: lengthBytes,
    committedBytes: 0,
    appliedLsn: 0,
    replicas: [],
    damage: "",
  };
  return new LocalExtent(new Replica(meta, allRules), lengthBytes);
}

test("local extents: what is kept up is what one would count, whatever is made, sealed, damaged, replaced and deleted", () => {
  const step = fc.tuple(fc.constantFrom("make", "seal", "damage", "delete"), fc.integer({ min: 1, max: 12 }), fc.nat(1_000));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const extents = new LocalExtents();
      for (const [what, id, lengthBytes] of steps) {
        const held = extents.get(extentId(id));
        if (what === "make") extents.set(extentId(id), made(id, lengthBytes));
        else if (what === "delete") extents.delete(extentId(id));
        else if (held !== undefined) {
          if (what === "damage") held.replica.markDamaged("test");
          else if (held.replica.state === "open") held.replica.seal(lengthBytes, extentVersion(2), 7);
          extents.stateChanged(held);
        }
        const all = [...extents.values()];
        const unsealed = all.filter(({ replica }) => replica.state !== "sealed");
        const sealed = all.filter(({ replica }) => replica.state === "sealed");
        assert.deepEqual(new Set(extents.unsealed()), new Set(unsealed));
        assert.equal(
          extents.sealedBytes,
          sealed.reduce((sum, { replica }) => sum + replica.durableBytes, 0),
        );
        assert.deepEqual(
          extents.idsAfter(0, 100),
          all.map(({ replica }) => replica.extentId).sort((a, b) => a - b),
        );
        assert.equal(extents.size, all.length);
      }
    }),
  );
});
