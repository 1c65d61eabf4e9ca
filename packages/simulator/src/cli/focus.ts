/** Tempers by name: which faults come often, so that a missing rule is noticed within few seeds. */
import type { Focus } from "../workloads/faults.ts";

const focuses = {
  /** The primary or a secondary is cut from the others, or dies with what it had not synced. */
  replicas: {
    weights: { partition: 10, "partition-one-way": 6, crash: 6, "old-replica": 4, split: 3 },
    targets: /^extent-node-/,
    everyMs: 500,
    lastsMaxMs: 3_000,
    others: 0.1,
  },
  power: { weights: { "power-loss": 10, "rack-loss": 10, "slow-disk": 5 }, everyMs: 2_000, others: 0.2 },
  "slow-disks": {
    weights: { "slow-disk": 20, crash: 4, partition: 4, pause: 4 },
    targets: /^extent-node-/,
    everyMs: 500,
    lastsMaxMs: 4_000,
    others: 0.2,
  },
  lying: {
    weights: { "lying-disk": 20, "rack-loss": 2, crash: 4 },
    targets: /^extent-node-/,
    everyMs: 1_500,
    lastsMaxMs: 3_000,
    others: 0.1,
  },
  "new-disks": { weights: { "replaced-disk": 20, crash: 6, partition: 4 }, targets: /^extent-node-/, everyMs: 1_000, others: 0.2 },
  rot: { weights: { "bit-rot": 40, crash: 2, "power-loss": 2 }, everyMs: 700, others: 0.2 },
  managers: {
    weights: { pause: 10, partition: 10, "partition-one-way": 6, crash: 6 },
    targets: /^(stream-manager|lock-service)-/,
    everyMs: 1_000,
    lastsMaxMs: 15_000,
    others: 0.2,
    failpoints: { hotShare: 0.3, only: /^stream-manager / },
  },
  leases: {
    weights: { pause: 10, partition: 10, "partition-one-way": 10, crash: 6 },
    targets: /^(lock-service|partition-manager|partition-server)-/,
    everyMs: 2_500,
    lastsMaxMs: 12_000,
    others: 0.2,
  },
  "lock-service": {
    weights: { crash: 20, partition: 8, "partition-one-way": 6, pause: 4 },
    targets: /^lock-service-/,
    everyMs: 2_500,
    lastsMaxMs: 9_000,
    others: 0.3,
  },
  "partition-managers": {
    weights: { pause: 10, partition: 8, crash: 12 },
    targets: /^partition-manager-/,
    everyMs: 2_500,
    lastsMaxMs: 12_000,
    others: 0.5,
    failpoints: { hotShare: 0.3, hotChance: 0.1, only: /^partition-(manager|server) / },
  },
  checkpoints: { weights: { crash: 20, pause: 4 }, targets: /^partition-server-/, everyMs: 1_500, others: 0.3 },
} as const satisfies Record<string, Focus>;

export type FocusName = keyof typeof focuses;

export const focusNames: readonly string[] = Object.keys(focuses);

export function focusNamed(name: string): Focus {
  const focus = (focuses as Record<string, Focus>)[name];
  if (!focus) throw new Error(`no focus ${name}: there are ${focusNames.join(", ")}`);
  return focus;
}
