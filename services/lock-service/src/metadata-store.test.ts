/** The lock service as a metadata store, on simulated time, disk and network. */
import { test } from "node:test";
import { LeaseKeeper, MetadataClient, metadataStoreConformance } from "@stamp/metadata-store";
import { Simulation } from "@stamp/virtual-time";
import { lockServiceSchema } from "./config.ts";
import { LockServiceRole } from "./lock-service.ts";

let sim: Simulation;

metadataStoreConformance(
  (name, run) =>
    void test(name, async () => {
      sim = new Simulation({ seed: 11 });
      const config = lockServiceSchema.parse({ name: "lock", listen: "lock", init: true });
      sim.addProcess("lock", (world) => new LockServiceRole(world, config));
      await sim.run(async () => {
        await sim.sleep(50);
        await run();
      });
    }),
  async () => {
    const world = sim.world("leader");
    const store = new MetadataClient(world, "lock");
    let keeper: LeaseKeeper | undefined;
    let terms = 0;
    return {
      store,
      checksum: world.digest.crc32c,
      stranger: new MetadataClient(world, "lock", { stampId: "another stamp" }),
      nextTerm: async () => {
        await keeper?.release();
        terms += 1;
        const identity = { id: "leader", incarnation: terms, instance: `start ${terms}`, stampId: undefined, bindStamp: async () => {} };
        keeper = new LeaseKeeper(world, {
          lockService: "lock",
          leaseName: "leader",
          holder: "leader",
          identity,
          address: "leader-address",
          onLost: () => {},
        });
        return { leaseName: "leader", leaseEpoch: await keeper.acquire() };
      },
      powerCut: async () => {
        sim.crash("lock", { unsynced: "lost", silent: false, stayDown: true });
        sim.restart("lock");
        await sim.sleep(50);
      },
      dispose: async () => keeper?.release(),
    };
  },
);
