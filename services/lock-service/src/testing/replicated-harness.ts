/** Three lock services that replicate the metadata store, on simulated time, disks and network. */
import { Simulation, type SimulationOptions } from "@stamp/virtual-time";
import { lockServiceSchema } from "../config.ts";
import { LockServiceRole } from "../lock-service.ts";
import type { SeveralScene } from "./several.ts";

export interface ReplicatedScene extends SeveralScene {
  /** Facts of a member; undefined: it is down. */
  facts(name: string): ConsensusFacts | undefined;
  /** Settings of members that start from now on. */
  settings: object;
  /** Adds the process of a member; the scene has those of all names. */
  add(name: string, settings?: object): void;
}

export interface ConsensusFacts {
  readonly role: string;
  readonly term: number;
  readonly full: boolean;
  readonly commit: number;
  readonly applied: number;
  readonly lineage: string;
  readonly setAside: boolean;
  readonly snapshotIndex: number;
}

export const threeNames = ["lock-1", "lock-2", "lock-3"];

export function replicatedScene(options: SimulationOptions, names: readonly string[] = threeNames, settings: object = {}): ReplicatedScene {
  const sim = new Simulation(options);
  const members = names.map((name) => `${name}=${name}`).join();
  const scene: ReplicatedScene = {
    sim,
    names,
    list: names.join(","),
    active: () => names.find((name) => sim.isUp(name) && sim.role(name)?.status.state === "serving"),
    facts: (name) => sim.role(name)?.status.facts.consensus as ConsensusFacts | undefined,
    settings,
    add: (name, more = {}) => {
      const fixed = { name, listen: name, init: true, metadataStore: "replicated", members, roomLookEveryMs: 0 };
      const config = () => lockServiceSchema.parse({ ...fixed, ...scene.settings, ...more });
      sim.addProcess(name, (world) => new LockServiceRole(world, config()), { restartAfterMs: 500 });
    },
  };
  for (const name of names) scene.add(name);
  return scene;
}
