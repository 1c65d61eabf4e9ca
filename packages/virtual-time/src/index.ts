/** Runs roles on virtual time from one seed. Start at `Simulation`. */
export { EtcdState } from "./etcd/etcd-state.ts";
export { calmEtcd, type EtcdHabits, SimulatedEtcd } from "./etcd/simulated-etcd.ts";
export { defaultFailpoints, type FailpointOptions } from "./kernel/failpoints.ts";
export type { RoleFactory } from "./kernel/process.ts";
export type { SimulationOptions } from "./options.ts";
export { digest } from "./ports/digest.ts";
export { defaultDiskOptions } from "./ports/disk-state.ts";
export { historyMax } from "./ports/key-value.ts";
export type { NetworkOptions } from "./ports/network.ts";
export { BrokenPromise, Simulation } from "./simulation.ts";
