/**
 * The commands of one try of an attempt: to the node that makes fragments, to the one that verifies them, to those that make a fragment or a
 * replica. A node that works on the same attempt since an earlier try, or for an earlier leader, answers when that work ends.
 */
import { type ExtentId, type Outcome, ok, refused } from "@stamp/base";
import type { Client } from "@stamp/ports";
import { type AttemptRecord, type CodedRecord, type ExtentRecord, type FragmentPlace, givesBack, type ReplicaPlace } from "@stamp/stream";
import { ExtentFragments, fromWire, toWire } from "@stamp/wire";
import type { Completer } from "../seal/completer.ts";
import type { Term } from "../term/term.ts";
import { endIfStale } from "../term/term.ts";
import { codedOnWire, verifiedChecksums } from "./coded-extent.ts";
import type { HeldFragments } from "./held-fragments.ts";

/** Rate in bytes per second from which on an attempt is not given up. */
const bytesPerSecondMin = 2 * 1024 * 1024;

/** Findings of a try that went well. */
export interface AttemptDone {
  /** Bytes that the repair of a fragment read; 0 of the other kinds. */
  readonly bytesRead: number;
  /** crc32c of the content of each fragment, by index, to be recorded; undefined: nothing new is to be. */
  readonly checksums?: readonly number[] | undefined;
}

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

  /** True if the fragment is intact, as far as is known, and its node is up with that disk. */
  isIntact(id: ExtentId, place: FragmentPlace): boolean {
    return this.#term.nodes.reachable(place) && !this.#held.isLost(id, place);
  }

  /** True if the fragment has bad chunks, and its node is up with that disk. */
  isDamaged(id: ExtentId, place: FragmentPlace): boolean {
    return this.#term.nodes.reachable(place) && this.#held.isDamaged(id, place);
  }

  /** True if enough intact replicas or fragments can be reached to read the extent, by its record. */
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

  run(extent: ExtentRecord, attempt: AttemptRecord, tried: number): Promise<Outcome<AttemptDone>> {
    if (attempt.kind === "repair") return this.#repair(extent, attempt);
    return attempt.kind === "code" ? this.#code(extent, attempt, tried) : this.#decode(extent, attempt);
  }

  async #code(extent: ExtentRecord, attempt: Coding, tried: number): Promise<Outcome<AttemptDone>> {
    const { nodes, number, stampId, world } = this.#term;
    const sources = extent.replicas.filter((replica) => this.#completer.complete(extent, replica) && nodes.reachable(replica));
    const source = sources[tried % Math.max(1, sources.length)];
    if (source === undefined) return refused("unavailable", "noPlacement", "no intact replica can be reached");
    const targets = attempt.targets.map((target, index) => this.target(target, index, attempt.version));
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
    if (!world.rules.on("fragmentsVerified")) return ok({ bytesRead: 0 });
    // Another node than the maker, so that not one node's memory is compared with itself.
    const verifier = attempt.targets.find((target) => target.nodeId !== source.nodeId) as ReplicaPlace;
    const verified = await this.#call(verifier, extent, (node, timeoutMs) =>
      node.verifyFragments({ smTerm: toWire(number), extent: coded, fragments: targets }, { timeoutMs }),
    );
    if (!verified.ok) return made.ok ? verified : made;
    const told = verified.value.fragmentChecksums;
    const sent = made.ok ? made.value.fragmentChecksums : [];
    if (sent.length > 0 && told.length > 0 && told.some((checksum, index) => checksum !== sent[index]))
      return refused("dataLoss", "damaged", `extent ${extent.id} was verified with other fragments than were made`);
    const checksums = verifiedChecksums(this.#term, extent, attempt.profile, told);
    if (!checksums.ok) return checksums;
    // The data fragments join to the extent's checksum, but nobody else has said what the coding fragments have.
    if (sent.length === 0 && checksums.value !== undefined) {
      const named = attempt.targets.map((target) => ({ ...target, version: attempt.version }));
      const agreed = await this.#agreed(extent, attempt.profile, verifier, named, targets, checksums.value);
      if (!agreed.ok) return agreed;
    }
    return ok({ bytesRead: 0, checksums: checksums.value });
  }

  /**
   * Has another node than `first` verify the same fragments: it, and the nodes that have them, compare what they find with `checksums`. Rule
   * `checksumsAgreed`: one node's flipped bit would be recorded, and a good fragment be refused for ever.
   */
  async #agreed(
    extent: ExtentRecord,
    profile: string,
    first: ReplicaPlace,
    places: readonly ReplicaPlace[],
    fragments: readonly ReturnType<AttemptSteps["target"]>[],
    checksums: readonly number[],
  ): Promise<Outcome<void>> {
    if (!this.#term.world.rules.on("checksumsAgreed")) return ok();
    const second = places.find((place) => place.nodeId !== first.nodeId && this.#term.nodes.reachable(place));
    if (second === undefined)
      return refused("unavailable", "noPlacement", `no second node can verify the fragments of extent ${extent.id}`);
    const request = {
      smTerm: toWire(this.#term.number),
      extent: { ...codedOnWire(extent, profile), fragmentChecksums: [...checksums] },
      fragments: [...fragments],
      partial: true,
    };
    const verified = await this.#call(second, extent, (node, timeoutMs) => node.verifyFragments(request, { timeoutMs }));
    if (!verified.ok) return verified;
    const told = verified.value.fragmentChecksums;
    if (told.length > 0 && told.some((checksum, index) => checksum !== checksums[index]))
      return refused("dataLoss", "damaged", `two nodes find other checksums of the fragments of extent ${extent.id}`);
    return ok();
  }

  async #repair(extent: ExtentRecord, attempt: Repair): Promise<Outcome<AttemptDone>> {
    const { number, stampId } = this.#term;
    const { coded } = extent;
    if (coded === undefined) return refused("aborted", "conflict", "the extent is not coded");
    const sources = this.#readable(extent.id, coded.fragments);
    const target = this.target(attempt.target, attempt.index, attempt.version);
    const request = { smTerm: toWire(number), extent: codedOnWire(extent, coded.profile), target, sources, stampId };
    const made = await this.#call(attempt.target, extent, (node, timeoutMs) => node.repairFragment(request, { timeoutMs }));
    if (!made.ok) return made;
    const bytesRead = fromWire(made.value.bytesRead);
    if (coded.checksums !== undefined) return ok({ bytesRead });
    const checksums = await this.#compareUnrecorded(extent, coded, attempt, target);
    return checksums.ok ? ok({ bytesRead, checksums: checksums.value }) : checksums;
  }

  /**
   * Compares a fragment that was made anew with the others and with the extent's checksum, if the extent has no recorded checksums: an earlier
   * release coded it. Returns the checksums to be recorded; undefined: too few whole fragments are left to compare with.
   */
  async #compareUnrecorded(
    extent: ExtentRecord,
    { fragments, profile }: CodedRecord,
    attempt: Repair,
    target: ReturnType<AttemptSteps["target"]>,
  ): Promise<Outcome<readonly number[] | undefined>> {
    const others = fragments.flatMap((place, index) =>
      index !== attempt.index && this.isIntact(extent.id, place) ? [this.target(place, index, place.version)] : [],
    );
    const given = [...others.map(({ index }) => index), attempt.index];
    // Good chunks of damaged fragments made it: nothing can be compared.
    if (!givesBack(profile, given)) return ok(undefined);
    return this.verify(extent, profile, attempt.target, [...others, target]);
  }

  /** Has a node read these fragments and compare them. Returns the checksums of all fragments, if they may be recorded. */
  async verify(
    extent: ExtentRecord,
    profile: string,
    verifier: ReplicaPlace,
    fragments: readonly ReturnType<AttemptSteps["target"]>[],
  ): Promise<Outcome<readonly number[] | undefined>> {
    const request = {
      smTerm: toWire(this.#term.number),
      extent: codedOnWire(extent, profile),
      fragments: [...fragments],
      partial: true,
    };
    const verified = await this.#call(verifier, extent, (node, timeoutMs) => node.verifyFragments(request, { timeoutMs }));
    if (!verified.ok) return verified;
    const checksums = verifiedChecksums(this.#term, extent, profile, verified.value.fragmentChecksums);
    if (!checksums.ok || checksums.value === undefined) return checksums;
    const agreed = await this.#agreed(extent, profile, verifier, extent.coded?.fragments ?? [], fragments, checksums.value);
    return agreed.ok ? checksums : agreed;
  }

  async #decode(extent: ExtentRecord, attempt: Decoding): Promise<Outcome<AttemptDone>> {
    const { number, stampId } = this.#term;
    const { coded, id, ownerEpoch, stream } = extent;
    if (coded === undefined) return refused("aborted", "conflict", "the extent is not coded");
    const request = {
      smTerm: toWire(number),
      extentId: toWire(id),
      version: toWire(attempt.version),
      ownerEpoch: toWire(ownerEpoch),
      extent: codedOnWire(extent, coded.profile),
      fragments: this.#readable(id, coded.fragments),
      stampId,
      stream,
    };
    const made = await Promise.all(
      attempt.targets.map((target) =>
        this.#call(target, extent, (node, timeoutMs) => node.decodeExtent({ ...request, diskId: target.diskId }, { timeoutMs })),
      ),
    );
    return made.find((each) => !each.ok) ?? ok({ bytesRead: 0 });
  }

  /** Returns the fragments that can be read now, as far as is known; damaged ones, of which good chunks can be, behind the others. */
  #readable(id: ExtentId, fragments: readonly FragmentPlace[]) {
    const those = (isWanted: (place: FragmentPlace) => boolean) =>
      fragments.flatMap((place, index) => (isWanted(place) ? [this.target(place, index, place.version)] : []));
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

  /** Describes a fragment for a command to its node. */
  target({ nodeId, diskId }: ReplicaPlace, index: number, version: number) {
    return { index, version: toWire(version), address: this.#term.nodes.address(nodeId) ?? "", diskId };
  }
}
