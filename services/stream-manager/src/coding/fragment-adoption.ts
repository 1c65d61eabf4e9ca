/**
 * Takes fragments back that are newer than the record of their extent, when a person asks for it: after metadata were restored from a copy that is
 * older than a coding, and the replicas that the copy names are gone.
 *
 * Invariants:
 * - Before the record names the fragments, a node has read all of them, decoded, and compared with the recorded checksum.
 * - A fragment whose deletion was sent, and may arrive yet, is not taken (sent-deletions.ts).
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { extentVersion, ok, refused } from "@stamp/base";
import { fragmentBytesOf } from "@stamp/extent";
import type { ChosenFragments, ExtentRecord, FoundFragment, ReplicaPlace } from "@stamp/stream";
import { chooseFragments, planAdoptFragments, refuseFragments } from "@stamp/stream";
import { ExtentFragments, fromWire, toWire } from "@stamp/wire";
import type { SentDeletions } from "../sent-deletions.ts";
import type { Term } from "../term/term.ts";
import { endIfStale } from "../term/term.ts";
import { codedOnWire, verifiedChecksums } from "./coded-extent.ts";
import type { Coder } from "./coder.ts";
import type { HeldFragments } from "./held-fragments.ts";

const listTimeoutMs = 5_000;
/** Fragments are read whole before they are taken, at this rate of all of them together or a higher one. */
const readBytesPerSecondMin = 4 * 1024 * 1024;
const readTimeoutMinMs = 20_000;

/** Fragments of one extent that nodes told of, and the nodes that did not answer. */
interface Found {
  readonly fragments: readonly FoundFragment[];
  readonly unreached: readonly string[];
}

export class FragmentAdoption {
  readonly #term: Term;
  readonly #coder: Coder;
  readonly #held: HeldFragments;
  readonly #sent: SentDeletions;
  /** Names of nodes that read fragments to be taken back: no record names these nodes yet. */
  readonly #readers = new Map<ExtentId, string>();

  constructor(term: Term, parts: { readonly coder: Coder; readonly held: HeldFragments; readonly sent: SentDeletions }) {
    this.#term = term;
    this.#coder = parts.coder;
    this.#held = parts.held;
    this.#sent = parts.sent;
  }

  /** Returns the name of the node that reads newer fragments of the extent now; undefined: none does. */
  readerOf(id: ExtentId): string | undefined {
    return this.#readers.get(id);
  }

  async adopt(id: ExtentId): Promise<Outcome<ExtentRecord>> {
    if (!this.#sent.keep(id)) return notAdopted(`fragments of extent ${id} are being read for an earlier call`);
    return this.#adopt(id).finally(() => this.#sent.release(id));
  }

  async #adopt(id: ExtentId): Promise<Outcome<ExtentRecord>> {
    const { ended, ledger, nodes, state, world } = this.#term;
    const extent = state.extent(id);
    const why = refuseFragments(id, extent);
    if (extent === undefined || why !== undefined) return notAdopted(why ?? "");
    if (nodes.settling)
      return refused("unavailable", "notReady", "this stream manager leads since a moment: not every node has reported to it yet");
    if (this.#coder.isReadable(extent)) return notAdopted(`extent ${id} can be read as its record says, and gets by itself what it lacks`);
    const found = await this.#find(extent);
    if (ended.aborted) return refused("unavailable", "notLeader", "this stream manager leads no more");
    const staying = found.fragments.filter((place) => !this.#sent.mayArrive(id, place));
    const going = found.fragments.length - staying.length;
    const chosen = chooseFragments(extent, staying);
    if (typeof chosen === "string") {
      const deleted = going === 0 ? "" : `; ${going} are being deleted`;
      const away = found.unreached.length === 0 ? "" : `; what these nodes hold is not known: ${found.unreached.join(", ")}`;
      return notAdopted(`${chosen}${deleted}${away}`);
    }
    this.#readers.set(id, chosen.fragments.find((place) => place !== undefined)?.nodeId ?? "");
    const verified = await this.#verify(extent, chosen).finally(() => this.#readers.delete(id));
    if (!verified.ok) return verified;
    const heldVersion = Math.max(this.#held.heldVersion(extent), ...found.fragments.map(({ version }) => version));
    const adopted = await ledger.commit((current) => planAdoptFragments(current, extent, chosen, heldVersion, verified.value));
    if (!adopted.ok) return adopted;
    const record = state.extent(id);
    if (record === undefined) return refused("notFound", "unknownExtent", `extent ${id} was dropped meanwhile`);
    for (const [index, place] of (record.coded?.fragments ?? []).entries())
      if (chosen.fragments[index] === undefined) this.#held.missing(id, place);
    const taken = chosen.fragments.filter((place) => place !== undefined).length;
    world.logger.warn("fragments that are newer than the record were adopted", { extent: id, profile: chosen.profile.name, taken });
    this.#coder.adopted(id);
    this.#coder.repairs.rescan();
    return ok(record);
  }

  /** Asks every node that is not decommissioned for its fragments of the extent. */
  async #find({ id }: ExtentRecord): Promise<Found> {
    const places = [...this.#term.state.nodes()].filter(({ duty }) => duty !== "decommissioned");
    const answers = await Promise.all(places.map(async (place) => ({ place, fragments: await this.#ask(place, id) })));
    return {
      fragments: answers.flatMap(({ fragments }) => fragments ?? []),
      unreached: answers.filter(({ fragments }) => fragments === undefined).map(({ place }) => place.nodeId),
    };
  }

  /** Asks a node; undefined: it did not answer, or its answer can't be true. */
  async #ask({ nodeId, diskId }: ReplicaPlace, id: ExtentId): Promise<FoundFragment[] | undefined> {
    const { nodes, world } = this.#term;
    const address = nodes.address(nodeId);
    if (address === undefined || !nodes.reachable({ nodeId, diskId })) return undefined;
    const request = { afterExtentId: toWire(id - 1), limit: 1, withHeads: true };
    const answer = await world.transport.client(address, ExtentFragments).listFragments(request, { timeoutMs: listTimeoutMs });
    if (!answer.ok) return undefined;
    try {
      return answer.value.fragments
        .filter((held) => fromWire(held.extentId) === id)
        .map(({ version, index, damage, profile, sealedLengthBytes, checksum }) => ({
          ...{ nodeId, diskId, index, profile, checksum, intact: damage === "" },
          version: extentVersion(fromWire(version)),
          sealedLengthBytes: fromWire(sealedLengthBytes),
        }));
    } catch (error) {
      // Numbers that no fragment has.
      world.logger.error("a node answered with numbers that no fragment can have", { node: nodeId, extent: id, why: String(error) });
      return undefined;
    }
  }

  /** Has a node read the fragments, decode, and compare with the recorded checksum. Returns the checksums of all fragments, if they may be recorded. */
  async #verify(extent: ExtentRecord, { profile, fragments }: ChosenFragments): Promise<Outcome<readonly number[] | undefined>> {
    const { nodes, number, world } = this.#term;
    const named = fragments.flatMap((place, index) =>
      place === undefined
        ? []
        : [{ index, version: toWire(place.version), address: nodes.address(place.nodeId) ?? "", diskId: place.diskId }],
    );
    const bytes = named.length * fragmentBytesOf(extent.sealedLengthBytes ?? 0, profile.data);
    const request = { smTerm: toWire(number), extent: codedOnWire(extent, profile.name), fragments: named, partial: true };
    const client = world.transport.client(named[0]?.address ?? "", ExtentFragments);
    const verified = await client.verifyFragments(request, { timeoutMs: readTimeoutMinMs + (bytes * 1_000) / readBytesPerSecondMin });
    if (verified.ok) return verifiedChecksums(this.#term, extent, profile.name, verified.value.fragmentChecksums);
    endIfStale(this.#term, verified.failure);
    return notAdopted(verified.failure.message);
  }
}

const notAdopted = (why: string): Outcome<never> => refused("failedPrecondition", "conflict", `not adopted: ${why}`);
