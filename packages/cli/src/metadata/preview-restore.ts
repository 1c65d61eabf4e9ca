/**
 * `stamp metadata restore FILE --list`: says what a restore would take back and what it would lose, by the folders of the stopped extent nodes of this
 * host. Judges as the stream manager does after the restore (`judgeRestored`), and changes nothing.
 */
import { allRules, type Outcome } from "@stamp/base";
import type { ClusterConfig } from "@stamp/cluster";
import { checkDisk } from "@stamp/extent-node";
import { snapshotEntries } from "@stamp/lock-service";
import type { OpenedSnapshot } from "@stamp/metadata-store";
import { NodeDigest } from "@stamp/ports-node";
import {
  decodeTakenBack,
  judgeRestored,
  type LostExtent,
  managerPrefix,
  mayComeBack,
  StreamState,
  takenBackKey,
  type UnknownReplica,
} from "@stamp/stream";
import { CommandError } from "../context.ts";
import { partsOf, stoppedNodes } from "../fsck/gather.ts";

export interface RestorePreview {
  readonly comesBack: readonly { readonly stream: string; readonly extents: readonly number[] }[];
  readonly lost: readonly LostExtent[];
  /** Extents behind which one that comes back was made, and that no folder has. */
  readonly missing: readonly { readonly stream: string; readonly id: number }[];
  /** Nodes of the copy whose folders are not on this host, or can't be read: what only they have is not listed. */
  readonly absent: readonly string[];
}

/** Reads the disks of all stopped nodes. `tell`: how far it is. */
export async function previewRestore(
  config: ClusterConfig,
  snapshot: OpenedSnapshot,
  tell: (what: string) => void,
): Promise<RestorePreview> {
  const digest = new NodeDigest();
  const checksum = (bytes: Uint8Array): number => digest.crc32c(bytes);
  const state = answered(StreamState.load(answered(await snapshotEntries(snapshot, managerPrefix, checksum)), checksum));
  const [before] = answered(await snapshotEntries(snapshot, takenBackKey, checksum));
  const floor = before === undefined ? 0 : answered(decodeTakenBack(before.value, checksum)).floor;
  const replicas: UnknownReplica[] = [];
  const heard = new Set<string>();
  for (const stopped of stoppedNodes(config)) {
    tell(`reading the disk of ${stopped.name}`);
    const { identity, problems, replicas: held } = await checkDisk(partsOf(stopped), false);
    if (identity === undefined || identity.stampId !== snapshot.stampId) continue;
    heard.add(stopped.name);
    for (const meta of held) {
      if (!mayComeBack(state, meta.extentId)) continue;
      const found = problems.filter(({ extentId }) => extentId === meta.extentId).map(({ what }) => what);
      replicas.push({
        place: { nodeId: stopped.name, diskId: identity.diskId },
        id: meta.extentId,
        creation: meta.creation?.number ?? 0,
        stream: meta.creation?.stream ?? "",
        predecessor: meta.creation?.predecessor,
        ownerEpoch: meta.ownerEpoch,
        version: meta.version,
        durableBytes: meta.durableBytes,
        sealedLengthBytes: meta.sealedLengthBytes,
        checksum: meta.checksum,
        problems: meta.state === "damaged" ? [...found, meta.damage] : found,
      });
    }
  }
  const { taken, lost, missing } = judgeRestored(state, replicas, floor, allRules);
  const nodes = [...state.nodes()].filter(({ duty }) => duty !== "decommissioned");
  return {
    comesBack: [...taken].map(([stream, extents]) => ({ stream, extents: extents.map(({ id }) => id) })),
    lost,
    missing,
    absent: nodes.map(({ nodeId }) => nodeId).filter((nodeId) => !heard.has(nodeId)),
  };
}

export function previewText({ absent, comesBack, lost, missing }: RestorePreview): string {
  const count = comesBack.reduce((sum, { extents }) => sum + extents.length, 0);
  return [
    `extents that began after the copy and come back: ${count}`,
    ...comesBack.map(({ extents, stream }) => `  ${stream}: ${extents.join(", ")}`),
    `extents that do not come back: ${lost.length}`,
    ...lost.map(({ bytes, id, stream, why }) => `  ${stream}: ${id}${bytes === undefined ? "" : ` (${bytes} bytes)`}: ${why}`),
    ...(missing.length === 0 ? [] : [`extents before those, truncated away after the copy or lost: ${missing.length}`]),
    ...missing.map(({ id, stream }) => `  ${stream}: ${id}`),
    ...(absent.length === 0 ? [] : [`nodes whose folders were not read here: ${absent.join(", ")}: what only they have is not listed`]),
    "nothing was changed",
  ].join("\n");
}

function answered<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new CommandError(outcome.failure.message);
}
