/** Tells the stream manager every second that this node lives, what room it has, and which of its replicas are not sealed. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Outcome, ok } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import { pause } from "@stamp/ports";
import { type ExtentReplicaSchema, fromWire, type GetNodeReportRequest, type NodeReportSchema, StreamManager, toWire } from "@stamp/wire";
import type { Node } from "./node.ts";
import { replicaOnWire } from "./replica-wire.ts";

const unsealedMax = 10_000;

export class Reporter {
  readonly #node: Node;
  readonly #leader: LeaderCalls;
  readonly #stop: AbortController = new AbortController();
  #running: Promise<void> | undefined;
  /** True if the stream manager says that this disk belongs to another stamp. */
  wrongStamp = false;
  reported = false;

  constructor(node: Node) {
    this.#node = node;
    this.#leader = new LeaderCalls(node.world, { lockService: node.config.lockService, leaseName: "stream-manager" });
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { world, config } = this.#node;
    while (!this.#stop.signal.aborted) {
      await this.#node.lookAtDisk();
      await this.#report();
      await pause(world.clock, config.reportEveryMs, this.#stop.signal);
    }
  }

  async #report(): Promise<void> {
    const node = this.#node;
    const report = nodeReport(node);
    const answer = await this.#leader.call(
      node.config.reportEveryMs,
      (address, timeoutMs) => node.world.transport.client(address, StreamManager).reportNode(report, { timeoutMs }),
      { idempotent: true },
    );
    // The answer of a deposed leader changes nothing.
    if (!answer.ok || Number(answer.value.smTerm) < node.smTerm) return;
    this.reported = true;
    this.wrongStamp = answer.value.wrongStamp;
  }
}

export async function getNodeReport(
  node: Node,
  request: GetNodeReportRequest,
): Promise<Outcome<MessageInitShape<typeof NodeReportSchema>>> {
  const obeyed = node.obey(fromWire(request.smTerm));
  if (!obeyed.ok) return obeyed;
  await obeyed.value;
  return ok(nodeReport(node));
}

function nodeReport(node: Node): MessageInitShape<typeof NodeReportSchema> {
  const unsealed: MessageInitShape<typeof ExtentReplicaSchema>[] = [];
  for (const extent of node.store.extents.unsealed()) {
    if (unsealed.length >= unsealedMax) break;
    unsealed.push(replicaOnWire(node, extent));
  }
  node.reportNumber += 1;
  return {
    nodeId: node.identity.nodeId,
    address: node.address,
    diskId: node.identity.diskId,
    stampId: node.identity.stampId,
    incarnation: toWire(node.incarnation),
    reportNumber: toWire(node.reportNumber),
    faultDomain: node.config.faultDomain === "" ? node.identity.nodeId : node.config.faultDomain,
    freeBytes: toWire(node.freeBytes),
    totalBytes: toWire(node.totalBytes),
    ...(node.freeFiles === undefined ? {} : { freeFiles: toWire(node.freeFiles), totalFiles: toWire(node.totalFiles ?? 0) }),
    extentCount: node.store.extents.size,
    acceptsNewExtents: node.takesExtents,
    unsealed,
    metadataVersion: toWire(node.metadataVersion()),
    damagedFragments: node.fragments.damagedCount,
    fragments: node.fragments.count,
    fragmentDamagesFound: toWire(node.fragments.damagesFound),
  };
}
