/**
 * Leases that ran out, over HTTP: use attempts × operation and lease actions, of blobs and of containers ("Lease Blob", "Lease Container":
 * outcomes by lease state). The shortest lease lasts 15 s: all rows are made, then waited for once.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, describe, test } from "node:test";
import {
  atOnce,
  type Headers,
  leasedOnly,
  type MadeBlob,
  type Operation,
  OutcomeRows,
  onTags,
  others,
  reads,
  writes,
} from "./outcome-operations.ts";
import type { Clients } from "./target.ts";

const mine = randomUUID();
const other = randomUUID();
const third = randomUUID();
const acquire: Headers = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": mine };
const named: Readonly<Record<"none" | "mine" | "other", Headers>> = {
  none: {},
  mine: { "x-ms-lease-id": mine },
  other: { "x-ms-lease-id": other },
};
const uses = { none: "done", mine: "412 LeaseLost", other: "412 LeaseNotPresentWithBlobOperation" };
const operations: readonly Operation[] = [
  ...reads,
  ...writes,
  ...leasedOnly,
  ...onTags,
  ...others.filter(({ name }) => name === "Snapshot Blob"),
];

/** What is asked of an expired lease, one after the other. */
const actions: readonly (readonly [title: string, ask: Headers, outcome: string])[][] = [
  [
    ["acquire by another", { ...acquire, "x-ms-proposed-lease-id": other }, "done"],
    ["renew by who had it", { "x-ms-lease-action": "renew", "x-ms-lease-id": mine }, "409 LeaseIdMismatchWithLeaseOperation"],
  ],
  [["renew by who had it", { "x-ms-lease-action": "renew", "x-ms-lease-id": mine }, "done"]],
  [["renew by another", { "x-ms-lease-action": "renew", "x-ms-lease-id": other }, "409 LeaseIdMismatchWithLeaseOperation"]],
  [
    [
      "change",
      { "x-ms-lease-action": "change", "x-ms-lease-id": mine, "x-ms-proposed-lease-id": third },
      "409 LeaseNotPresentWithLeaseOperation",
    ],
  ],
  [
    ["release by who had it", { "x-ms-lease-action": "release", "x-ms-lease-id": mine }, "done"],
    ["release again", { "x-ms-lease-action": "release", "x-ms-lease-id": mine }, "409 LeaseIdMismatchWithLeaseOperation"],
  ],
  [["release by another", { "x-ms-lease-action": "release", "x-ms-lease-id": other }, "409 LeaseIdMismatchWithLeaseOperation"]],
  [
    ["break", { "x-ms-lease-action": "break" }, "done"],
    ["renew what is broken", { "x-ms-lease-action": "renew", "x-ms-lease-id": mine }, "409 LeaseIsBrokenAndCannotBeRenewed"],
  ],
];

export function expiredLeaseSuite(clients: () => Clients): void {
  describe("outcomes: leases that ran out", () => {
    const rows = new OutcomeRows(clients);
    const used = new Map<Operation, Record<string, MadeBlob>>();
    const asked: MadeBlob[] = [];
    const containers: string[] = [];
    let written: MadeBlob;
    let source: string;
    const lease = async (path: string, query = "comp=lease"): Promise<void> =>
      assert.equal(await rows.told({ name: "lease", method: "PUT", query, body: "" }, path, acquire, ""), "done");
    async function leased(container: string, operation?: Operation): Promise<MadeBlob> {
      const blob = await rows.made(container, operation?.kind);
      await lease(blob.path);
      return blob;
    }

    before(async () => {
      const { containerName } = await clients().container();
      source = await rows.sourceIn(containerName);
      for (const operation of operations) {
        const blobs = await atOnce(Object.keys(named), async (by) => [by, await leased(containerName, operation)] as const);
        used.set(operation, Object.fromEntries(blobs));
      }
      for (const _ of actions) asked.push(await leased(containerName));
      written = await leased(containerName);
      for (const _ of [...actions, ...Object.keys(named)]) {
        const container = (await clients().container()).containerName;
        await lease(`/${container}`, "restype=container&comp=lease");
        containers.push(container);
      }
      const state = async (path: string): Promise<string> => {
        const answer = await clients().raw("HEAD", path);
        return answer.headers.get("x-ms-lease-state") ?? "";
      };
      const paths = [...used.values()].flatMap((blobs) => Object.values(blobs)).concat(asked, written);
      const all = [...paths.map(({ path }) => path), ...containers.map((name) => `/${name}?restype=container`)];
      for (const path of all) {
        for (let i = 0; (await state(path)) !== "expired"; i++) {
          assert.ok(i < 300, `${path} expires`);
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
      }
    });

    for (const operation of operations) {
      test(operation.name, async () => {
        const blobs = used.get(operation) ?? {};
        const seen = await atOnce(Object.entries(named), async ([by, headers]) => {
          return [by, await rows.told(operation, blobs[by]?.path ?? "", headers, source)] as const;
        });
        assert.deepEqual(Object.fromEntries(seen), uses);
      });
    }

    for (const [of, query] of [
      ["blobs", "comp=lease"],
      ["containers", "restype=container&comp=lease"],
    ] as const) {
      for (const [row, steps] of actions.entries()) {
        test(`${of}: ${steps.map(([title]) => title).join(", ")}`, async () => {
          const path = of === "blobs" ? (asked[row]?.path ?? "") : `/${containers[row]}`;
          for (const [title, headers, outcome] of steps) {
            assert.equal(await rows.told({ name: title, method: "PUT", query, body: "" }, path, headers, ""), outcome, title);
          }
        });
      }
    }

    test("a write by anybody ends it: who had it can't renew it any more", async () => {
      const put: Operation = { name: "Put Blob", method: "PUT", headers: { "x-ms-blob-type": "BlockBlob" }, body: "new" };
      assert.equal(await rows.told(put, written.path, {}, ""), "done");
      assert.equal((await clients().raw("HEAD", written.path)).headers.get("x-ms-lease-state"), "available");
      assert.equal(
        await rows.lease(written.path, { "x-ms-lease-action": "renew", "x-ms-lease-id": mine }),
        "409 LeaseIdMismatchWithLeaseOperation",
      );
    });

    test("containers: deleted by anybody, not by who names the lease that is lost", async () => {
      const seen = await atOnce(Object.entries(named), async ([by, headers]) => {
        const container = containers[actions.length + Object.keys(named).indexOf(by)];
        const wanted: Operation = { name: "Delete Container", method: "DELETE", query: "restype=container" };
        return [by, await rows.told(wanted, `/${container}`, headers, "")] as const;
      });
      assert.deepEqual(Object.fromEntries(seen), {
        none: "done",
        mine: "412 LeaseLost",
        other: "412 LeaseNotPresentWithContainerOperation",
      });
    });
  });
}
