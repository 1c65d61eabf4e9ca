/** Several lock services over a simulated etcd. */
import { calmEtcd, type EtcdHabits, EtcdState, SimulatedEtcd, Simulation, type SimulationOptions } from "@stamp/virtual-time";
import { lockServiceSchema } from "../config.ts";
import { LockServiceRole } from "../lock-service.ts";
import type { SeveralScene } from "./several.ts";

export interface EtcdScene extends SeveralScene {
  readonly state: EtcdState;
  habits: EtcdHabits;
}

export function etcdScene(options: SimulationOptions, names: readonly string[] = ["lock-1", "lock-2"], settings: object = {}): EtcdScene {
  const sim = new Simulation(options);
  const state = new EtcdState();
  const prng = sim.prng.fork();
  const scene: EtcdScene = {
    sim,
    state,
    names,
    list: names.join(","),
    habits: calmEtcd,
    active: () => names.find((name) => sim.isUp(name) && sim.role(name)?.status.state === "serving"),
  };
  sim.addProcess("etcd", (world) => new SimulatedEtcd(world, { listen: "etcd", state, prng, habits: () => scene.habits }));
  for (const name of names) {
    const config = lockServiceSchema.parse({ name, listen: name, init: true, metadataStore: "etcd", etcdEndpoints: "etcd", ...settings });
    sim.addProcess(name, (world) => new LockServiceRole(world, config), { restartAfterMs: 500 });
  }
  return scene;
}
