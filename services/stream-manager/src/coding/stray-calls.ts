/**
 * Calls of people about fragments that no record explains. A stray comes from metadata that were restored from a copy, or from a node that was
 * away while its extent was forgotten; nothing deletes one by itself.
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { extentId, extentVersion, ok, refused } from "@stamp/base";
import { type ReplicaPlace, samePlace, whyFragmentStays } from "@stamp/stream";
import { ExtentFragments, fromWire, type HeldFragment, toWire } from "@stamp/wire";
import { nextAfter } from "../nodes/comparisons.ts";
import type { Term } from "../term/term.ts";
import { endIfStale } from "../term/term.ts";
import { fragmentsOf, type HeldFragments } from "./held-fragments.ts";

const pageExtents = 1_000;
const pageTimeoutMs = 5_000;
const deleteTimeoutMs = 5_000;
/** Strays of a node that are listed. */
const straysPerNodeMax = 1_000;

/** Strays of one node; undefined: it did not answer to the end. */
type OfNode = { readonly held: readonly HeldFragment[]; readonly more: boolean } | undefined;

export class StrayCalls {
  readonly #term: Term;
  readonly #held: HeldFragments;

  constructor(term: Term, held: HeldFragments) {
    this.#term = term;
    this.#held = held;
  }

  /** Asks every node that is not decommissioned for its fragments. */
  async list() {
    const { state, world } = this.#term;
    const places = [...state.nodes()].filter(({ duty }) => duty !== "decommissioned");
    const found = await Promise.all(places.map(async (place) => ({ place, strays: await this.#straysOf(place) })));
    const fragments = found.flatMap(({ place: { nodeId, diskId }, strays }) =>
      (strays?.held ?? []).map(({ extentId: id, version, index }) => {
        const fragment = { nodeId, diskId, version: extentVersion(fromWire(version)) };
        const keptBecause = whyFragmentStays(state.extent(extentId(fromWire(id))), fragment, world.rules) ?? "";
        return { nodeId, extentId: id, version, index, keptBecause };
      }),
    );
    const unreached = found.filter(({ strays }) => strays === undefined).map(({ place }) => place.nodeId);
    return ok({ fragments, more: found.some(({ strays }) => strays?.more === true), unreached }) satisfies Outcome<unknown>;
  }

  async #straysOf(place: ReplicaPlace): Promise<OfNode> {
    try {
      return await this.#listedBy(place);
    } catch (error) {
      // The other nodes are listed all the same.
      this.#term.world.logger.error("a node's listing of fragments can't be true", { node: place.nodeId, why: String(error) });
      return undefined;
    }
  }

  /** Throws if the listing can't be true. */
  async #listedBy(place: ReplicaPlace): Promise<OfNode> {
    const { ended, nodes, world } = this.#term;
    const strays: HeldFragment[] = [];
    for (let after = 0n; ; ) {
      const address = nodes.address(place.nodeId);
      if (address === undefined || ended.aborted || !nodes.reachable(place)) return undefined;
      const client = world.transport.client(address, ExtentFragments);
      const page = await client.listFragments({ afterExtentId: after, limit: pageExtents }, { timeoutMs: pageTimeoutMs });
      if (!page.ok) return undefined;
      const { fragments, more } = page.value;
      strays.push(...fragments.filter((held) => !this.#isExplained(place, held)));
      if (strays.length > straysPerNodeMax) return { held: strays.slice(0, straysPerNodeMax), more: true };
      after = nextAfter(after, fragments, more);
      if (!more) return { held: strays, more: false };
    }
  }

  #isExplained(place: ReplicaPlace, held: HeldFragment): boolean {
    const extent = this.#term.state.extent(extentId(fromWire(held.extentId)));
    const version = fromWire(held.version);
    return extent !== undefined && fragmentsOf(extent).some((each) => samePlace(each, place) && each.version === version);
  }

  /** Deletes a fragment that its node has and no record explains. */
  async delete(nodeId: string, id: ExtentId, version: number): Promise<Outcome<void>> {
    const { ended, nodes, number, state, world } = this.#term;
    const node = state.node(nodeId);
    const address = nodes.address(nodeId);
    if (node === undefined || address === undefined) return refused("notFound", "badRequest", `there is no extent node ${nodeId}`);
    const place = { nodeId, diskId: node.diskId, version: extentVersion(version) };
    const client = world.transport.client(address, ExtentFragments);
    const page = await client.listFragments({ afterExtentId: toWire(id - 1), limit: 1 }, { timeoutMs: pageTimeoutMs });
    if (!page.ok) return page;
    const held = page.value.fragments.find((each) => each.extentId === toWire(id) && each.version === toWire(version));
    if (held === undefined)
      return refused("notFound", "unknownExtent", `node ${nodeId} has no fragment of extent ${id}, version ${version}`);
    if (ended.aborted) return refused("unavailable", "notLeader", "this stream manager leads no more");
    const why = whyFragmentStays(state.extent(id), place, world.rules);
    if (why !== undefined) return refused("failedPrecondition", "conflict", `fragment ${held.index} of extent ${id} stays: ${why}`);
    const request = { smTerm: toWire(number), extentId: toWire(id), fragmentVersion: toWire(version), diskId: node.diskId };
    const deleted = await client.deleteFragment(request, { timeoutMs: deleteTimeoutMs });
    if (!deleted.ok) {
      endIfStale(this.#term, deleted.failure);
      return deleted;
    }
    this.#held.strayGone(nodeId);
    world.logger.warn("a stray fragment was deleted", { node: nodeId, extent: id, version, index: held.index });
    return ok();
  }
}
