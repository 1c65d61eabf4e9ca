/**
 * How long is an extent that is being sealed? (stream-layer.md "Seal", step 3.) Answers of fenced replicas in, a length out.
 *
 *  - It is the smallest durable length among the answers that count. One fenced replica is enough to be safe: an append needs all.
 *  - A replica that is shorter than the largest committed length known to any answer, or to the client who asked, has lost data: it does
 *    not count (`knownCommittedLength`).
 *  - 'Unknown extent', 'damaged' and another disk are never a length (`unknownIsNotLength`).
 *  - It goes on when all have answered, or after 10 ms with two answers that count, or after 2 s with one. With none it never goes on. Who
 *    is known to be unreachable (`unreachable`) is not waited for when two answers count. If one answer counts and everybody else is
 *    unreachable, it goes on after 200 ms.
 *  - It decides once; later answers are ignored.
 *  - When a person accepts the loss (`acceptLoss`) and still none counts, it is the longest length that any replica has left, 0 when none has
 *    any; asked for 2 s like one answer that counts.
 */
import type { Rules } from "@stamp/base";
import { assert } from "@stamp/base";

export type SealAnswer =
  | { readonly kind: "length"; readonly durableBytes: number; readonly committedBytes: number; readonly restarted: boolean }
  | { readonly kind: "unknownExtent" }
  | { readonly kind: "damaged" }
  | { readonly kind: "wrongDisk" };

export interface SealPatience {
  /** Time from the first Fence after which two counting answers are enough, in milliseconds. */
  readonly withTwoMs: number;
  /** Time to wait if one intact replica has answered, in milliseconds. */
  readonly withOneMs: number;
  /** Wait with one answer if every other replica is unreachable, in milliseconds. Each was asked about three times by then. */
  readonly withOneReachableMs: number;
}

export const sealPatience: SealPatience = { withTwoMs: 10, withOneMs: 2_000, withOneReachableMs: 200 };

export type SealDecision =
  | {
      readonly kind: "seal";
      readonly lengthBytes: number;
      /** Nodes whose durable length counted, longest first: sources for the others. */
      readonly counted: readonly string[];
      /** Answered with a length below a known committed one: they lost data. */
      readonly suspect: readonly string[];
      /** True if a person accepted that acknowledged data may be lost. */
      readonly lossAccepted: boolean;
    }
  /** Ask again at this time since the start, or when an answer came; without a time only an answer helps. */
  | { readonly kind: "wait"; readonly untilMs?: number };

export class SealMachine {
  readonly #nodeIds: readonly string[];
  readonly #patience: SealPatience;
  readonly #rules: Rules;
  readonly #answers = new Map<string, SealAnswer>();
  #knownCommittedBytes = 0;
  readonly #unreachable = new Set<string>();
  #decided: SealDecision | undefined;
  #lossAcceptedMs: number | undefined;

  constructor(nodeIds: readonly string[], rules: Rules, patience: SealPatience = sealPatience) {
    assert(nodeIds.length > 0 && new Set(nodeIds).size === nodeIds.length, "an extent has replicas on different nodes");
    this.#nodeIds = nodeIds;
    this.#rules = rules;
    this.#patience = patience;
  }

  /** Records the acknowledged length that a client knows who asks for the seal. */
  clientKnows(committedBytes: number): void {
    this.#knownCommittedBytes = Math.max(this.#knownCommittedBytes, committedBytes);
  }

  /** Allows the extent to be sealed at what is left, without an intact replica. */
  acceptLoss(elapsedMs: number): void {
    this.#lossAcceptedMs ??= elapsedMs;
  }

  /** Takes the newest answer of a replica; it may be asked again while nothing is decided. */
  answered(nodeId: string, answer: SealAnswer): void {
    assert(this.#nodeIds.includes(nodeId), "an answer of one of the replicas");
    if (this.#decided === undefined) this.#answers.set(nodeId, answer);
  }

  /** Notes that a node's connection was refused or lost, or that it is silent: it may answer later and is not waited for. */
  unreachable(nodeId: string): void {
    this.#unreachable.add(nodeId);
  }

  /** Nodes to ask (again): those without an answer, and those whose answer does not count. */
  get unanswered(): string[] {
    const committedBytes = this.#committedBytes();
    return this.#nodeIds.filter((nodeId) => !this.#counts(this.#answers.get(nodeId), committedBytes));
  }

  /** Nodes without any answer. */
  get silent(): string[] {
    return this.#nodeIds.filter((nodeId) => !this.#answers.has(nodeId));
  }

  get knownCommittedBytes(): number {
    return this.#committedBytes();
  }

  decide(elapsedMs: number): SealDecision {
    if (this.#decided !== undefined) return this.#decided;
    const committedBytes = this.#committedBytes();
    const counted: { nodeId: string; lengthBytes: number }[] = [];
    const suspect: string[] = [];
    for (const [nodeId, answer] of this.#answers) {
      if (this.#counts(answer, committedBytes)) counted.push({ nodeId, lengthBytes: lengthOf(answer) });
      else if (answer.kind === "length") suspect.push(nodeId);
    }
    if (counted.length === 0) return this.#withLoss(elapsedMs);
    const patienceMs = this.#patienceMs(counted.length);
    if (elapsedMs < patienceMs) return { kind: "wait", untilMs: patienceMs };
    counted.sort((a, b) => b.lengthBytes - a.lengthBytes);
    this.#decided = {
      kind: "seal",
      lengthBytes: Math.min(...counted.map((one) => one.lengthBytes)),
      counted: counted.map((one) => one.nodeId),
      suspect,
      lossAccepted: false,
    };
    return this.#decided;
  }

  /** Returns the time from the first Fence, in milliseconds, after which as many counting answers are enough. */
  #patienceMs(counted: number): number {
    const silent = this.silent;
    if (silent.length === 0) return 0;
    const reachable = silent.some((nodeId) => !this.#unreachable.has(nodeId));
    if (counted >= 2) return reachable ? this.#patience.withTwoMs : 0;
    return reachable ? this.#patience.withOneMs : this.#patience.withOneReachableMs;
  }

  #withLoss(elapsedMs: number): SealDecision {
    if (this.#lossAcceptedMs === undefined) return { kind: "wait" };
    const untilMs = this.#lossAcceptedMs + this.#patience.withOneMs;
    if (this.#answers.size < this.#nodeIds.length && elapsedMs < untilMs) return { kind: "wait", untilMs };
    const left = [...this.#answers].filter(([, answer]) => answer.kind === "length");
    const lengthBytes = Math.max(0, ...left.map(([, answer]) => lengthOf(answer)));
    const counted = left.filter(([, answer]) => lengthOf(answer) === lengthBytes).map(([nodeId]) => nodeId);
    const suspect = this.#nodeIds.filter((nodeId) => !counted.includes(nodeId));
    this.#decided = { kind: "seal", lengthBytes, counted, suspect, lossAccepted: true };
    return this.#decided;
  }

  #committedBytes(): number {
    let committedBytes = this.#knownCommittedBytes;
    for (const answer of this.#answers.values()) {
      if (answer.kind === "length") committedBytes = Math.max(committedBytes, answer.committedBytes);
    }
    return committedBytes;
  }

  #counts(answer: SealAnswer | undefined, committedBytes: number): boolean {
    if (answer === undefined) return false;
    if (answer.kind !== "length" && (answer.kind !== "unknownExtent" || this.#rules.on("unknownIsNotLength"))) return false;
    return lengthOf(answer) >= committedBytes || !this.#rules.on("knownCommittedLength");
  }
}

const lengthOf = (answer: SealAnswer): number => (answer.kind === "length" ? answer.durableBytes : 0);
