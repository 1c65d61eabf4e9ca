/** Tests that several lock services pass, wherever these keep the metadata: one is active, and all keep the same contract. */
import { LeaseKeeper, MetadataClient, metadataStoreConformance } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";

export interface SeveralScene {
  readonly sim: Simulation;
  readonly names: readonly string[];
  /** For clients. */
  readonly list: string;
  /** Name of the active one; undefined: none. */
  active(): string | undefined;
}

/** Longest time until one is active after any single fault. */
export const readyWithinMs = 30_000;

export const servingIn = ({ sim, active }: SeveralScene): Promise<void> =>
  sim.until(() => active() !== undefined, readyWithinMs, "a lock service is active");

/** Registers a test with a runner of tests. */
type Register = (name: string, run: () => Promise<void>) => void;

/** The conformance of a metadata store through several lock services. `begin` makes a new scene for each test. */
export function conformanceOfSeveral(register: Register, begin: () => SeveralScene): void {
  let scene: SeveralScene;
  metadataStoreConformance(
    (name, run) =>
      register(name, async () => {
        scene = begin();
        await scene.sim.run(async () => {
          await servingIn(scene);
          await run();
        });
      }),
    async () => {
      const world = scene.sim.world("leader");
      let keeper: LeaseKeeper | undefined;
      let terms = 0;
      return {
        store: new MetadataClient(world, scene.list),
        checksum: world.digest.crc32c,
        stranger: new MetadataClient(world, scene.list, { stampId: "another stamp" }),
        nextTerm: async () => {
          await keeper?.release();
          terms += 1;
          keeper = leaderOf(scene.list, world, "leader", terms);
          return { leaseName: "leader", leaseEpoch: await keeper.acquire() };
        },
        powerCut: async () => {
          for (const name of scene.names) scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
          for (const name of scene.names) scene.sim.restart(name);
          await servingIn(scene);
        },
        dispose: async () => keeper?.release(),
      };
    },
  );
}

/** A holder of the lease `leader` at these lock services. */
export function leaderOf(
  lockService: string,
  world: World,
  holder: string,
  incarnation: number,
  onLost: () => void = () => {},
): LeaseKeeper {
  const identity = { id: holder, incarnation, instance: `start ${incarnation}`, stampId: undefined, bindStamp: async () => {} };
  return new LeaseKeeper(world, { lockService, leaseName: "leader", holder, identity, address: holder, onLost });
}
