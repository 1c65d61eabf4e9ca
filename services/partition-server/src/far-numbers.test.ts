/**
 * Each number of the epochs table (docs/design/stream-layer.md), at its maximum, to each role that checks it, in a whole stamp on virtual time:
 * the stamp serves, moves a range, and does so again after all processes died. A number or a role that is new in the table needs an attack here.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fromUtf8, type Outcome, unwrap, utf8 } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import type { Client as Calls, World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import {
  ExtentNode,
  type ExtentReplica,
  LockService,
  PartitionManager,
  PartitionServer,
  ReplicaState,
  StreamManager,
  toWire,
} from "@stamp/wire";
import { blobRange, Client, container, container1, stamp } from "./testing/stack-harness.ts";

const root = new URL("../../../", import.meta.url);
const timeoutMs = 5_000;
const most = toWire(Number.MAX_SAFE_INTEGER);
const nodes = ["en-1", "en-2", "en-3", "en-4"];
const servers = ["ps-1", "ps-2"];
const everybody = ["lock", "sm", ...nodes, ...servers, "pm"];

/** Rows of the table as "number @ role". Behind a colon a cell explains itself; a stamp id is no number. */
function tableRows(): string[] {
  const page = readFileSync(new URL("docs/design/stream-layer.md", root), "utf8");
  const table = page.slice(page.indexOf("| epoch | minted when | in | checked by |"), page.indexOf("An empty metadata store beside"));
  const cells = table.split("\n").flatMap((line) => (line.startsWith("| ") ? [line.split("|").map((cell) => cell.trim())] : []));
  return cells
    .slice(1)
    .flatMap(([, number = "", , , roles = ""]) =>
      roles
        .replace(/[:(].*$/, "")
        .split(",")
        .map((role) => `${number} @ ${role.trim()}`),
    )
    .filter((row) => !row.startsWith("stamp id"));
}

const told = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.failure.reason);

/** Tools of an attack. */
class Stranger {
  readonly sim: Simulation;
  readonly world: World;
  readonly lock: Calls<typeof LockService>;
  readonly manager: Calls<typeof StreamManager>;
  constructor(sim: Simulation) {
    this.sim = sim;
    this.world = sim.world("stranger");
    this.lock = this.world.transport.client("lock", LockService);
    this.manager = this.world.transport.client("sm", StreamManager);
  }

  node(name: string): Calls<typeof ExtentNode> {
    return this.world.transport.client(name, ExtentNode);
  }

  server(name: string): Calls<typeof PartitionServer> {
    return this.world.transport.client(name, PartitionServer);
  }

  async epochOf(name: string): Promise<bigint> {
    return unwrap(await this.lock.getLease({ name }, { timeoutMs })).leaseEpoch;
  }

  async lastOwnerEpoch(): Promise<bigint> {
    const [entry] = unwrap(await new MetadataClient(this.world, "lock").get(["partition-manager/owner-epoch"], timeoutMs));
    return BigInt(fromUtf8(entry?.value ?? new Uint8Array(0)));
  }

  transact(leaseName: string, version = 0): Promise<Outcome<unknown>> {
    const fence = { leaseName, leaseEpoch: Number(most) };
    const writes = [{ key: "stranger", value: utf8("x") }];
    return new MetadataClient(this.world, "lock").transact({ fence, conditions: [{ key: "stranger", version }], writes }, timeoutMs);
  }

  /** Each replica of each node. */
  async replicas(): Promise<{ node: string; replica: ExtentReplica }[]> {
    const found = nodes.map(async (node) => {
      const { replicas } = unwrap(await this.node(node).listExtentReplicas({}, { timeoutMs }));
      return replicas.map((replica) => ({ node, replica }));
    });
    return (await Promise.all(found)).flat();
  }

  factsOf(node: string): { diskId: string; stampId: string } {
    return this.sim.role(node)?.status.facts as { diskId: string; stampId: string };
  }
}

type Attack = (stranger: Stranger) => Promise<readonly (readonly [answer: string, expected: string])[]>;

const openAll =
  (which: (name: string) => boolean): Attack =>
  async ({ manager }) => {
    const { streams } = unwrap(await manager.listStreams({}, { timeoutMs }));
    const names = streams.map(({ name }) => name).filter(which);
    assert.ok(names.length > 0);
    return Promise.all(
      names.map(async (name) => [told(await manager.openStream({ name, ownerEpoch: most }, { timeoutMs })), "badRequest"] as const),
    );
  };

/** Load, Close and Reshape of the blob range at both servers; everything but the number is right. */
const command =
  (number: "pmTerm" | "ownerEpoch" | "leaseEpoch" | "rangeVersion", expected: string): Attack =>
  async (stranger) => {
    const range = await blobRange(stranger.sim);
    const { rangeId } = range;
    const answers: [string, string][] = [];
    for (const name of servers) {
      const client = stranger.server(name);
      const pmTerm = number === "pmTerm" ? most : await stranger.epochOf("partition-manager");
      const leaseEpoch = number === "leaseEpoch" ? most : await stranger.epochOf(`ps/${name}`);
      const ownerEpoch = number === "ownerEpoch" ? most : range.ownerEpoch;
      const far = { ...range, ownerEpoch, ...(number === "rangeVersion" ? { rangeVersion: most } : {}) };
      const children = [{ ...far, rangeId: "blob-stranger" }];
      answers.push([told(await client.loadPartition({ pmTerm, leaseEpoch, range: far }, { timeoutMs })), expected]);
      if (number === "rangeVersion") continue;
      const parents = [{ rangeId, ownerEpoch: range.ownerEpoch }];
      answers.push([told(await client.closePartition({ pmTerm, leaseEpoch, rangeId, ownerEpoch }, { timeoutMs })), expected]);
      answers.push([told(await client.reshapePartitions({ pmTerm, leaseEpoch, parents, children }, { timeoutMs })), expected]);
    }
    return answers;
  };

/** A report of each node with these numbers in it. */
const report =
  (numbers: object, expected: string): Attack =>
  async (stranger) => {
    const smTerm = await stranger.epochOf("stream-manager");
    const answers: [string, string][] = [];
    for (const node of nodes) {
      const real = unwrap(await stranger.node(node).getNodeReport({ smTerm }, { timeoutMs }));
      answers.push([told(await stranger.manager.reportNode({ ...real, ...numbers }, { timeoutMs })), expected]);
    }
    return answers;
  };

const attacks: Readonly<Record<string, Attack | { readonly test: string; readonly contains: string }>> = {
  "SM term @ ENs": async (stranger) =>
    Promise.all(
      nodes.map(async (node) => [told(await stranger.node(node).getNodeReport({ smTerm: most }, { timeoutMs })), "badRequest"] as const),
    ),
  "SM term @ metadata store": async (stranger) => [[told(await stranger.transact("stream-manager")), "staleTerm"]],
  "owner epoch @ SM": openAll((name) => !name.startsWith("/pm/")),
  "owner epoch @ PS": command("ownerEpoch", "badRequest"),
  /** A replica keeps the epoch that it was made with; an extent that a stranger made is in the way of nothing but its own number. */
  "owner epoch @ ENs": async (stranger) => {
    const smTerm = await stranger.epochOf("stream-manager");
    const last = (await stranger.replicas()).map(({ replica }) => replica.extentId).sort((a, b) => Number(b - a))[0] ?? 0n;
    const answers: [string, string][] = [];
    for (const node of nodes) {
      const { diskId, stampId } = stranger.factsOf(node);
      const made = { smTerm, version: 1n, ownerEpoch: most, stampId, replicas: [{ nodeId: node, address: node, diskId }] };
      for (let ahead = 1n; ahead <= 3n; ahead++)
        answers.push([told(await stranger.node(node).createExtent({ ...made, extentId: last + ahead }, { timeoutMs })), "ok"]);
    }
    for (const { node, replica } of await stranger.replicas()) {
      if (replica.state !== ReplicaState.OPEN || replica.extentId > last) continue;
      const append = { extentId: replica.extentId, ownerEpoch: most, expectedOffsetBytes: most, payload: [new Uint8Array(1)] };
      const answer = told(await stranger.node(node).append(append, { timeoutMs }));
      answers.push([answer, answer === "notPrimary" ? "notPrimary" : "offsetGap"]);
    }
    return answers;
  },
  "extent version @ ENs": async (stranger) => {
    const smTerm = await stranger.epochOf("stream-manager");
    const answers: [string, string][] = [];
    for (const { node, replica } of await stranger.replicas()) {
      const { diskId, stampId } = stranger.factsOf(node);
      const { extentId } = replica;
      const far = { smTerm, extentId, version: most, diskId };
      const sealed = { ...far, sealedLengthBytes: replica.durableBytes, sources: nodes };
      const client = stranger.node(node);
      answers.push(
        [told(await client.fenceExtent(far, { timeoutMs })), "badRequest"],
        [told(await client.sealExtent(sealed, { timeoutMs })), "badRequest"],
        [told(await client.copyExtent({ ...sealed, ownerEpoch: 1n, stampId }, { timeoutMs })), "badRequest"],
        [told(await client.deleteExtent(far, { timeoutMs })), "badRequest"],
      );
    }
    return answers;
  },
  "PM term @ PS": command("pmTerm", "badRequest"),
  "PM term @ SM": openAll((name) => name.startsWith("/pm/")),
  "PM term @ metadata store": async (stranger) => [[told(await stranger.transact("partition-manager")), "staleTerm"]],
  "node incarnation + disk identity @ SM": report({ incarnation: most }, "badRequest"),
  /** No bytes: the record is refused before its primary's incarnation is remembered. */
  "node incarnation + disk identity @ other ENs": async (stranger) => {
    const answers: [string, string][] = [];
    for (const { node, replica } of await stranger.replicas()) {
      const record = { extentId: replica.extentId, ownerEpoch: 1n, offsetBytes: replica.durableBytes, primaryIncarnation: most };
      answers.push([told(await stranger.node(node).replicate(record, { timeoutMs })), "badRequest"]);
    }
    return answers;
  },
  "lease epoch @ lock service": async ({ lock }) => {
    const answers: [string, string][] = [];
    for (const name of ["stream-manager", "partition-manager", "ps/ps-1", "ps/ps-2"]) {
      const far = { name, leaseEpoch: most };
      answers.push([told(await lock.renewLease(far, { timeoutMs })), "leaseEnded"]);
      answers.push([told(await lock.releaseLease(far, { timeoutMs })), "leaseEnded"]);
      answers.push([told(await lock.refuseRenewals(far, { timeoutMs })), "leaseEnded"]);
      const holder = { name, holder: "stranger", identity: "stranger", instance: "1", address: "stranger", termMs: 1_000, above: most };
      answers.push([told(await lock.acquireLease(holder, { timeoutMs })), "leaseHeld"]);
    }
    return answers;
  },
  "lease epoch @ PS": command("leaseEpoch", "staleLeaseEpoch"),
  "process incarnation @ lock service": { test: "services/lock-service/src/far-epochs.test.ts", contains: "incarnation: most" },
  "report number @ SM": report({ reportNumber: most }, "badRequest"),
  "metadata version of a node's newest copy @ SM": report({ metadataVersion: most }, "badRequest"),
  /** To a server that has the range: it ends an epoch with two versions. To one that has not: its streams refuse an epoch that is in use. */
  "range version @ PS": async (stranger) => {
    const { rangeId, server } = await blobRange(stranger.sim);
    const execute = { rangeId, rangeVersion: most, operation: { kind: { case: "getContainer", value: container } } } as const;
    const asked = told(await stranger.server(server).execute(execute, { timeoutMs }));
    return [[asked, "wrongPartition"], ...(await command("rangeVersion", "any")(stranger)).map(([answer]) => [answer, answer] as const)];
  },
  "range version @ front-ends": { test: "services/front-end/src/routing/map-cache.test.ts", contains: "a map that servers refuse" },
  "map version @ front-ends": { test: "services/front-end/src/routing/map-cache.test.ts", contains: "MAX_SAFE_INTEGER" },
};

test("far numbers: each number of the epochs table has an attack at each role that checks it, and no other", () => {
  const rows = tableRows();
  assert.ok(rows.length > 12, "the table is found");
  assert.deepEqual(Object.keys(attacks).sort(), rows.sort());
  for (const attack of Object.values(attacks)) {
    if (typeof attack === "function") continue;
    const path = new URL(attack.test, root);
    assert.ok(existsSync(path) && readFileSync(path, "utf8").includes(attack.contains), attack.test);
  }
});

const serves = (client: Client): (() => Promise<void>) => {
  let made = 0;
  return async () => {
    const value = { ...container, container: `made-${++made}` };
    await client.execute({ case: "createContainer", value });
    assert.equal((await client.execute({ case: "getContainer", value })).case, "container");
  };
};

for (const [row, attack] of Object.entries(attacks)) {
  if (typeof attack !== "function") continue;
  test(`far numbers: ${row}, at its maximum: it serves, moves a range, and so it does after all processes died`, async () => {
    const sim = stamp(31);
    await sim.run(async () => {
      const client = new Client(sim);
      await container1(client);
      const served = serves(client);
      const stranger = new Stranger(sim);
      const operator = sim.world("operator").transport.client("pm", PartitionManager);
      const move = async (): Promise<void> => {
        await served();
        const { rangeId, server } = await blobRange(sim);
        const to = servers.find((name) => name !== server) ?? "";
        unwrap(await operator.movePartition({ rangeId, server: to }, { timeoutMs: 60_000 }));
        await served();
      };
      for (const round of ["first", "after a restart of everything"]) {
        const answers = await attack(stranger);
        assert.ok(answers.length > 0);
        for (const [answer, expected] of answers) assert.equal(answer, expected, round);
        await sim.sleep(3_000);
        await move();
        const epochs = await Promise.all(["stream-manager", "partition-manager"].map((name) => stranger.epochOf(name)));
        assert.ok(
          [...epochs, await stranger.lastOwnerEpoch()].every((epoch) => epoch < 1_000n),
          "no number is used up",
        );
        for (const name of everybody) sim.crash(name, { unsynced: "lost" });
        await served();
        await sim.sleep(10_000);
      }
    });
  });
}
