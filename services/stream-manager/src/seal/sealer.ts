/**
 * Seals extents: gives an extent its final length, for which its replicas are asked.
 *
 *     record `sealing` and fence every replica ─► SealMachine decides the length ─► record it ─► tell the owner and the replicas (Completer)
 *
 * Invariants:
 *  - A replica is asked for its length only after it was fenced, so no append lands behind that length (rule fenceBeforeLength).
 *  - A length is told to nobody before it is recorded (rule recordSealBeforeTelling), nor while fewer than `minCopies` replicas hold it
 *    durably (rule minCopiesBeforeTelling).
 *  - One seal of an extent at a time; later calls join it. A seal goes on until it is decided, also when its caller has given up. While no
 *    length can be decided, an error is logged every ten seconds.
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { assert, Histogram, ok, present, refused, unknownOutcome, WakeUp } from "@stamp/base";
import { jittered, sleep, within } from "@stamp/ports";
import type { ReplicaRecord, SealAnswer } from "@stamp/stream";
import { planBeginSeal, planRecordSealed, planUnseal, SealMachine } from "@stamp/stream";
import { fromWire, ReplicaState, toWire } from "@stamp/wire";
import type { Term } from "../term/term.ts";
import { endIfStale, extentNode } from "../term/term.ts";
import type { Completer } from "./completer.ts";
import type { Steps } from "./steps.ts";

/**
 * Records the length together with the opening of the successor, when that is ready. Undefined: not possible, the length is recorded
 * alone.
 */
export type RecordWithSuccessor = (sealedLengthBytes: number) => Promise<Outcome<void> | undefined>;

interface Job {
  readonly machine: SealMachine;
  readonly startedMs: number;
  together: RecordWithSuccessor | undefined;
  readonly steps: Steps | undefined;
  /** Note of a person who accepts that acknowledged data may be lost. */
  note: string | undefined;
  readonly done: Promise<Outcome<number>>;
  /** An answer came, or a person spoke. */
  readonly changed: WakeUp;
  decided: boolean;
}

const askAgainMinMs = 20;
const askAgainMaxMs = 500;
const loudEveryMs = 10_000;

export class Sealer {
  readonly #term: Term;
  readonly #completer: Completer;
  readonly #jobs = new Map<ExtentId, Job>();
  /** Seals in this term, until the length was recorded. */
  readonly took: Histogram;

  constructor(term: Term, completer: Completer) {
    this.took = new Histogram(term.world.clock);
    this.#term = term;
    this.#completer = completer;
  }

  get inProgress(): number {
    return this.#jobs.size;
  }

  /** Returns, for people, the seals that take long, and why. */
  waits(): string[] {
    const nowMs = this.#term.world.clock.monotonicMs();
    return [...this.#jobs]
      .filter(([, job]) => !job.decided && nowMs - job.startedMs > loudEveryMs)
      .map(([id, job]) => `extent ${id} can't be sealed: no intact replica answers (${job.machine.unanswered.join(", ")})`);
  }

  /** Returns the sealed length, when it is recorded. `clientKnowsBytes`: what the caller knows to be acknowledged. */
  async seal(id: ExtentId, clientKnowsBytes: number, together?: RecordWithSuccessor, steps?: Steps): Promise<Outcome<number>> {
    const { state, world } = this.#term;
    const extent = state.extent(id);
    if (extent === undefined) return refused("notFound", "unknownExtent", `extent ${id} is not known`);
    if (extent.phase === "sealed") return ok(present(extent.sealedLengthBytes, "length of a sealed extent"));
    if (extent.phase !== "open" && extent.phase !== "sealing") {
      return refused("failedPrecondition", "unknownExtent", `extent ${id} is ${extent.phase}`);
    }
    const running = this.#jobs.get(id);
    if (running !== undefined) {
      running.machine.clientKnows(clientKnowsBytes);
      running.together ??= together;
      return running.done;
    }
    const machine = new SealMachine(
      extent.replicas.map((replica) => replica.nodeId),
      world.rules,
    );
    machine.clientKnows(clientKnowsBytes);
    for (const replica of extent.replicas) if (this.#term.nodes.down(replica)) machine.unreachable(replica.nodeId);
    const { promise: done, resolve: finish } = Promise.withResolvers<Outcome<number>>();
    const startedMs = world.clock.monotonicMs();
    const job: Job = { machine, startedMs, together, steps, note: undefined, done, changed: new WakeUp(), decided: false };
    this.#jobs.set(id, job);
    // A seal that nobody ends would be joined by every later one.
    const outcome = await this.#run(id, job, extent.replicas).catch((error: unknown) => unknownOutcome("internal", "bug", String(error)));
    job.decided = true;
    this.took.since(startedMs);
    this.#jobs.delete(id);
    finish(outcome);
    return outcome;
  }

  /**
   * A person's word: when no intact replica answers it is sealed at what is left, and that is recorded for ever. Refused when it is sealed
   * already: nothing more can be lost by it.
   */
  async sealAcceptingLoss(id: ExtentId, note: string): Promise<Outcome<number>> {
    const phase = this.#term.state.extent(id)?.phase;
    if (phase === "sealed") return refused("failedPrecondition", "extentSealed", `extent ${id} is sealed already`);
    const sealing = this.seal(id, 0);
    const job = this.#jobs.get(id);
    if (job !== undefined) {
      job.note = note;
      job.machine.acceptLoss(this.#term.world.clock.monotonicMs() - job.startedMs);
      job.changed.notify();
    }
    return sealing;
  }

  async #run(id: ExtentId, job: Job, replicas: readonly ReplicaRecord[]): Promise<Outcome<number>> {
    const { ledger, state, world } = this.#term;
    const beginning = ledger.commit(() => planBeginSeal(state, id));
    // A fence only takes away, so it does not wait for the record.
    const deciding = this.#decide(id, job, replicas);
    const begun = await beginning;
    job.steps?.reached("sealRecorded");
    if (!begun.ok || state.extent(id)?.phase === "sealed") {
      job.decided = true;
      job.changed.notify();
      return begun.ok ? ok(present(state.extent(id)?.sealedLengthBytes, "length of a sealed extent")) : begun;
    }
    const decision = await deciding;
    if (decision === undefined) return refused("unavailable", "notLeader", "the term ended during the seal");
    for (const nodeId of job.machine.silent) this.#term.nodes.foundSlow(nodeId);
    if (decision.lossAccepted) {
      world.logger.error("an extent is sealed although acknowledged data may be lost", { extent: id, lengthBytes: decision.lengthBytes });
    } else if (decision.suspect.length > 0) {
      world.logger.error("replicas lost acknowledged data", {
        extent: id,
        nodes: decision.suspect,
        known: job.machine.knownCommittedBytes,
      });
    }
    if (!world.rules.on("recordSealBeforeTelling")) await this.#completer.tellUnrecorded(id, decision.lengthBytes, decision.counted);
    const knownCommittedBytes = job.machine.knownCommittedBytes;
    const loss = decision.lossAccepted
      ? { knownCommittedBytes, wallMs: Math.floor(world.clock.wallMs()), note: job.note ?? "" }
      : undefined;
    const few = decision.counted.length < this.#term.config.minCopies && world.rules.on("minCopiesBeforeTelling");
    const untold = few ? { untold: decision.counted } : {};
    const together = few || loss !== undefined ? undefined : await job.together?.(decision.lengthBytes);
    const recorded = together?.ok
      ? together
      : await ledger.commit(() => planRecordSealed(state, id, decision.lengthBytes, loss === undefined ? untold : { loss }));
    if (!recorded.ok) return recorded;
    const sealed = state.extent(id);
    if (sealed?.sealedLengthBytes === undefined) return refused("notFound", "unknownExtent", `extent ${id} was dropped during its seal`);
    world.logger.info("extent sealed", { extent: id, lengthBytes: sealed.sealedLengthBytes, counted: decision.counted });
    this.#completer.start(id, decision.counted);
    return ok(sealed.sealedLengthBytes);
  }

  /** Determines a length anew that nobody was told and that no replica can be brought to. Called every tick. */
  async again(id: ExtentId): Promise<void> {
    const { ledger, state, world } = this.#term;
    const extent = state.extent(id);
    if (extent === undefined || this.#jobs.has(id) || !this.#completer.isLost(extent)) return;
    world.logger.error("the only replica of a sealed length that no caller has seen is lost: the extent is sealed again", {
      extent: id,
      lengthBytes: extent.sealedLengthBytes,
      lost: extent.untold,
    });
    const unsealed = await ledger.commit((current) => planUnseal(current, id));
    if (!unsealed.ok || state.extent(id)?.phase !== "sealing") return;
    this.#completer.forget(id);
    await this.seal(id, 0);
  }

  async #decide(id: ExtentId, job: Job, replicas: readonly ReplicaRecord[]) {
    const { clock, logger } = this.#term.world;
    const { ended } = this.#term;
    const startedMs = clock.monotonicMs();
    const answered = job.changed;
    for (const replica of replicas) void this.#ask(id, job, replica, answered);
    let loudMs = startedMs + loudEveryMs;
    for (;;) {
      if (ended.aborted || job.decided) return undefined;
      const nowMs = clock.monotonicMs();
      const decision = job.machine.decide(nowMs - startedMs);
      if (decision.kind === "seal") {
        job.steps?.reached("lengthDecided");
        job.decided = true;
        return decision;
      }
      if (nowMs >= loudMs) {
        logger.error("an extent can't be sealed: no intact replica answers", { extent: id, asked: job.machine.unanswered });
        loudMs = nowMs + loudEveryMs;
      }
      const waitMs = Math.min(loudMs, startedMs + (decision.untilMs ?? Number.POSITIVE_INFINITY)) - nowMs;
      await within(clock, Math.min(Math.max(waitMs, 0.1), 1_000), answered.next);
    }
  }

  /** Asks one replica until the seal is decided. Its last good answer stays, one that does not count is asked for again. */
  async #ask(id: ExtentId, job: Job, replica: ReplicaRecord, answered: WakeUp): Promise<void> {
    const { ended, world } = this.#term;
    let pauseMs = askAgainMinMs;
    while (!job.decided && !ended.aborted) {
      const answer = await this.#fence(id, replica);
      if (job.decided || ended.aborted) return;
      if (answer === "unreachable") {
        // Whoever places new extents should know at once.
        this.#term.nodes.distrust(replica.nodeId);
        job.machine.unreachable(replica.nodeId);
        answered.notify();
      } else if (answer !== undefined) {
        job.machine.answered(replica.nodeId, answer);
        answered.notify();
      }
      await sleep(world.clock, jittered(world.random, pauseMs), ended);
      pauseMs = Math.min(pauseMs * 2, askAgainMaxMs);
      while (!job.decided && !ended.aborted && !job.machine.unanswered.includes(replica.nodeId)) {
        await within(world.clock, askAgainMaxMs, answered.next);
      }
    }
  }

  /** Returns undefined if the replica did not answer. */
  async #fence(id: ExtentId, replica: ReplicaRecord): Promise<SealAnswer | "unreachable" | undefined> {
    const { config, number, world } = this.#term;
    const node = extentNode(this.#term, replica.nodeId);
    if (node === undefined) return undefined;
    const timeoutMs = config.fenceTimeoutMs;
    if (!world.rules.on("fenceBeforeLength")) return this.#unfencedLength(id, replica);
    const extent = this.#term.state.extent(id);
    const answer = await node.fenceExtent(
      {
        smTerm: toWire(number),
        extentId: toWire(id),
        diskId: replica.diskId,
        version: toWire(extent?.version ?? 0),
        creation: toWire(extent?.creation ?? 0),
      },
      { timeoutMs },
    );
    if (answer.ok) {
      const { durableBytes, committedBytes, restarted } = answer.value;
      return { kind: "length", durableBytes: fromWire(durableBytes), committedBytes: fromWire(committedBytes), restarted };
    }
    endIfStale(this.#term, answer.failure);
    if (answer.failure.reason === "connectFailed" || answer.failure.reason === "connectionLost") return "unreachable";
    switch (answer.failure.reason) {
      case "wrongDisk":
        // Another node may answer at this one's old address: that is no word of its disk.
        return this.#term.nodes.hasOtherDisk(replica) ? { kind: "wrongDisk" } : "unreachable";
      case "unknownExtent":
      case "damaged":
        return { kind: answer.failure.reason };
      case "timeout":
        // A host that is cut off refuses no connection. A node that this leader hears of is only slow.
        return this.#term.nodes.up(replica.nodeId) ? undefined : "unreachable";
      default:
        return undefined;
    }
  }

  /** Returns a length without a fence. No seal does so; only with the rule `fenceBeforeLength` off in a simulation. */
  async #unfencedLength(id: ExtentId, replica: ReplicaRecord): Promise<SealAnswer | undefined> {
    assert(!this.#term.world.rules.on("fenceBeforeLength"), "lengths are asked of fenced replicas");
    const node = extentNode(this.#term, replica.nodeId);
    const answer = await node?.getExtentReplica({ extentId: toWire(id) }, { timeoutMs: this.#term.config.fenceTimeoutMs });
    if (!answer?.ok || answer.value.state === ReplicaState.DAMAGED) return undefined;
    const { durableBytes, committedBytes, restarted } = answer.value;
    return { kind: "length", durableBytes: fromWire(durableBytes), committedBytes: fromWire(committedBytes), restarted };
  }
}
