/** Tempers of stamps whose lock services replicate the metadata store. */
import type { Focus } from "../workloads/faults/fault-kinds.ts";

const members = {
  targets: /^lock-service-/,
  pairs: [[/^lock-service-/, /^lock-service-/]],
  others: 0.1,
  replicatesMetadata: true,
} as const;

export const consensusFocuses = {
  /** Lock services are paused, killed and cut from one another, and lose, forget or change their folders, one at a time. */
  consensus: {
    ...members,
    weights: { pause: 8, "cut-pair": 14, crash: 8, partition: 4, "partition-one-way": 4, "power-loss": 1, "member-folder": 10 },
    everyMs: 2_000,
    lastsMaxMs: 6_000,
  },
  /** Lock services die all the time, also between a write and a message. */
  "consensus-restarts": {
    ...members,
    weights: { crash: 16, "power-loss": 3, pause: 3, "member-folder": 0 },
    everyMs: 1_500,
    lastsMaxMs: 3_000,
    failpoints: { hotShare: 0.3, hotChance: 0.01, only: /^lock-service / },
  },
  /** The leader stands still, or is cut from the others, while clients reach it, for longer than an election takes. */
  "consensus-deposed": {
    ...members,
    weights: { pause: 20, "cut-pair": 20, "member-folder": 0 },
    everyMs: 1_000,
    lastsMaxMs: 8_000,
    others: 0.02,
  },
} as const satisfies Record<string, Focus>;
