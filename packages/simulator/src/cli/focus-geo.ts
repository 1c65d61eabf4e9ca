/** Tempers of workload `geo`. */
import type { Focus } from "../workloads/faults/fault-kinds.ts";

/** Only what is named strikes. */
const calm = { everyMs: 4_000, others: 0.02 } as const;
const delays = { kill: 0, power: 0, pause: 0, delay: 1, error: 0 } as const;

export const geoFocuses = {
  /** Planned failovers one after another, given up at times; what the location service had sent arrives behind what it sends next. */
  "geo-late-commands": {
    weights: { "broken-connection": 20 },
    pairs: [[/^location-service-/, /^partition-manager-/]],
    everyMs: 250,
    others: 0.01,
    network: { lingerMs: 6_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.7,
      delayMaxMs: 6_000,
      only: /^location-service send Accounts\/Obey$/,
      weights: delays,
    },
    geo: { restMaxMs: 300, forcedChance: 0, giveUpChance: 0.3, linkEveryMs: 20_000, stepCrashChance: 0 },
  },
  /** Planned failovers one after another, while writes are slow on their way. */
  "geo-failovers": {
    ...calm,
    weights: {},
    failpoints: {
      hotShare: 1,
      hotChance: 0.3,
      delayMaxMs: 1_200,
      only: /^front-end send PartitionServer\/Execute$/,
      weights: delays,
    },
    geo: { restMaxMs: 300, forcedChance: 0, linkEveryMs: 20_000, stepCrashChance: 0, pauseMaxMs: 50 },
  },
  /** The location service can't record a step, or dies when it does, and operations are given up. */
  "geo-location": {
    ...calm,
    weights: {},
    failpoints: {
      hotShare: 1,
      hotChance: 0.5,
      only: /^location-service send MetadataStore\/Transact$/,
      weights: { kill: 0.1, power: 0, pause: 0, delay: 0, error: 1 },
    },
    geo: { restMaxMs: 300, forcedChance: 0, giveUpChance: 0.5, linkEveryMs: 20_000, stepCrashChance: 0 },
  },
  /** Failovers are forced, partition servers die, and the link is cut before. */
  "geo-forced": {
    ...calm,
    weights: { crash: 20 },
    targets: /^partition-server-/,
    geo: { restMaxMs: 6_000, forcedChance: 1, linkEveryMs: 2_000, stepCrashChance: 0, splitsOnly: true },
  },
  /** Shipments are late, so that they are sent again, and partition servers die. */
  "geo-late-shipments": {
    ...calm,
    weights: { crash: 10 },
    targets: /^partition-server-/,
    network: { keepAliveMs: 20_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.3,
      delayMaxMs: 16_000,
      only: /^(partition-server send GeoDoor\/Ship|front-end send PartitionServer\/ApplyShipped)$/,
      weights: delays,
    },
    geo: { restMaxMs: 8_000, forcedChance: 0, linkEveryMs: 6_000, stepCrashChance: 0 },
  },
  /** Failovers are forced, and what was shipped before is applied late: its connection broke. */
  "geo-late-applies": {
    workMs: 25_000,
    weights: { "broken-connection": 20 },
    pairs: [[/^front-end-/, /^partition-server-/]],
    everyMs: 250,
    others: 0.01,
    network: { lingerMs: 6_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.5,
      delayMaxMs: 6_000,
      only: /^front-end send PartitionServer\/ApplyShipped$/,
      weights: delays,
    },
    geo: { restMaxMs: 300, forcedChance: 1, linkEveryMs: 20_000, stepCrashChance: 0, pauseMaxMs: 50 },
  },
  /** Garbage is given back as soon as it is none's, and what is shipped takes long. */
  "geo-collections": {
    ...calm,
    weights: { crash: 4 },
    targets: /^partition-server-/,
    failpoints: {
      hotShare: 1,
      hotChance: 0.3,
      delayMaxMs: 6_000,
      only: /^(partition-server send GeoDoor\/(Ship|Seed|PinData)|front-end send PartitionServer\/ApplyShipped)$/,
      weights: delays,
    },
    geo: {
      restMaxMs: 4_000,
      forcedChance: 0,
      linkEveryMs: 3_000,
      stepCrashChance: 0,
      partitionServer: { collectEveryMs: 300, collectGoneMs: 1, pinTermMs: 1_000 },
    },
  },
} as const satisfies Record<string, Focus>;
