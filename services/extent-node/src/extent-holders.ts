/**
 * Nodes that may have raw content of an extent: those that its record names. A node asks the leading stream manager before it gives bytes past the
 * checks of clients' reads to another node, or takes a fragment of one. Only a certificate tells which node calls: with the secret alone nothing is
 * asked, because the caller may call itself anything.
 *
 * Invariants:
 * - An answer that names the caller stands for `askedAgainMs`. One that does not name it is never kept: the record may name it by now.
 * - While nobody answers, what was answered before stands for `standsMs`, so that a copy goes on, and nodes that the extent was made with may
 *   complete their replicas.
 * - Below the feature level that brings the question, it is not asked: the stream manager may be of the release before.
 */
import { neededLevels, type Outcome, ok, refused } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { CallContext, World } from "@stamp/ports";
import { fromWire, type GetExtentHoldersResponse, StreamManager, toWire } from "@stamp/wire";

const askTimeoutMs = 1_000;
const askedAgainMs = 10_000;
const standsMs = 600_000;
/** Extents whose answers are kept; the oldest answer goes. */
const keptMax = 4_096;

type Holders = Pick<GetExtentHoldersResponse, "nodeIds" | "coding">;
type Caller = Pick<CallContext, "caller" | "callerName">;

interface Parts {
  readonly world: World;
  readonly lockService: string;
  /** Name of this node. */
  readonly nodeId: string;
  /** Returns the feature level of the stamp; undefined: not known yet. */
  readonly level: () => number | undefined;
  /** True if the extent was made with a replica on this node and on that one, as far as this node knows. */
  readonly madeWith: (extentId: number, nodeId: string) => boolean;
}

export class ExtentHolders {
  readonly #parts: Parts;
  readonly #leader: LeaderCalls;
  readonly #kept = new Map<number, Holders & { readonly atMs: number }>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#leader = new LeaderCalls(parts.world, { lockService: parts.lockService, leaseName: "stream-manager" });
  }

  /** Refuses raw content to an extent node that the record does not name. Callers of other roles are those of the table of callers. */
  mayRead(extentId: number, context: Caller): Promise<Outcome<void>> {
    const named = this.#named(context);
    if (named === undefined) return Promise.resolve(ok());
    const { madeWith } = this.#parts;
    return this.#check(
      extentId,
      named,
      ({ nodeIds }) => nodeIds.includes(named),
      () => madeWith(extentId, named),
    );
  }

  /** Refuses a fragment, unless a coding of this version is under way, the caller may make its fragments, and one is for this node. */
  mayWrite(extentId: number, version: number, context: Caller): Promise<Outcome<void>> {
    const named = this.#named(context);
    if (named === undefined) return Promise.resolve(ok());
    const isNamed = ({ coding }: Holders): boolean =>
      coding !== undefined &&
      fromWire(coding.version) === version &&
      coding.makers.includes(named) &&
      coding.targets.includes(this.#parts.nodeId);
    return this.#check(extentId, named, isNamed, () => false);
  }

  /** Returns the name of the calling node, if it has to be compared. */
  #named({ caller, callerName }: Caller): string | undefined {
    const isAsked = caller === "extent-node" && (this.#parts.level() ?? 0) >= neededLevels.namedHolders;
    return isAsked ? callerName : undefined;
  }

  async #check(id: number, named: string, isNamed: (holders: Holders) => boolean, otherwise: () => boolean): Promise<Outcome<void>> {
    const { clock } = this.#parts.world;
    const kept = this.#kept.get(id);
    const ageMs = kept !== undefined && isNamed(kept) ? clock.monotonicMs() - kept.atMs : Number.POSITIVE_INFINITY;
    if (ageMs < askedAgainMs) return ok();
    const asked = await this.#ask(id);
    if (asked.ok && isNamed(asked.value)) return ok();
    if (asked.ok) {
      const message = `the record of extent ${id} does not give this content to ${named}`;
      return refused("permissionDenied", "unauthorized", message);
    }
    if (ageMs < standsMs || otherwise()) return ok();
    const { message } = asked.failure;
    return refused("unavailable", "notReady", `whether the record of extent ${id} names ${named} can't be asked: ${message}`);
  }

  async #ask(id: number): Promise<Outcome<Holders>> {
    const { clock, transport } = this.#parts.world;
    const request = { extentId: toWire(id) };
    const atMs = clock.monotonicMs();
    const asked = await this.#leader.call(
      askTimeoutMs,
      (address, timeoutMs) => transport.client(address, StreamManager).getExtentHolders(request, { timeoutMs }),
      { idempotent: true },
    );
    if (!asked.ok) return asked;
    this.#kept.delete(id);
    this.#kept.set(id, { ...asked.value, atMs });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= keptMax) break;
      this.#kept.delete(oldest);
    }
    return asked;
  }
}
