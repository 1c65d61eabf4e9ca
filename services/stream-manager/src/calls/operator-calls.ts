/** Calls of people: seal with loss accepted, duties of nodes, quarantine. */
import type { ExtentId, Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { ExtentRecord, FoundReplica, NodeDuty, ReplicaRecord } from "@stamp/stream";
import { planAdopt, planNodeDuty, refuseAdoption } from "@stamp/stream";
import { fromWire, ReplicaState, toWire } from "@stamp/wire";
import type { Coder } from "../coding/coder.ts";
import type { Quarantined } from "../nodes/node-table.ts";
import type { Repairer } from "../repair/repairer.ts";
import type { Completer } from "../seal/completer.ts";
import type { Sealer } from "../seal/sealer.ts";
import type { Term } from "../term/term.ts";
import { endIfStale, extentNode } from "../term/term.ts";

const deleteTimeoutMs = 5_000;
/** Least rate at which a replica is read before its adoption, in bytes per second. */
const readBytesPerSecondMin = 8 * 1024 * 1024;
const readTimeoutMinMs = 10_000;
const noteMax = 1_000;

interface Parts {
  readonly sealer: Sealer;
  readonly repairer: Repairer;
  readonly completer: Completer;
  readonly coder: Coder;
}

export class OperatorCalls {
  readonly #term: Term;
  readonly #sealer: Sealer;
  readonly #repairer: Repairer;

  readonly #completer: Completer;
  readonly #coder: Coder;

  constructor(term: Term, { sealer, repairer, completer, coder }: Parts) {
    this.#term = term;
    this.#coder = coder;
    this.#sealer = sealer;
    this.#repairer = repairer;
    this.#completer = completer;
  }

  async sealAcceptingLoss(id: ExtentId, note: string): Promise<Outcome<ExtentRecord>> {
    if (note.trim() === "" || note.length > noteMax) {
      return refused("invalidArgument", "badRequest", `say who accepts the loss and why, in 1 to ${noteMax} characters`);
    }
    const sealed = await this.#sealer.sealAcceptingLoss(id, note);
    if (!sealed.ok) return sealed;
    this.#repairer.rescan();
    const extent = this.#term.state.extent(id);
    return extent === undefined ? refused("notFound", "unknownExtent", `extent ${id} was dropped meanwhile`) : ok(extent);
  }

  async setNodeDuty(nodeId: string, duty: NodeDuty): Promise<Outcome<void>> {
    const set = await this.#term.ledger.commit((state) => planNodeDuty(state, nodeId, duty));
    if (!set.ok) return set;
    this.#term.world.logger.info("the duty of a node was set", { node: nodeId, duty });
    this.#repairer.rescan();
    return set;
  }

  quarantine() {
    const { nodes, state } = this.#term;
    return [...state.nodes()].flatMap(({ nodeId }) =>
      [...nodes.quarantined(nodeId)].map(([id, { durableBytes, version, why }]) => ({
        nodeId,
        extentId: toWire(id),
        durableBytes: toWire(durableBytes),
        version: toWire(version),
        why,
      })),
    );
  }

  /** Makes a replica in quarantine one of its extent again, if the records prove that it is and the extent lacks one. */
  async adoptQuarantined(nodeId: string, id: ExtentId): Promise<Outcome<ExtentRecord>> {
    const { ledger, nodes, state, world } = this.#term;
    const quarantined = this.#quarantined(nodeId, id);
    if (!quarantined.ok) return quarantined;
    const extent = state.extent(id);
    // Before the replica is read: what no record can prove needs no reading.
    const unproven = refuseAdoption(id, extent, { ...foundLikeRecorded(extent), ...quarantined.value });
    if (extent === undefined || unproven !== undefined) return refused("failedPrecondition", "conflict", `not adopted: ${unproven}`);
    const node = state.node(nodeId);
    const target = { nodeId, diskId: node?.diskId ?? "" };
    if (node === undefined || node.duty !== undefined || !nodes.reachable(target))
      return refused("failedPrecondition", "conflict", `not adopted: node ${nodeId} is away, or is to give up what it has`);
    if (extent.coded !== undefined && nodes.settling)
      return refused("unavailable", "notReady", "this stream manager leads since a moment: not every node has reported to it yet");
    if (this.#vacancy(extent, nodeId) === undefined) return lacksNone(id);
    const found = await this.#read(nodeId, extent);
    if (!found.ok) return found;
    const now = state.extent(id);
    const why = refuseAdoption(id, now, found.value);
    if (now === undefined || why !== undefined) return refused("failedPrecondition", "conflict", `not adopted: ${why}`);
    // Again: a node may have come back, or a copy may have been made, while the replica was read.
    const vacancy = this.#vacancy(now, nodeId);
    if (vacancy === undefined) return lacksNone(id);
    const adopted = await ledger.commit((current) => planAdopt(current, id, target, { found: found.value, replaced: vacancy.replaced }));
    if (!adopted.ok) return adopted;
    nodes.release(nodeId, id);
    this.#completer.repaired(id, target);
    if (vacancy.replaced !== undefined) this.#completer.repaired(id, vacancy.replaced);
    world.logger.warn("a quarantined replica was adopted", { node: nodeId, extent: id, insteadOf: vacancy.replaced?.nodeId });
    this.#repairer.rescan();
    const record = state.extent(id);
    return record === undefined ? refused("notFound", "unknownExtent", `extent ${id} was dropped meanwhile`) : ok(record);
  }

  /** Returns the replica that one more takes the place of; of an extent that is recorded as fragments it takes theirs, if they can't be decoded. */
  #vacancy(extent: ExtentRecord, nodeId: string): { readonly replaced: ReplicaRecord | undefined } | undefined {
    if (extent.coded === undefined) return this.#repairer.vacancy(extent, nodeId);
    return this.#coder.isReadable(extent) ? undefined : { replaced: undefined };
  }

  /** Asks the node to read a whole replica, and returns its findings. */
  async #read(nodeId: string, { id, sealedLengthBytes = 0 }: ExtentRecord): Promise<Outcome<FoundReplica>> {
    const timeoutMs = readTimeoutMinMs + (sealedLengthBytes * 1_000) / readBytesPerSecondMin;
    const request = { afterExtentId: toWire(id - 1), limit: 1, deep: true };
    const answer = await extentNode(this.#term, nodeId)?.checkReplicas(request, { timeoutMs });
    if (answer === undefined) return refused("notFound", "badRequest", `there is no extent node ${nodeId}`);
    if (!answer.ok) return answer;
    const [checked] = answer.value.replicas;
    if (checked?.replica === undefined || fromWire(checked.replica.extentId) !== id)
      return refused("notFound", "unknownExtent", `node ${nodeId} has no replica of extent ${id}`);
    const { creation, state, version, sealedLengthBytes: sealedAt } = checked.replica;
    return ok({
      sealed: state === ReplicaState.SEALED,
      creation: fromWire(creation),
      version: fromWire(version),
      sealedLengthBytes: sealedAt === undefined ? undefined : fromWire(sealedAt),
      checksum: checked.checksum,
      problems: checked.problems,
    });
  }

  /** Returns the remembered facts about a replica in quarantine that no record explains. */
  #quarantined(nodeId: string, id: ExtentId): Outcome<Quarantined> {
    const { nodes, state } = this.#term;
    const found = nodes.quarantined(nodeId).get(id);
    const extent = state.extent(id);
    const diskId = state.node(nodeId)?.diskId;
    const explained =
      extent !== undefined &&
      found?.creation === (extent.creation ?? 0) &&
      [...extent.replicas, ...extent.removed, extent.repair].some((one) => one?.nodeId === nodeId && one.diskId === diskId);
    if (found !== undefined && !explained) return ok(found);
    return refused("notFound", "unknownExtent", `extent ${id} is not in quarantine on node ${nodeId}`);
  }

  /** Deletes a replica in quarantine that still no record explains. */
  async deleteQuarantined(nodeId: string, id: ExtentId): Promise<Outcome<void>> {
    const { nodes, number, state } = this.#term;
    const quarantined = this.#quarantined(nodeId, id);
    if (!quarantined.ok) return quarantined;
    const found = quarantined.value;
    const extent = state.extent(id);
    const isNamed = extent !== undefined && [...extent.replicas, ...extent.removed, extent.repair].some((one) => one?.nodeId === nodeId);
    if (isNamed && found.creation === (extent.creation ?? 0))
      return refused("failedPrecondition", "conflict", `extent ${id} has a replica on node ${nodeId}, also on another disk`);
    const request = { smTerm: toWire(number), extentId: toWire(id), version: toWire(found.version), creation: toWire(found.creation) };
    const answer = await extentNode(this.#term, nodeId)?.deleteExtent(request, { timeoutMs: deleteTimeoutMs });
    if (answer === undefined) return refused("notFound", "badRequest", `there is no extent node ${nodeId}`);
    if (!answer.ok) {
      endIfStale(this.#term, answer.failure);
      return answer;
    }
    nodes.release(nodeId, id);
    this.#term.world.logger.warn("a quarantined replica was deleted", { node: nodeId, extent: id, durableBytes: found.durableBytes });
    return ok();
  }
}

const lacksNone = (id: ExtentId): Outcome<never> =>
  refused("failedPrecondition", "conflict", `not adopted: extent ${id} lacks no replica that it does not get by itself`);

/** Returns what a node with the recorded extent would find. */
const foundLikeRecorded = (extent: ExtentRecord | undefined): FoundReplica => ({
  sealed: true,
  creation: extent?.creation ?? 0,
  version: extent?.version ?? 0,
  sealedLengthBytes: extent?.sealedLengthBytes,
  checksum: extent?.checksum,
  problems: [],
});
