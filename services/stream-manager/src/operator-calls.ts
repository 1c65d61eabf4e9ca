/** Calls of people: seal with loss accepted, repair, duties of nodes, quarantine. */
import type { ExtentId, Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { ExtentRecord, NodeDuty } from "@stamp/stream";
import { planNodeDuty } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import type { Repairer } from "./repairer.ts";
import type { Sealer } from "./sealer.ts";
import type { Term } from "./term.ts";
import { endIfStale, extentNode } from "./term.ts";

const deleteTimeoutMs = 5_000;
const noteMax = 1_000;

export class OperatorCalls {
  readonly #term: Term;
  readonly #sealer: Sealer;
  readonly #repairer: Repairer;

  constructor(term: Term, sealer: Sealer, repairer: Repairer) {
    this.#term = term;
    this.#sealer = sealer;
    this.#repairer = repairer;
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

  /** Only what is quarantined, and is still explained by no record. */
  async deleteQuarantined(nodeId: string, id: ExtentId): Promise<Outcome<void>> {
    const { nodes, number, state } = this.#term;
    const found = nodes.quarantined(nodeId).get(id);
    const extent = state.extent(id);
    const explained = extent !== undefined && [...extent.replicas, ...extent.removed, extent.repair].some((one) => one?.nodeId === nodeId);
    if (found === undefined || explained) {
      return refused("notFound", "unknownExtent", `extent ${id} is not in quarantine on node ${nodeId}`);
    }
    const request = { smTerm: toWire(number), extentId: toWire(id), version: toWire(found.version) };
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
