/** Commands to partition servers with terms and owner epochs that nobody was given, in a whole stamp on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, type Outcome, type RuleName, unwrap } from "@stamp/base";
import { MetadataClient, unvouchedEpochsMax, unvouchedTermsMax } from "@stamp/metadata-store";
import { sleep } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { LockService, PartitionManager, PartitionServer, type RangePartition, StreamManager, toWire } from "@stamp/wire";
import { blobRange, Client, container, container1, stamp } from "../testing/stack-harness.ts";

const timeoutMs = 5_000;
const most = Number.MAX_SAFE_INTEGER;
const servers = ["ps-1", "ps-2"];
interface Numbers {
  readonly pmTerm: number;
  readonly ownerEpoch: number;
}

const told = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.failure.reason);

/** Calls a faulty process can make: everything but the numbers is right. */
class Stranger {
  readonly #sim: Simulation;
  constructor(sim: Simulation) {
    this.#sim = sim;
  }

  /** The last numbers that were given. */
  async given(): Promise<Numbers> {
    const world = this.#sim.world("stranger");
    const lock = world.transport.client("lock", LockService);
    const [entry] = unwrap(await new MetadataClient(world, "lock").get(["partition-manager/owner-epoch"], timeoutMs));
    const term = unwrap(await lock.getLease({ name: "partition-manager" }, { timeoutMs }));
    return { pmTerm: Number(term.leaseEpoch), ownerEpoch: Number(fromUtf8(entry?.value ?? new Uint8Array(0))) };
  }

  /** Each command that has such numbers, to each server: what it answered. */
  async commands(range: RangePartition, numbers: Numbers): Promise<string[]> {
    const world = this.#sim.world("stranger");
    const lock = world.transport.client("lock", LockService);
    const answers: string[] = [];
    for (const server of servers) {
      const { leaseEpoch } = unwrap(await lock.getLease({ name: `ps/${server}` }, { timeoutMs }));
      const client = world.transport.client(server, PartitionServer);
      const command = { pmTerm: toWire(numbers.pmTerm), leaseEpoch };
      const { rangeId } = range;
      const ownerEpoch = toWire(numbers.ownerEpoch);
      const children = [{ ...range, rangeId: "blob-stranger", ownerEpoch }];
      answers.push(
        told(await client.closePartition({ ...command, rangeId, ownerEpoch }, { timeoutMs })),
        told(await client.loadPartition({ ...command, range: { ...range, ownerEpoch } }, { timeoutMs })),
        told(await client.reshapePartitions({ ...command, parents: [{ rangeId, ownerEpoch: range.ownerEpoch }], children }, { timeoutMs })),
      );
    }
    return answers;
  }
}

async function withStamp(
  seed: number,
  without: readonly RuleName[],
  body: (parts: { sim: Simulation; stranger: Stranger; client: Client; serves: () => Promise<void> }) => Promise<void>,
): Promise<void> {
  const sim = stamp(seed, {}, without);
  await sim.run(async () => {
    const client = new Client(sim);
    await container1(client);
    let made = 0;
    const serves = async (): Promise<void> => {
      const value = { ...container, container: `made-${++made}` };
      // An error says that an earlier attempt made it.
      await client.execute({ case: "createContainer", value });
      assert.equal((await client.execute({ case: "getContainer", value })).case, "container");
    };
    await body({ sim, stranger: new Stranger(sim), client, serves });
  });
}

async function moveBlobs(sim: Simulation): Promise<void> {
  const { rangeId, server } = await blobRange(sim);
  const to = servers.find((name) => name !== server) ?? "";
  const manager = sim.world("operator").transport.client("pm", PartitionManager);
  unwrap(await manager.movePartition({ rangeId, server: to }, { timeoutMs: 60_000 }));
  assert.equal((await blobRange(sim)).server, to);
}

/** A command, or a write of the map, is refused once; the manager's next term does it. */
async function untilMoved(sim: Simulation): Promise<void> {
  for (let tries = 0; ; tries++) {
    await sleep(sim.world("operator").clock, 1_000);
    const moved = await moveBlobs(sim).catch((error: unknown) => error);
    if (moved === undefined) return;
    if (tries > 30) throw moved;
  }
}

test("far commands: numbers at their maximum are refused by every server, and the manager goes on as before", async () => {
  await withStamp(21, [], async ({ sim, stranger, serves }) => {
    const { pmTerm, ownerEpoch } = await stranger.given();
    for (const numbers of [
      { pmTerm: most, ownerEpoch },
      { pmTerm, ownerEpoch: most },
      { pmTerm: most, ownerEpoch: most },
      { pmTerm: pmTerm + unvouchedTermsMax + 1, ownerEpoch },
      { pmTerm, ownerEpoch: ownerEpoch + unvouchedEpochsMax + 1 },
    ]) {
      const answers = await stranger.commands(await blobRange(sim), numbers);
      assert.deepEqual(new Set(answers), new Set(["badRequest"]), JSON.stringify(numbers));
    }
    await serves();
    await moveBlobs(sim);
    await serves();
    const now = await stranger.given();
    assert.equal(now.pmTerm, pmTerm, "no term was used up");
    assert.ok(now.ownerEpoch < ownerEpoch + 10, `owner epochs went from ${ownerEpoch} to ${now.ownerEpoch}`);
  });
});

test("far commands: while the lock service can't be asked nobody obeys a far number; a restored stamp's are obeyed when it can be", async () => {
  await withStamp(22, [], async ({ sim, stranger }) => {
    const { pmTerm, ownerEpoch } = await stranger.given();
    const range = await blobRange(sim);
    const { server } = range;
    const lease = unwrap(
      await sim
        .world("stranger")
        .transport.client("lock", LockService)
        .getLease({ name: `ps/${server}` }, { timeoutMs }),
    );
    const client = sim.world("stranger").transport.client(server, PartitionServer);
    sim.partition([server], ["lock"]);
    const numbers = { pmTerm: toWire(most), leaseEpoch: lease.leaseEpoch, ownerEpoch: toWire(ownerEpoch) };
    assert.equal(told(await client.closePartition({ ...numbers, rangeId: range.rangeId }, { timeoutMs })), "notReady");
    sim.heal();

    // The counter is a million ahead, as after a restore, and nobody knows it yet.
    const fence = { leaseName: "partition-manager", leaseEpoch: pmTerm };
    const writes = [{ key: "partition-manager/owner-epoch", value: new TextEncoder().encode("1000000") }];
    unwrap(await new MetadataClient(sim.world("stranger"), "lock").transact({ fence, conditions: [], writes }, timeoutMs));
    await moveBlobs(sim);
    assert.ok((await blobRange(sim)).ownerEpoch > 1_000_000n);
  });
});

test("far commands: a little ahead costs a range one assignment, in one step", async () => {
  await withStamp(23, [], async ({ sim, stranger, serves }) => {
    const { pmTerm, ownerEpoch } = await stranger.given();
    await stranger.commands(await blobRange(sim), { pmTerm, ownerEpoch: ownerEpoch + 200 });
    await serves();
    await moveBlobs(sim);
    await serves();
    const now = await stranger.given();
    assert.ok(now.ownerEpoch > ownerEpoch + 200 && now.ownerEpoch < ownerEpoch + 300, `minted from ${ownerEpoch} to ${now.ownerEpoch}`);
  });
});

test("far commands: a term a little ahead, at servers or at the manager's own streams, costs the manager one change of term", async () => {
  for (const where of ["servers", "streams"] as const) {
    await withStamp(25, [], async ({ sim, stranger, serves }) => {
      const { pmTerm, ownerEpoch } = await stranger.given();
      const ahead = pmTerm + unvouchedTermsMax;
      if (where === "servers") await stranger.commands(await blobRange(sim), { pmTerm: ahead, ownerEpoch });
      else {
        const manager = sim.world("stranger").transport.client("sm", StreamManager);
        const { streams } = unwrap(await manager.listStreams({ prefix: "/pm/" }, { timeoutMs }));
        for (const { name } of streams) unwrap(await manager.openStream({ name, ownerEpoch: toWire(ahead) }, { timeoutMs }));
      }
      await untilMoved(sim);
      await serves();
      assert.equal((await stranger.given()).pmTerm, ahead + 1, where);
    });
  }
});

test("far commands: without the rule one command of each kind ends for good what the manager can do with a range", async () => {
  for (const without of [[], ["commandsVouched", "mintedEpochsOnly"]] satisfies RuleName[][]) {
    for (const far of ["pmTerm", "ownerEpoch"] as const) {
      await withStamp(24, without, async ({ sim, stranger }) => {
        const { rangeId, ...range } = await blobRange(sim);
        await stranger.commands({ rangeId, ...range }, { ...(await stranger.given()), [far]: most });
        await sleep(sim.world("operator").clock, 60_000);
        const moved = await moveBlobs(sim).then(
          () => true,
          () => false,
        );
        assert.equal(moved, without.length === 0, far);
      });
    }
  }
});
