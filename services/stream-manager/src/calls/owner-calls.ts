/**
 * The calls of stream owners. Each checks the owner epoch when it comes, in every transaction (the planners do) and, when it has waited
 * since its last transaction, once more at the store before it answers: a leader that was replaced, or an owner that was, gets nothing
 * (model/append.pml FIX 2).
 */
import type { ExtentId, Outcome, OwnerEpoch } from "@stamp/base";
import { ok, present, refused } from "@stamp/base";
import type { ExtentList, ListRange, StreamEdit } from "@stamp/stream";
import {
  checkName,
  checkOwner,
  ownedStream,
  planConfirm,
  planCreateStream,
  planDeleteStream,
  planMultiModify,
  planOpenExtent,
  planOpenStreams,
  planRoll,
  planSealAndOpen,
  planTruncate,
  segmentExtentsMax,
  successorOf,
} from "@stamp/stream";
import type { ExtentsAhead } from "../allocation/ahead.ts";
import type { Allocator } from "../allocation/allocator.ts";
import type { Completer } from "../seal/completer.ts";
import type { Sealer } from "../seal/sealer.ts";
import { Steps } from "../seal/steps.ts";
import { notLeader } from "../term/ledger.ts";
import type { Term } from "../term/term.ts";
import { MintedEpochs } from "./minted-epochs.ts";

export interface SealAndAllocate {
  readonly name: string;
  readonly ownerEpoch: OwnerEpoch;
  /** Extent that the owner takes for the last of its list; undefined if the owner takes the list for empty. */
  readonly extent: ExtentId | undefined;
  readonly knownCommittedBytes: number;
  readonly avoidAddresses: readonly string[];
  /** True if every append is acknowledged, up to `knownCommittedBytes`, and no other will come. */
  readonly complete: boolean;
  /** Returns false when the caller has given up. */
  readonly wanted: () => boolean;
}

export interface SealedAndNext {
  readonly sealedLengthBytes: number;
  readonly successor: ExtentId;
}

/** An edit that makes a stream. */
export interface WantedEdit extends StreamEdit {
  /** True to open the extent that was made ahead for the stream. */
  readonly openAhead?: boolean;
}

interface Running {
  readonly wanted: Set<() => boolean>;
  readonly outcome: Promise<Outcome<void>>;
}

export class OwnerCalls {
  readonly #term: Term;
  readonly #sealer: Sealer;
  readonly #completer: Completer;
  readonly #allocator: Allocator;
  readonly #ahead: ExtentsAhead;
  readonly #minted: MintedEpochs;
  /** Allocations under way, one for one place in a list at a time: later calls join it. */
  readonly #successions = new Map<string, Running>();

  constructor(term: Term, sealer: Sealer, completer: Completer, allocator: Allocator, ahead: ExtentsAhead) {
    this.#term = term;
    this.#sealer = sealer;
    this.#completer = completer;
    this.#allocator = allocator;
    this.#ahead = ahead;
    this.#minted = new MintedEpochs(term.world, term.config);
  }

  async createStream(name: string, epoch: OwnerEpoch): Promise<Outcome<void>> {
    const given = await this.#areGiven([[name, epoch]]);
    if (!given.ok) return given;
    return this.#term.ledger.commit((state) => planCreateStream(state, name, epoch));
  }

  /** Opens a stream for its owner. Returns its list as it was when the epoch was recorded; every extent of it is sealed and may be told. */
  async openStream(name: string, epoch: OwnerEpoch, create: boolean): Promise<Outcome<ExtentList>> {
    const opened = await this.openStreams([name], epoch, create);
    return opened.ok ? ok(present(opened.value[0], "its list")) : opened;
  }

  /** Opens several streams of one owner, as `openStream` does one. The epoch is recorded for all of them or for none. */
  async openStreams(names: readonly string[], epoch: OwnerEpoch, create: boolean): Promise<Outcome<readonly ExtentList[]>> {
    const { ledger, state, world } = this.#term;
    const given = await this.#areGiven(names.map((name) => [name, epoch]));
    if (!given.ok) return given;
    const opened = await ledger.commit((current) => planOpenStreams(current, names, epoch, create, world.rules));
    if (!opened.ok) return opened;
    const lists = names.map((name) => state.list(name));
    if (lists.every((list) => list.last === undefined)) return ok(lists);
    // All but the last are sealed, unless they were taken back after a restore.
    const unsealed = lists.flatMap((list) => list.slice(0)).filter((id) => state.unsealed().has(id));
    const seals = await Promise.all(unsealed.map((last) => this.#sealer.seal(last, 0)));
    const failed = seals.find((sealed) => !sealed.ok);
    if (failed !== undefined && !failed.ok) return failed;
    for (;;) {
      const ids = lists.flatMap((list) => list.slice(0));
      await this.#completer.untilTellable(ids);
      const confirmed = await this.#confirm(names, epoch);
      if (!confirmed.ok) return confirmed;
      // A replica that was found damaged meanwhile may take a length back until another one holds it.
      if (this.#completer.allTellable(ids)) return ok(lists);
    }
  }

  async sealAndAllocate(request: SealAndAllocate): Promise<Outcome<SealedAndNext>> {
    const { state, world } = this.#term;
    const { name, ownerEpoch, extent } = request;
    for (;;) {
      const owned = ownedStream(state, name, ownerEpoch, world.rules);
      if (!owned.ok) return owned;
      const successor = successorOf(state, name, extent);
      if (!successor.ok) return successor;
      if (successor.value.kind === "found") return this.#answer(request, successor.value.id);
      if (this.#term.ended.aborted) return notLeader();
      const succeeded = await this.#succeed(request);
      const told = succeeded.ok ? this.#asCommitted(request) : undefined;
      if (told !== undefined) return ok(told);
      if (!succeeded.ok && succeeded.failure.reason !== "conflict") return succeeded;
    }
  }

  async truncate(name: string, epoch: OwnerEpoch, before: ExtentId): Promise<Outcome<void>> {
    return this.#term.ledger.commit((state) => planTruncate(state, name, epoch, before, this.#term.world.rules));
  }

  async deleteStream(name: string, epoch: OwnerEpoch): Promise<Outcome<void>> {
    return this.#term.ledger.commit((state) => planDeleteStream(state, name, epoch, this.#term.world.rules));
  }

  /** Makes the successor of `last` ahead of need; nobody waits for it. Of a stream that is to come: resolves when it is there. */
  async allocateAhead(name: string, epoch: OwnerEpoch, last: ExtentId | undefined): Promise<Outcome<void>> {
    const { state, world } = this.#term;
    if (state.stream(name) === undefined) {
      const named = checkName(name);
      // The stream will record it, and its nodes do now.
      const given = named.ok ? await this.#areGiven([[name, epoch]]) : named;
      if (!given.ok) return given;
      if (named.ok) await this.#ahead.prepare(name, epoch, last);
      return named;
    }
    const owned = ownedStream(state, name, epoch, world.rules);
    if (!owned.ok) return owned;
    const successor = successorOf(state, name, last);
    if (!successor.ok) return successor;
    const follows = last === undefined || state.extent(last)?.phase === "open";
    if (successor.value.kind === "none" && follows) void this.#ahead.prepare(name, epoch, last);
    return ok();
  }

  /** Gives what was opened, by stream. */
  async multiModify(wantedEdits: readonly WantedEdit[]): Promise<Outcome<ReadonlyMap<string, ExtentId>>> {
    const opened = new Map<string, ExtentId>();
    const given = await this.#areGiven(wantedEdits.map(({ name, content }) => [name, content?.ownerEpoch]));
    if (!given.ok) return given;
    const edits = await Promise.all(wantedEdits.map((edit) => this.#withFirst(edit, opened)));
    const changed = await this.#change(edits);
    if (changed.ok) return ok(opened);
    for (const id of opened.values()) this.#allocator.drop(id);
    return changed;
  }

  /** Refuses an epoch that its minter can't have given, before a stream records it. */
  async #areGiven(owners: readonly (readonly [stream: string, epoch: OwnerEpoch | undefined])[]): Promise<Outcome<void>> {
    for (const [stream, epoch] of owners) {
      if (epoch === undefined || !this.#minted.isFar(stream, epoch)) continue;
      const vouched = await this.#minted.vouchFor(stream, epoch);
      if (!vouched.ok) return vouched;
    }
    return ok();
  }

  async #change(edits: readonly StreamEdit[]): Promise<Outcome<void>> {
    const segmentIds: number[] = [];
    for (;;) {
      const committed = await this.#term.ledger.commit((state) => planMultiModify(state, edits, segmentIds, this.#term.world.rules));
      if (committed.ok) this.#tellCompleted(edits);
      const wanted = committed.ok ? undefined : committed.failure.details?.segments;
      if (wanted === undefined) return committed;
      while (segmentIds.length < Number(wanted)) {
        const minted = await this.#allocator.mintId();
        if (!minted.ok) return minted;
        segmentIds.push(minted.value);
      }
    }
  }

  async #withFirst(edit: WantedEdit, opened: Map<string, ExtentId>): Promise<StreamEdit> {
    const { name, content } = edit;
    if (content === undefined || !edit.openAhead) return edit;
    const open = await this.#ahead.takeMade(name, content.ownerEpoch);
    if (open !== undefined) opened.set(name, open);
    return { ...edit, content: { ...content, open } };
  }

  /** Notes for completed extents that every replica holds what is acknowledged. */
  #tellCompleted(edits: readonly StreamEdit[]): void {
    for (const { complete } of edits) {
      const replicas = complete && this.#term.state.extent(complete.extent)?.replicas;
      if (complete && replicas)
        this.#completer.start(
          complete.extent,
          replicas.map(({ nodeId }) => nodeId),
        );
    }
  }

  async rename(name: string, epoch: OwnerEpoch, newName: string): Promise<Outcome<void>> {
    if (newName === name) return this.#confirm([name], epoch);
    const renamed = await this.multiModify([
      { name, ownerEpoch: epoch, content: undefined },
      { name: newName, ownerEpoch: undefined, content: { ownerEpoch: epoch, ranges: [{ stream: name }] } },
    ]);
    return renamed.ok ? ok() : renamed;
  }

  /** Appends the list of the source to that of the target, whose owner goes on behind it. */
  async concatenate(target: string, epoch: OwnerEpoch, source: string, sourceEpoch: OwnerEpoch): Promise<Outcome<void>> {
    if (target === source) return refused("invalidArgument", "badRequest", `stream ${source} can't be appended to itself`);
    for (const [name, owner] of [
      [target, epoch],
      [source, sourceEpoch],
    ] as const) {
      const opened = await this.openStream(name, owner, false);
      if (!opened.ok) return opened;
    }
    const ranges: ListRange[] = [{ stream: target }, { stream: source }];
    const joined = await this.multiModify([
      { name: target, ownerEpoch: epoch, content: { ownerEpoch: epoch, ranges } },
      { name: source, ownerEpoch: sourceEpoch, content: undefined },
    ]);
    return joined.ok ? ok() : joined;
  }

  /** Joins the allocation that runs for this place, or starts one. */
  async #succeed(request: SealAndAllocate): Promise<Outcome<void>> {
    const key = `${request.ownerEpoch} ${request.extent ?? 0} ${request.name}`;
    const running = this.#successions.get(key);
    if (running !== undefined) {
      for (const one of running.wanted) if (!one()) running.wanted.delete(one);
      running.wanted.add(request.wanted);
      if (request.extent !== undefined) void this.#sealer.seal(request.extent, request.knownCommittedBytes);
      return running.outcome;
    }
    const wanted = new Set([request.wanted]);
    const outcome = this.#run(request, () => [...wanted].some((one) => one()));
    this.#successions.set(key, { wanted, outcome });
    const result = await outcome;
    this.#successions.delete(key);
    return result;
  }

  /** Seals, and meanwhile prepares the successor; then opens it. */
  async #run(request: SealAndAllocate, wanted: () => boolean): Promise<Outcome<void>> {
    const { ledger, world } = this.#term;
    const { name: stream, ownerEpoch, extent: predecessor, avoidAddresses } = request;
    const rolled = predecessor !== undefined && request.complete ? await this.#roll({ ...request, extent: predecessor }) : undefined;
    if (rolled !== undefined) return rolled;
    const steps = new Steps(world.clock);
    let prepared: ExtentId | undefined;
    let isTogether = false;
    const sealTogether = async (endBytes: number): Promise<Outcome<void> | undefined> => {
      if (prepared === undefined || predecessor === undefined) return undefined;
      const id = prepared;
      const segment = await this.#segmentId(stream);
      if (!segment.ok) return undefined;
      const both = await ledger.commit((state) =>
        planSealAndOpen(state, { stream, ownerEpoch, predecessor, id, endBytes }, segment.value, world.rules),
      );
      isTogether = both.ok;
      return both;
    };
    const sealing =
      predecessor === undefined ? undefined : this.#sealer.seal(predecessor, request.knownCommittedBytes, sealTogether, steps);
    const ahead = await this.#ahead.take(stream, ownerEpoch, predecessor, avoidAddresses);
    const allocated =
      ahead === undefined ? await this.#allocator.allocate({ stream, ownerEpoch, predecessor, avoidAddresses, wanted, steps }) : ok(ahead);
    // The seal goes on, and the next call joins it. A node without room may answer no fence for as long as it has none.
    if (!allocated.ok) return allocated;
    prepared = allocated.value;
    const sealed = await sealing;
    const told = (id: ExtentId): void => {
      steps.reached("opened");
      world.logger.info("extent succeeded", { stream, extent: predecessor ?? 0, successor: id, ahead: ahead !== undefined, ms: steps.ms });
    };
    const id = allocated.value;
    if (isTogether) {
      told(id);
      return ok();
    }
    if (sealed !== undefined && !sealed.ok) {
      this.#allocator.drop(id);
      return sealed;
    }
    const segment = await this.#segmentId(stream);
    if (!segment.ok) return segment;
    const opened = await ledger.commit((state) =>
      planOpenExtent(state, { stream, ownerEpoch, predecessor, id }, segment.value, world.rules),
    );
    if (opened.ok) told(id);
    else this.#allocator.drop(id);
    return opened;
  }

  /**
   * Changes from a full extent to the one that was made ahead, in one transaction. Undefined: it has to be sealed and
   * followed the usual way.
   */
  async #roll(request: SealAndAllocate & { readonly extent: ExtentId }): Promise<Outcome<void> | undefined> {
    const { ledger, state, world } = this.#term;
    const { name: stream, ownerEpoch, extent: predecessor, knownCommittedBytes: endBytes } = request;
    if (state.extent(predecessor)?.phase !== "open") return undefined;
    const id = await this.#ahead.take(stream, ownerEpoch, predecessor, request.avoidAddresses);
    if (id === undefined) return undefined;
    const segment = await this.#segmentId(stream);
    if (!segment.ok) return segment;
    const rolled = await ledger.commit((current) =>
      planRoll(current, { stream, ownerEpoch, predecessor, id, endBytes }, segment.value, world.rules),
    );
    if (rolled.ok) {
      // Every replica holds what is acknowledged.
      this.#completer.start(predecessor, state.extent(predecessor)?.replicas.map((replica) => replica.nodeId) ?? []);
      return rolled;
    }
    this.#allocator.drop(id);
    return rolled.failure.reason === "conflict" ? undefined : rolled;
  }

  /** Returns a number for a new segment, when the tail of the list is full. */
  async #segmentId(stream: string): Promise<Outcome<number | undefined>> {
    const tail = this.#term.state.stream(stream)?.tail.length ?? 0;
    return tail < segmentExtentsMax ? ok<number | undefined>(undefined) : this.#allocator.mintId();
  }

  /**
   * Returns the succession that was just committed for this owner, if it may be told at once, without a second look at
   * the store.
   */
  #asCommitted({ name, ownerEpoch, extent }: SealAndAllocate): SealedAndNext | undefined {
    const { state, world } = this.#term;
    const successor = successorOf(state, name, extent);
    if (!ownedStream(state, name, ownerEpoch, world.rules).ok || !successor.ok || successor.value.kind === "none") return undefined;
    const sealed = extent === undefined ? undefined : state.extent(extent);
    if (extent !== undefined && (sealed === undefined || !this.#completer.tellable(sealed))) return undefined;
    return { sealedLengthBytes: sealed?.sealedLengthBytes ?? 0, successor: successor.value.id };
  }

  async #answer(request: SealAndAllocate, successor: ExtentId): Promise<Outcome<SealedAndNext>> {
    const { state } = this.#term;
    const { name, ownerEpoch, extent } = request;
    if (extent === undefined) {
      const confirmed = await this.#confirm([name], ownerEpoch);
      return confirmed.ok ? ok({ sealedLengthBytes: 0, successor }) : confirmed;
    }
    await this.#completer.untilTellable([extent]);
    const confirmed = await this.#confirm([name], ownerEpoch);
    if (!confirmed.ok) return confirmed;
    return ok({ sealedLengthBytes: state.extent(extent)?.sealedLengthBytes ?? 0, successor });
  }

  /** Checks at the store that the term and the owner still hold. */
  #confirm(names: readonly string[], epoch: OwnerEpoch): Promise<Outcome<void>> {
    return this.#term.ledger.commit((state) => {
      for (const name of names) {
        const record = state.stream(name);
        const owner = record === undefined ? ok() : checkOwner(record, epoch, this.#term.world.rules);
        if (!owner.ok) return owner;
      }
      return ok(planConfirm(...names));
    });
  }
}
