/**
 * The streams of range partitions become those of others, in one change: what a split and a merge come to. Data are not copied; extents
 * are shared by the lists, and each heir takes its keys of what is in them.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ownerEpoch as epochOf, type Outcome, ok } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { StreamClient } from "@stamp/stream-client";
import { type StreamEditSchema, toWire } from "@stamp/wire";
import type { PartitionStreamNames } from "./types.ts";

export interface OwnedNames {
  readonly streams: PartitionStreamNames;
  readonly ownerEpoch: number;
}

/**
 * All streams of the parents go; those of the heirs are made under their owner epochs, with the extents of all parents (metadata: of the
 * first, which has the joined record), commit logs empty. Happens only while the parents have the owner epochs given (rule
 * ownerEpochAtManager). The parents have left (`leaveTo`) before.
 */
export async function handOver(
  world: World,
  client: StreamClient,
  parents: readonly OwnedNames[],
  heirs: readonly OwnedNames[],
  timeoutMs: number,
): Promise<Outcome<void>> {
  const deadlineMs = world.clock.monotonicMs() + timeoutMs;
  const leftMs = (): number => Math.max(1, deadlineMs - world.clock.monotonicMs());
  // Opened once more by the same owner: that seals the last extents, and nothing can be appended behind the change.
  const shared = parents.flatMap(({ streams, ownerEpoch }) => sharedNames(streams).map((name) => ({ name, ownerEpoch })));
  const sealed = await Promise.all(
    shared.map(({ name, ownerEpoch }) => client.openForOwner(name, epochOf(ownerEpoch), { create: false, timeoutMs: leftMs() })),
  );
  for (const one of sealed) if (one.ok) await one.value.close();
  const failed = sealed.find((one) => !one.ok);
  if (failed && !failed.ok) return failed;
  const modified = await client.multiModify(editsOf(parents, heirs), { timeoutMs: leftMs() });
  return modified.ok ? ok() : modified;
}

const sharedKinds = ["metadata", "rowData", "blobData"] as const;

const sharedNames = (streams: PartitionStreamNames): string[] =>
  sharedKinds.map((kind) => streams[kind]).filter((name) => name !== undefined);

function editsOf(parents: readonly OwnedNames[], heirs: readonly OwnedNames[]): MessageInitShape<typeof StreamEditSchema>[] {
  const goes = parents.flatMap(({ streams, ownerEpoch }) =>
    [...sharedNames(streams), streams.commitLog].map((name) => ({ name, ownerEpoch: toWire(ownerEpoch) })),
  );
  const comes = heirs.flatMap(({ streams, ownerEpoch }) => {
    const made = (name: string, from: readonly (string | undefined)[]) => ({
      name,
      ownerEpoch: toWire(0),
      content: {
        ownerEpoch: toWire(ownerEpoch),
        extents: from.filter((stream) => stream !== undefined).map((stream) => ({ stream })),
      },
    });
    const edits = [
      made(streams.metadata, [parents[0]?.streams.metadata]),
      made(streams.commitLog, []),
      made(
        streams.rowData,
        parents.map((parent) => parent.streams.rowData),
      ),
    ];
    if (streams.blobData !== undefined)
      edits.push(
        made(
          streams.blobData,
          parents.map((parent) => parent.streams.blobData),
        ),
      );
    return edits;
  });
  return [...goes, ...comes];
}
