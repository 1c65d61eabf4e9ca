/**
 * Reports of the extent nodes at the leading stream manager: each node sends one a second, and a leader that needs one asks for it.
 *
 * Invariants:
 *   - A pushed report may come from anybody. If its numbers are doubtful (`isDoubtful`), the node itself is asked, and its answer is taken
 *     in the place of the report.
 *   - The node's record decides who is asked first. The address in the report is asked only if the recorded one does not answer with the
 *     same disk: a node that moved and started often meanwhile comes back by itself.
 */
import { extentId, JoinedWork, type Outcome, ok, refused } from "@stamp/base";
import { Turns } from "@stamp/ports";
import { isDoubtful, planNode, type ReportNumbers } from "@stamp/stream";
import type { ExtentReplica, NodeReport } from "@stamp/wire";
import { ExtentNode, fromWire, ReplicaState, toWire } from "@stamp/wire";
import type { HeldFragments } from "../coding/held-fragments.ts";
import type { Repairer } from "../repair/repairer.ts";
import type { Completer } from "../seal/completer.ts";
import type { Sealer } from "../seal/sealer.ts";
import type { Term } from "../term/term.ts";
import { endIfStale, extentNode } from "../term/term.ts";
import { whyLater } from "./later-replicas.ts";
import type { NodeSync } from "./node-sync.ts";

export const askReportTimeoutMs = 1_000;

type Taken = Outcome<{ readonly smTerm: bigint; readonly wrongStamp: boolean }>;

/** Facts about the node when it was asked: its recorded incarnation and the numbers of its last report. */
interface Known {
  readonly incarnation: number | undefined;
  readonly heard: ReportNumbers | undefined;
}

interface Asked extends Known {
  /** Report of the node; undefined: no node with this id and disk answered. */
  readonly answer: NodeReport | undefined;
}

interface Parts {
  readonly sealer: Sealer;
  readonly completer: Completer;
  readonly repairer: Repairer;
  readonly sync: NodeSync;
  readonly held: HeldFragments;
}

/**
 * A new leader does not wait for the next report; a node that answers obeys its term from then on. `refused`: the node obeys another
 * term, and has said how new its copy of the metadata is. Undefined: it did not answer.
 */
export async function askReport(term: Term, nodeId: string): Promise<NodeReport | "refused" | undefined> {
  const answer = await extentNode(term, nodeId)?.getNodeReport({ smTerm: toWire(term.number) }, { timeoutMs: askReportTimeoutMs });
  if (answer === undefined) return undefined;
  if (!answer.ok) {
    // Also if another node's refusal has ended the term meanwhile: two nodes' copies are needed to know that the store is an older one.
    endIfStale(term, answer.failure);
    return answer.failure.reason === "staleTerm" ? "refused" : undefined;
  }
  if (term.ended.aborted) return undefined;
  const told = answer.value;
  if (told.stampId === term.stampId && told.nodeId === nodeId) term.age.reported(nodeId, fromWire(told.metadataVersion));
  return told;
}

export class NodeReports {
  readonly #term: Term;
  readonly #parts: Parts;
  /** Questions on their way, by node: doubtful reports that arrive meanwhile wait for the same answer. */
  readonly #asking = new JoinedWork<string, Asked>();

  constructor(term: Term, parts: Parts) {
    this.#term = term;
    this.#parts = parts;
  }

  /** Takes a report that was sent unasked. */
  async take(report: NodeReport): Promise<Taken> {
    const { world, state, nodes, stampId, age } = this.#term;
    const { nodeId } = report;
    const numbers = numbersOf(report);
    const isOurs = report.stampId === stampId;
    if (!isOurs || !isDoubtful(state.node(nodeId), nodes.heard(nodeId), numbers, world.rules, age.learned)) return this.#keep(report);
    const asked = await this.#ask(report);
    if (asked.answer === undefined) {
      const message = `the numbers of a report of node ${nodeId} can't be checked: the node does not answer`;
      return refused("unavailable", "notReady", message);
    }
    const own = numbersOf(asked.answer);
    const kept = await this.#keep(asked.answer, asked);
    const reached =
      own.incarnation === numbers.incarnation ? own.reportNumber >= numbers.reportNumber : own.incarnation > numbers.incarnation;
    if (reached && own.metadataVersion >= numbers.metadataVersion) return kept;
    world.logger.error("a report has numbers that its node never had", { node: nodeId, reported: numbers, answered: own });
    const message =
      `node ${nodeId} never sent report ${numbers.reportNumber} of incarnation ${numbers.incarnation}: ` +
      `it is at report ${own.reportNumber} of incarnation ${own.incarnation}, with a copy of transaction ${own.metadataVersion}`;
    return refused("invalidArgument", "badRequest", message);
  }

  /** Takes the answer of a node that was asked when this leader had just loaded. */
  answered(report: NodeReport): Promise<Taken> {
    return this.#keep(report, this.#known(report.nodeId));
  }

  #known(nodeId: string): Known {
    return { incarnation: this.#term.state.node(nodeId)?.incarnation, heard: this.#term.nodes.heard(nodeId) };
  }

  #ask(report: NodeReport): Promise<Asked> {
    const key = `${report.nodeId} ${report.diskId} ${report.address}`;
    return this.#asking.run(key, async () => {
      const known = this.#known(report.nodeId);
      return { ...known, answer: await this.#askAround(report) };
    });
  }

  async #askAround({ nodeId, diskId, address }: NodeReport): Promise<NodeReport | undefined> {
    const same = (told: NodeReport): boolean => told.nodeId === nodeId && told.diskId === diskId && told.stampId === this.#term.stampId;
    const recorded = await askReport(this.#term, nodeId);
    if (this.#term.ended.aborted) return undefined;
    if (recorded !== undefined && recorded !== "refused" && same(recorded)) return recorded;
    if (address === this.#term.nodes.address(nodeId)) return undefined;
    // Whoever is there may be no node of this stamp: its refusal ends no term.
    const client = this.#term.world.transport.client(address, ExtentNode);
    const told = await client.getNodeReport({ smTerm: toWire(this.#term.number) }, { timeoutMs: askReportTimeoutMs });
    return told.ok && same(told.value) && !this.#term.ended.aborted ? told.value : undefined;
  }

  /** Keeps the node's record, remembers its load, and brings its unsealed replicas to an end. `known`: the node was asked for the report. */
  async #keep(report: NodeReport, known?: Known): Promise<Taken> {
    const { world, number, nodes, state, ledger, age, stampId } = this.#term;
    const { repairer, sync, held } = this.#parts;
    const smTerm = toWire(number);
    if (report.stampId !== stampId) {
      world.logger.error("a node of another stamp reports", { node: report.nodeId, stamp: report.stampId });
      return ok({ smTerm, wrongStamp: true });
    }
    const { nodeId, address, diskId, faultDomain } = report;
    const { incarnation, reportNumber } = numbersOf(report);
    const before = state.node(nodeId)?.diskId;
    if (nodes.retired({ nodeId, diskId })) return ok({ smTerm, wrongStamp: false });
    const record = { nodeId, address, diskId, faultDomain, incarnation };
    const recorded = await ledger.commit((current) => planNode(current, record, known?.incarnation));
    if (!recorded.ok) return recorded;
    age.reported(nodeId, fromWire(report.metadataVersion));
    // With another disk all its replicas are lost at once.
    if (before !== undefined && before !== diskId) repairer.rescan();
    const load = {
      reportNumber,
      freeBytes: fromWire(report.freeBytes),
      totalBytes: fromWire(report.totalBytes),
      freeFiles: report.freeFiles === undefined ? undefined : fromWire(report.freeFiles),
      totalFiles: report.totalFiles === undefined ? undefined : fromWire(report.totalFiles),
      extentCount: report.extentCount,
      acceptsNewExtents: report.acceptsNewExtents,
    };
    if (nodes.report({ nodeId, diskId }, incarnation, load, known?.heard)) {
      void this.#lookAtAll(nodeId, diskId, report.unsealed);
      sync.heard({ nodeId, diskId }, incarnation);
      // A node of a release before `fragment_damages_found` says only how many are damaged now.
      const damage = `${report.damagedFragments} ${report.fragmentDamagesFound}`;
      held.heard({ nodeId, diskId }, incarnation, { damage, count: report.fragments });
    }
    return ok({ smTerm, wrongStamp: false });
  }

  /** Looks at all extents in steps. A node that has just started may have thousands, and each begins a seal. */
  async #lookAtAll(nodeId: string, diskId: string, replicas: readonly ExtentReplica[]): Promise<void> {
    const { ended, world } = this.#term;
    const turns = new Turns(world.clock);
    for (const replica of replicas) {
      if (turns.over) await turns.next();
      if (ended.aborted) return;
      this.#lookAt(nodeId, diskId, replica);
    }
  }

  #lookAt(nodeId: string, diskId: string, replica: ExtentReplica): void {
    const { sealer, completer, sync } = this.#parts;
    const id = extentId(fromWire(replica.extentId));
    const extent = this.#term.state.extent(id);
    if (extent === undefined) {
      void sync.lookAgain({ nodeId, diskId }, id);
      return;
    }
    const ours = extent.replicas.some((one) => one.nodeId === nodeId && one.diskId === diskId);
    if (!ours) return;
    const later = whyLater(extent, { nodeId, diskId }, replica);
    if (later !== undefined) this.#term.nodes.later.note(nodeId, id, later);
    const over = replica.restarted || replica.state !== ReplicaState.OPEN;
    if (extent.phase === "open" && over) void sealer.seal(id, 0);
    if (extent.phase === "sealed") completer.recheck(id, nodeId);
  }
}

const numbersOf = ({ diskId, incarnation, reportNumber, metadataVersion }: NodeReport): Required<ReportNumbers> => ({
  diskId,
  incarnation: fromWire(incarnation),
  reportNumber: fromWire(reportNumber),
  metadataVersion: fromWire(metadataVersion),
});
