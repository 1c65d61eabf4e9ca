/** Tempers by name: which faults come often, so that a missing rule is noticed within few seeds. */
import type { Focus } from "../workloads/faults/fault-kinds.ts";
import { codingFocuses } from "./focus-coding.ts";
import { consensusFocuses } from "./focus-consensus.ts";
import { geoFocuses } from "./focus-geo.ts";
import { treeFocuses } from "./focus-trees.ts";

const focuses = {
  /** Several lock services over etcd: the active one is paused, killed or cut from etcd until another one takes over, in every workload. */
  "fail-overs": {
    weights: { pause: 12, "cut-pair": 16, crash: 6, partition: 4 },
    targets: /^(lock-service|etcd)-/,
    pairs: [[/^lock-service-/, /^etcd-/]],
    everyMs: 2_500,
    lastsMaxMs: 9_000,
    others: 0.1,
    overEtcd: true,
  },
  /** The primary or a secondary is cut from the others, or dies with what it had not synced. */
  replicas: {
    weights: { partition: 10, "partition-one-way": 6, crash: 6, "old-replica": 4, split: 3 },
    targets: /^extent-node-/,
    everyMs: 500,
    lastsMaxMs: 3_000,
    others: 0.1,
  },
  /** Records between replicas are lost or late. */
  replication: {
    weights: {},
    others: 0.2,
    failpoints: {
      hotShare: 1,
      hotChance: 0.01,
      only: /^extent-node (send|receive) .*Replicate/,
      weights: { kill: 0, power: 0, pause: 0, delay: 3, error: 5 },
    },
  },
  /** Appends of an owner are lost on their way, and it goes on. */
  appends: {
    weights: {},
    others: 0.2,
    failpoints: {
      hotShare: 1,
      hotChance: 0.01,
      only: /^extent-node receive .*Append$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 3, error: 5 },
    },
  },
  power: { weights: { "power-loss": 10, "rack-loss": 10, "slow-disk": 5 }, everyMs: 2_000, others: 0.2 },
  "slow-disks": {
    weights: { "slow-disk": 20, crash: 4, partition: 4, pause: 4 },
    targets: /^extent-node-/,
    everyMs: 500,
    lastsMaxMs: 4_000,
    others: 0.2,
  },
  /** A disk lies, and the replicas that know better don't answer the stream manager at once. */
  lying: {
    weights: { "lying-disk": 20, "rack-loss": 2, crash: 4, "cut-pair": 16, pause: 8 },
    targets: /^extent-node-/,
    pairs: [[/^stream-manager-/, /^extent-node-/]],
    everyMs: 700,
    lastsMaxMs: 3_000,
    others: 0.1,
  },
  "new-disks": { weights: { "replaced-disk": 20, crash: 6, partition: 4 }, targets: /^extent-node-/, everyMs: 1_000, others: 0.2 },
  "lost-files": { weights: { "lost-file": 30, crash: 3 }, targets: /^extent-node-/, everyMs: 2_000, others: 0.1 },
  rot: { weights: { "bit-rot": 40, crash: 2, "power-loss": 2 }, everyMs: 700, others: 0.2 },
  ...codingFocuses,
  ...consensusFocuses,
  ...geoFocuses,
  ...treeFocuses,
  /** One replica answers a seal, and its disk is lost. */
  "lone-answers": {
    weights: { "lone-answer": 20 },
    targets: /^extent-node-/,
    everyMs: 1_000,
    lastsMaxMs: 3_000,
    others: 0.05,
  },
  /** The same, and what a manager that was deposed has sent comes late. */
  "late-seals": {
    weights: { "lone-answer": 20 },
    targets: /^extent-node-/,
    everyMs: 1_000,
    lastsMaxMs: 3_000,
    others: 0.02,
    network: { keepAliveMs: 10_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.6,
      delayMaxMs: 15_000,
      only: /^stream-manager send ExtentNode\/SealExtent$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** The manager that the lone answer went to is always deposed, and what it sent comes when the next one has been leading for long. */
  "late-commands": {
    weights: { "lone-answer": 20 },
    targets: /^extent-node-/,
    everyMs: 1_000,
    lastsMaxMs: 3_000,
    others: 0.01,
    deposedChance: 1,
    network: { keepAliveMs: 10_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.9,
      delayMaxMs: 25_000,
      only: /^stream-manager send ExtentNode\/SealExtent$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** A given-up replica comes back with its node. Nothing else brings a node back before that. */
  "accepted-losses": {
    weights: { crash: 3, "cut-pair": 10, swizzle: 0, "lost-file": 0, "replaced-disk": 0, "lost-table": 0 },
    targets: /^(stream-manager|extent-node)-/,
    pairs: [[/^stream-manager-/, /^extent-node-/]],
    everyMs: 1_500,
    lastsMaxMs: 6_000,
    others: 0.1,
    acceptsLoss: true,
  },
  /** Writes of a leading manager are on their way for longer than it leads. */
  "late-transactions": {
    weights: { crash: 3, pause: 3, partition: 2 },
    targets: /^(stream-manager|extent-node)-/,
    everyMs: 2_000,
    lastsMaxMs: 8_000,
    others: 0.1,
    failpoints: {
      hotShare: 1,
      hotChance: 0.04,
      delayMaxMs: 15_000,
      only: /^stream-manager send MetadataStore\/Transact$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** Nodes die when they are told where an extent is sealed, and their clients rest meanwhile. */
  "forgotten-fences": {
    weights: { "cut-pair": 20, crash: 4 },
    targets: /^extent-node-/,
    pairs: [[/^stream-manager-/, /^extent-node-/]],
    everyMs: 500,
    lastsMaxMs: 8_000,
    others: 0.02,
    ownersRestMs: 6_000,
    failpoints: {
      hotShare: 1,
      hotChance: 0.7,
      only: /^extent-node receive ExtentNode\/SealExtent$/,
      weights: { kill: 4, power: 0, pause: 0, delay: 0, error: 3 },
    },
  },
  managers: {
    weights: { pause: 10, partition: 10, "partition-one-way": 6, crash: 6 },
    targets: /^(stream-manager|lock-service)-/,
    everyMs: 1_000,
    lastsMaxMs: 15_000,
    others: 0.2,
    failpoints: { hotShare: 0.3, only: /^stream-manager / },
  },
  /** The stream manager stops, is late or dies between what it records and what it tells. */
  transactions: {
    weights: { crash: 4, "cut-pair": 4 },
    targets: /^stream-manager-/,
    pairs: [[/^stream-manager-/, /^(lock-service|extent-node)-/]],
    everyMs: 1_500,
    others: 0.2,
    failpoints: {
      hotShare: 1,
      hotChance: 0.03,
      only: /^(stream-manager send (MetadataStore.Transact|ExtentNode)|lock-service receive MetadataStore.Transact)/,
      weights: { kill: 2, power: 0, pause: 3, delay: 3, error: 5 },
    },
  },
  /** Servers that lose the lock service only, or are paused, while clients reach them. */
  leases: {
    weights: { "cut-pair": 20, pause: 12, "bad-network": 4 },
    targets: /^partition-server-/,
    pairs: [[/^lock-service-/, /^partition-server-/]],
    everyMs: 1_500,
    lastsMaxMs: 14_000,
    others: 0.05,
  },
  /** Renewals are answered late, and then the lock service can't be reached, or the manager, which would tell a server what it lost. */
  "late-renewals": {
    weights: { "cut-pair": 20 },
    targets: /^partition-server-/,
    pairs: [
      [/^lock-service-/, /^partition-server-/],
      [/^partition-manager-/, /^partition-server-/],
    ],
    everyMs: 2_000,
    lastsMaxMs: 20_000,
    others: 0.05,
    failpoints: {
      hotShare: 1,
      hotChance: 0.8,
      delayMaxMs: 5_000,
      only: /^lock-service answer .*RenewLease$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  "lock-service": {
    weights: { crash: 20, "cut-pair": 20 },
    targets: /^lock-service-/,
    pairs: [[/^lock-service-/, /^partition-server-/]],
    everyMs: 1_500,
    lastsMaxMs: 9_000,
    others: 0.05,
  },
  /** The lock service dies all the time, also between what it records and what it tells. */
  "lock-restarts": {
    weights: { crash: 20, pause: 3 },
    targets: /^lock-service-/,
    everyMs: 1_500,
    lastsMaxMs: 3_000,
    others: 0.1,
    failpoints: { hotShare: 0.3, hotChance: 0.05, only: /^lock-service / },
  },
  /** The lock service's store loses its last batches or a key, and opens as if nothing had happened. */
  "forgetful-stores": {
    weights: { "forgetful-store": 20, crash: 1 },
    everyMs: 2_000,
    lastsMaxMs: 2_000,
    others: 0.05,
  },
  /** The tables of extent nodes lose their last batches, and open as if nothing had happened. */
  "forgetful-tables": {
    weights: { "forgetful-table": 20, crash: 2 },
    targets: /^extent-node-/,
    everyMs: 2_500,
    workMs: 15_000,
    recordBytesMax: 80_000,
    lastsMaxMs: 3_000,
    others: 0.1,
  },
  /** The whole folder of the lock service is put back from a backup, beside crashes and nothing else. */
  "older-folders": {
    weights: { crash: 1 },
    everyMs: 15_000,
    others: 0,
    ownersRestMs: 1_000,
    workMs: 90_000,
    putsFolderBack: true,
    failpoints: { hotShare: 0.1, weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 } },
  },
  /** Servers that the partition manager can't reach although they hold their lease. */
  unreachable: {
    weights: { "cut-pair": 20, crash: 1 },
    targets: /^partition-manager-/,
    pairs: [[/^partition-manager-/, /^partition-server-/]],
    everyMs: 1_500,
    lastsMaxMs: 40_000,
    others: 0.02,
  },
  "partition-managers": {
    weights: { "cut-pair": 10, crash: 6, pause: 10 },
    targets: /^partition-manager-/,
    pairs: [[/^partition-manager-/, /^(partition-server|lock-service|extent-node)-/]],
    everyMs: 2_000,
    lastsMaxMs: 12_000,
    others: 0.3,
    failpoints: { hotShare: 0.4, hotChance: 0.1, only: /^partition-(manager send|server receive) / },
  },
  /** Ranges change all the time, and what server and managers say to each other about it is late or lost. */
  reshapes: {
    weights: { reshape: 30, "cut-pair": 3, crash: 3 },
    targets: /^partition-(server|manager)-/,
    pairs: [[/^partition-manager-/, /^partition-server-/]],
    everyMs: 400,
    lastsMaxMs: 6_000,
    others: 0.02,
    failpoints: {
      hotShare: 1,
      hotChance: 0.2,
      delayMaxMs: 10_000,
      only: / (StreamManager\/MultiModify|PartitionServer\/ReshapePartitions)$/,
      weights: { kill: 1, power: 0, pause: 1, delay: 6, error: 3 },
    },
  },
  /** The stream manager stops when it has changed the lists of a split or merge, for so long that another leads. */
  "stopped-hand-overs": {
    weights: { reshape: 30 },
    everyMs: 500,
    others: 0.02,
    network: { keepAliveMs: 10_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.6,
      pauseMaxMs: 15_000,
      only: /^stream-manager receive StreamManager\/MultiModify$/,
      weights: { kill: 0, power: 0, pause: 1, delay: 0, error: 0 },
    },
  },
  /** The partition manager dies when it writes the map. */
  "map-writes": {
    weights: { reshape: 30 },
    everyMs: 600,
    others: 0.02,
    failpoints: {
      hotShare: 1,
      hotChance: 0.1,
      only: /^partition-manager send ExtentNode\/Append$/,
      weights: { kill: 1, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** Ranges are loaded and split at the same time, the map is written slowly, and its manager dies. */
  "slow-maps": {
    weights: { reshape: 30, crash: 12 },
    targets: /^partition-server-/,
    everyMs: 500,
    lastsMaxMs: 1_500,
    others: 0.02,
    failpoints: {
      hotShare: 1,
      hotChance: 0.3,
      delayMaxMs: 3_000,
      only: /^partition-manager send (ExtentNode\/Append|PartitionServer\/ReshapePartitions)$/,
      weights: { kill: 1, power: 0, pause: 0, delay: 6, error: 0 },
    },
  },
  /** Ranges are moved away from servers that hear of it late. */
  moves: {
    weights: { reshape: 30, "cut-pair": 3 },
    pairs: [[/^partition-manager-/, /^partition-server-/]],
    everyMs: 500,
    lastsMaxMs: 6_000,
    others: 0.02,
    failpoints: {
      hotShare: 1,
      hotChance: 0.6,
      delayMaxMs: 10_000,
      only: /^partition-manager send PartitionServer\/ClosePartition$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 2, error: 2 },
    },
  },
  /** Partition managers die, and what they had sent arrives behind what the next one sends. */
  "old-managers": {
    weights: { reshape: 14, crash: 6 },
    targets: /^partition-manager-/,
    everyMs: 600,
    others: 0.01,
    network: { lingerMs: 4_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.7,
      delayMaxMs: 6_000,
      only: /^partition-manager send PartitionServer\/LoadPartition$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** Connections of the partition manager break, and what was sent on them arrives behind what is sent on the next ones. */
  overtaken: {
    weights: { reshape: 10, "broken-connection": 20 },
    pairs: [[/^partition-manager-/, /^partition-server-/]],
    everyMs: 300,
    others: 0.01,
    network: { lingerMs: 4_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.7,
      delayMaxMs: 6_000,
      only: /^partition-manager send PartitionServer\/LoadPartition$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** Loads are late, and the servers that they are for lose their leases and take new ones. */
  "late-loads": {
    weights: { "cut-pair": 20 },
    pairs: [[/^lock-service-/, /^partition-server-/]],
    everyMs: 2_000,
    lastsMaxMs: 16_000,
    others: 0.02,
    failpoints: {
      hotShare: 1,
      hotChance: 0.8,
      delayMaxMs: 30_000,
      only: /^partition-manager send PartitionServer\/LoadPartition$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** Commits of partition servers are on their way for long, and are lost with their server. */
  "held-commits": {
    weights: { crash: 20 },
    targets: /^partition-server-/,
    everyMs: 1_500,
    others: 0.05,
    failpoints: {
      hotShare: 1,
      hotChance: 0.3,
      delayMaxMs: 4_000,
      only: /^partition-server send ExtentNode\/Append$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  checkpoints: { weights: { crash: 20, pause: 4 }, targets: /^partition-server-/, everyMs: 1_500, others: 0.3 },
  /** Disks of extent nodes fill up, often of more than the copies of an extent, and have room again. */
  "full-disks": {
    weights: { "full-disk": 40 },
    targets: /^extent-node-/,
    everyMs: 500,
    lastsMaxMs: 5_000,
    others: 0.02,
    failpoints: {
      hotShare: 1,
      hotChance: 0.3,
      delayMaxMs: 1_500,
      only: /^partition-server send ExtentNode\/(Append|Read)/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** The machines of partition servers are suspended, for about the term of a lease. */
  suspends: { weights: { suspend: 30 }, targets: /^partition-server-/, everyMs: 3_000, lastsMaxMs: 16_000, others: 0.02 },
  /** Wall clocks of partition servers jump, and ranges change servers. */
  clocks: { weights: { "clock-jump": 30, crash: 10 }, targets: /^partition-server-/, everyMs: 1_500, others: 0.1 },
} as const satisfies Record<string, Focus>;

export type FocusName = keyof typeof focuses;

export const focusNames: readonly string[] = Object.keys(focuses);

export function focusNamed(name: string): Focus {
  const focus = (focuses as Record<string, Focus>)[name];
  if (!focus) throw new Error(`no focus ${name}: there are ${focusNames.join(", ")}`);
  return focus;
}
