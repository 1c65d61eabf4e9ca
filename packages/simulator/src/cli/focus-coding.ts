/** Tempers of workload `coding`: what attempts at coding, decoding and deletions of fragments meet. */
import type { Focus } from "../workloads/faults/fault-kinds.ts";

export const codingFocuses = {
  /** Fragments rot and are lost, nodes die while they are made, and several attempts at each extent follow one another. */
  fragments: {
    weights: { "fragment-damage": 40, crash: 6, "cut-pair": 3 },
    targets: /^extent-node-/,
    pairs: [[/^stream-manager-/, /^extent-node-/]],
    everyMs: 250,
    lastsMaxMs: 3_000,
    others: 0.1,
  },
  /** The power goes while fragments are made and right after. */
  "fragment-power": {
    weights: { "power-loss": 10, "rack-loss": 10, "slow-disk": 4 },
    everyMs: 1_500,
    lastsMaxMs: 3_000,
    others: 0.1,
  },
  /** The same few extents become fragments and replicas again and again, and attempts are given up: garbage of one meets the next. */
  "few-extents": {
    weights: { crash: 4, "cut-pair": 6, pause: 2 },
    targets: /^extent-node-/,
    pairs: [[/^stream-manager-/, /^extent-node-/]],
    everyMs: 1_000,
    lastsMaxMs: 2_000,
    others: 0.05,
    codesFew: 2,
    workMs: 20_000,
  },
  /** The same; connections break, and deletions that were sent on them arrive behind what is sent on the next ones. */
  "late-deletions": {
    weights: { "broken-connection": 30, crash: 1 },
    pairs: [[/^stream-manager-/, /^extent-node-/]],
    everyMs: 200,
    others: 0.02,
    codesFew: 6,
    workMs: 25_000,
    network: { lingerMs: 6_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.7,
      delayMaxMs: 8_000,
      only: /^stream-manager send ExtentNode\/DeleteExtent$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** A person has fragments deleted while attempts make them, and the deletions arrive late. */
  "deleted-strays": {
    weights: { crash: 1 },
    everyMs: 3_000,
    others: 0.05,
    codesFew: 6,
    deletesStrays: true,
    failpoints: {
      hotShare: 1,
      hotChance: 0.5,
      delayMaxMs: 4_000,
      only: /^(stream-manager send ExtentFragments\/(DeleteFragment|VerifyFragments)|extent-node send ExtentFragments\/WriteFragment)$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** The same few extents become fragments and replicas again and again, and what was replaced stays for a while. */
  "kept-replicas": {
    weights: { crash: 1 },
    everyMs: 5_000,
    others: 0.05,
    codesFew: 6,
    workMs: 45_000,
    ownersRestMs: 1_000,
    deletionGraceMs: 20_000,
  },
  /** A person restores metadata of before some extents were coded, has strays deleted, and restores newer ones. */
  "older-metadata": { weights: { crash: 1 }, everyMs: 3_000, others: 0.05, workMs: 10_000, restoresMetadata: true },
  /** Replicas are made again, slowly, where older ones are to be deleted. */
  "slow-decodings": {
    weights: { crash: 1 },
    everyMs: 3_000,
    others: 0.05,
    codesFew: 12,
    workMs: 30_000,
    failpoints: {
      hotShare: 1,
      hotChance: 0.5,
      delayMaxMs: 20_000,
      only: /^stream-manager send ExtentFragments\/DecodeExtent$/,
      weights: { kill: 0, power: 0, pause: 0, delay: 1, error: 0 },
    },
  },
  /** Replicas rot, and are made into fragments. */
  "rotten-replicas": {
    weights: { "bit-rot": 40 },
    targets: /^extent-node-/,
    everyMs: 1_000,
    others: 0.05,
    codesFew: 30,
    codesOfWeak: true,
  },
  /** Pieces of fragments, the commands to make them and deletions are late, and managers are deposed meanwhile. */
  "late-fragments": {
    weights: { "cut-pair": 10, pause: 10, crash: 4 },
    targets: /^(stream-manager|extent-node)-/,
    pairs: [[/^stream-manager-/, /^extent-node-/]],
    everyMs: 700,
    lastsMaxMs: 8_000,
    others: 0.1,
    network: { keepAliveMs: 10_000 },
    failpoints: {
      hotShare: 1,
      hotChance: 0.2,
      delayMaxMs: 9_000,
      only: /^(stream-manager|extent-node) (send|receive) ExtentFragments\/(Make|Write|Delete|Verify|Repair)/,
      weights: { kill: 1, power: 0, pause: 1, delay: 6, error: 1 },
    },
  },
} as const satisfies Record<string, Focus>;
