/**
 * The commands of one try of an attempt: to the node that makes fragments, to the one that verifies them, to those that make a fragment or a
 * replica. A node that works on the same attempt since an earlier try, or for an earlier leader, answers when that work ends.
 */
import { type ExtentId, type Outcome, ok, refused } from "@stamp/base";
import type { Client } from "@stamp/ports";
import { type AttemptRecord, type ExtentRecord, type FragmentPlace, givesBack, type ReplicaPlace } from "@stamp/stream";
import { ExtentFragments, fromWire, toWire } from "@stamp/wire";
import type { Completer } from "../seal/completer.ts";
import type { Term } from "../term/term.ts";
import { endIfStale } from "../term/term.ts";
import { codedOnWire } from "./coded-extent.ts";
import type { HeldFragments } from "./held-fragments.ts";

/** An attempt that makes so much progress is not given up. */
const bytesPerSecondMin = 2 * 1024 * 1024;

type Coding = Extract<AttemptRecord, { readonly kind: "code" }>;
type Repair = Extract<AttemptRecord, { readonly kind: "repair" }>;
type Decoding = Extract<AttemptRecord, { readonly kind: "decode" }>;

export class AttemptSteps {
  readonly #term: Term;
  readonly #completer: Completer;
  readonly #held: HeldFragments;

  constructor(term: Term, completer: Completer, held: HeldFragments) {
    this.#term = term;
    this.#completer = completer;
    this.#held = held;
  }

  /** True if the fragment is there and intact, as far as is known, and its node is up with that disk. */
  isIntact(id: ExtentId, place: FragmentPlace): boolean {
    return this.#term.nodes.reachable(place) && !this.#held.isLost(id, place);
  }

  /** True if the fragment is there and has bad chunks, and its node is up with that disk. */
  isDamaged(id: ExtentId, place: FragmentPlace): boolean {
    return this.#term.nodes.reachable(place) && this.#held.isDamaged(id, place);
  }

  /** True if intact replicas or fragments that give the extent back can be reached, as its record says. */
  isReadable(extent: ExtentRecord): boolean {
    const { coded, id, phase, replicas, sealedLengthBytes } = extent;
    if (phase !== "sealed" || sealedLengthBytes === 0) return true;
    if (coded === undefined)
      return replicas.some((replica) => this.#completer.complete(extent, replica) && this.#term.nodes.reachable(replica));
    const intact = [...coded.fragments.entries()].filter(([, place]) => this.isIntact(id, place));
    return givesBack(
      coded.profile,
      intact.map(([index]) => index),
    );
  }

  /** Returns the bytes that the repair of a fragment read; 0 of the other kinds. */
  async run(extent: ExtentRecord, attempt: AttemptRecord, tried: number): Promise<Outcome<number>> {
    if (attempt.kind === "repair") return this.#repair(extent, attempt);
    const done = await (attempt.kind === "code" ? this.#code(extent, attempt, tried) : this.#decode(extent, attempt));
    return done.ok ? ok(0) : done;
  }

  async #code(extent: ExtentRecord, attempt: Coding, tried: number): Promise<Outcome<unknown>> {
    const { nodes, number, stampId, world } = this.#term;
    const sources = extent.replicas.filter((replica) => this.#completer.complete(extent, replica) && nodes.reachable(replica));
    const source = sources[tried % Math.max(1, sources.length)];
    if (source === undefined) return refused("unavailable", "noPlacement", "no intact replica can be reached");
    const targets = attempt.targets.map((target, index) => this.#at(target, index, attempt.version));
    const coded = codedOnWire(extent, attempt.profile);
    const made = await this.#call(source, extent, (node, timeoutMs) =>
      node.makeFragments({ smTerm: toWire(number), extent: coded, targets, stampId, diskId: source.diskId }, { timeoutMs }),
    );
    if (!made.ok && made.failure.reason === "damaged") {
      // The replica, not a fragment: it is made anew, and that takes the attempt back.
      this.#completer.recheck(extent.id, source.nodeId);
      return refused("unavailable", "extentStale", made.failure.message);
    }
    // With `conflict` all may be there since an earlier try whose answer was lost.
    if (!made.ok && made.failure.reason !== "conflict") return made;
    if (!world.rules.on("fragmentsVerified")) return ok();
    // Another node than the maker, so that not one node's memory is compared with itself.
    const verifier = attempt.targets.find((target) => target.nodeId !== source.nodeId) as ReplicaPlace;
    const verified = await this.#call(verifier, extent, (node, timeoutMs) =>
      node.verifyFragments({ smTerm: toWire(number), extent: coded, fragments: targets }, { timeoutMs }),
    );
    return !verified.ok && !made.ok ? made : verified;
  }

  async #repair(extent: ExtentRecord, attempt: Repair): Promise<Outcome<number>> {
    const { number, stampId } = this.#term;
    const { coded } = extent;
    if (coded === undefined) return refused("aborted", "conflict", "the extent is not coded");
    const sources = this.#readable(extent.id, coded.fragments);
    const target = this.#at(attempt.target, attempt.index, attempt.version);
    const request = { smTerm: toWire(number), extent: codedOnWire(extent, coded.profile), target, sources, stampId };
    const made = await this.#call(attempt.target, extent, (node, timeoutMs) => node.repairFragment(request, { timeoutMs }));
    return made.ok ? ok(fromWire(made.value.bytesRead)) : made;
  }

  async #decode(extent: ExtentRecord, attempt: Decoding): Promise<Outcome<unknown>> {
    const { number, stampId } = this.#term;
    const { coded, id, ownerEpoch } = extent;
    if (coded === undefined) return refused("aborted", "conflict", "the extent is not coded");
    const request = {
      smTerm: toWire(number),
      extentId: toWire(id),
      version: toWire(attempt.version),
      ownerEpoch: toWire(ownerEpoch),
      extent: codedOnWire(extent, coded.profile),
      fragments: this.#readable(id, coded.fragments),
      stampId,
    };
    const made = await Promise.all(
      attempt.targets.map((target) =>
        this.#call(target, extent, (node, timeoutMs) => node.decodeExtent({ ...request, diskId: target.diskId }, { timeoutMs })),
      ),
    );
    return made.find((each) => !each.ok) ?? ok();
  }

  /** Fragments that can be read now, as far as is known; damaged ones, of which good chunks can be, behind the others. */
  #readable(id: ExtentId, fragments: readonly FragmentPlace[]) {
    const those = (isWanted: (place: FragmentPlace) => boolean) =>
      fragments.flatMap((place, index) => (isWanted(place) ? [this.#at(place, index, place.version)] : []));
    return [...those((place) => this.isIntact(id, place)), ...those((place) => this.isDamaged(id, place))];
  }

  async #call<T>(
    place: ReplicaPlace,
    extent: ExtentRecord,
    work: (node: Client<typeof ExtentFragments>, timeoutMs: number) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const { config, nodes, world } = this.#term;
    const address = nodes.address(place.nodeId);
    if (address === undefined) return refused("unavailable", "noPlacement", `the address of node ${place.nodeId} is not known`);
    const timeoutMs = config.copyTimeoutMs + ((extent.sealedLengthBytes ?? 0) * 1_000) / bytesPerSecondMin;
    const answer = await work(world.transport.client(address, ExtentFragments), timeoutMs);
    if (!answer.ok) endIfStale(this.#term, answer.failure);
    return answer;
  }

  #at({ nodeId, diskId }: ReplicaPlace, index: number, version: number) {
    return { index, version: toWire(version), address: this.#term.nodes.address(nodeId) ?? "", diskId };
  }
}
