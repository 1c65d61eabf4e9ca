/** Tempers in which steps of operations on trees are late (focus.ts). */
import type { Focus } from "../workloads/faults/fault-kinds.ts";

const delays = { kill: 0, power: 0, pause: 0, delay: 1, error: 0 } as const;

export const treeFocuses = {
  /** Operations are late at partition servers, so that those of several clients meet half-way. */
  "slow-operations": {
    weights: { reshape: 4 },
    others: 0.1,
    failpoints: {
      hotShare: 1,
      hotChance: 0.15,
      only: /^partition-server receive .*Execute$/,
      weights: delays,
    },
  },
  /** Connections break, and steps that were sent on them arrive when others have given their operation up. */
  "late-operations": {
    weights: { "broken-connection": 30 },
    pairs: [[/^front-end-/, /^partition-server-/]],
    everyMs: 200,
    others: 0.02,
    network: { lingerMs: 8_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.2,
      delayMaxMs: 8_000,
      only: /^front-end send PartitionServer\/Execute$/,
      weights: delays,
    },
  },
} as const satisfies Record<string, Focus>;
