/**
 * The streams of range partitions become those of others, in one change: what a split and a merge come to. Data are not copied; extents
 * are shared by the lists, and each child takes its keys of what is in them.
 *
 * The shared streams must end somewhere. Whoever has left them (`Departure.leave`) knows where each ends, and says so in the change itself: their
 * last extents are sealed there in the same transaction. A stream of which that is not certain is opened once more by its owner, which
 * seals it.
 *
 * The log of a range that is split is shared, too: it ends at what is acknowledged when the change is sent. What lies behind that is cut off.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ownerEpoch as epochOf, type Outcome } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { Location, StreamClient } from "@stamp/stream-client";
import { type StreamEditSchema, toWire } from "@stamp/wire";
import type { PartitionStreams } from "../load/load.ts";
import type { PartitionStreamNames } from "../types.ts";

export interface OwnedNames {
  readonly streams: PartitionStreamNames;
  readonly ownerEpoch: number;
}

export interface HandingParent extends OwnedNames {
  /** Streams as the parent left them, if this process still has them. */
  readonly left?: PartitionStreams;
  /** Extent of the first parent's last record; replay of the children begins there. */
  readonly recordExtentId?: number;
  readonly logFromExtentId?: number;
}

/** Open extents of the streams that were made, by name. */
export type HandedOver = ReadonlyMap<string, Location>;

/** Kinds of streams that a child takes from two parents. Commit logs are not joined: each has its own sequences. */
const sharedOfTwo = ["metadata", "rowData", "blobData"] as const;
const sharedOfOne = [...sharedOfTwo, "commitLog"] as const;
const sharedKinds = (parents: readonly HandingParent[]) => (parents.length > 1 ? sharedOfTwo : sharedOfOne);
const aheadTimeoutMs = 5_000;

/**
 * All streams of the parents go; those of the children are made under their owner epochs, with the extents of all parents (metadata: of the
 * first, which has the joined record; commit logs: of the only one, else none). Happens only while the parents have the owner epochs given (rule
 * ownerEpochAtManager). The parents have left (`Departure.leave`) before. Gives the extents of the commit logs.
 */
export async function handOver(
  world: World,
  client: StreamClient,
  parents: readonly HandingParent[],
  children: readonly OwnedNames[],
  timeoutMs: number,
): Promise<Outcome<HandedOver>> {
  const deadlineMs = world.clock.monotonicMs() + timeoutMs;
  const leftMs = (): number => Math.max(1, deadlineMs - world.clock.monotonicMs());
  // Opened once more by the same owner: that seals the last extents, and nothing can be appended behind the change.
  const opened = parents.flatMap((parent) =>
    sharedKinds(parents).flatMap((kind) => {
      const name = parent.streams[kind];
      return name === undefined || parent.left?.[kind]?.endsAt !== undefined ? [] : [{ name, ownerEpoch: parent.ownerEpoch }];
    }),
  );
  const sealed = await Promise.all(
    opened.map(({ name, ownerEpoch }) => client.openForOwner(name, epochOf(ownerEpoch), { create: false, timeoutMs: leftMs() })),
  );
  for (const one of sealed) if (one.ok) await one.value.close();
  const failed = sealed.find((one) => !one.ok);
  if (failed && !failed.ok) return failed;
  return client.multiModify(editsOf(parents, children), { timeoutMs: leftMs() });
}

/** Has the first extents made that the children will write to, while the parents are still served. A hint: nothing depends on it. */
export async function allocateForChildren(
  client: StreamClient,
  parents: readonly PartitionStreams[],
  children: readonly OwnedNames[],
): Promise<void> {
  const lastData = parents.flatMap(({ blobData }) => blobData?.extents ?? []).at(-1)?.extentId ?? 0;
  const options = { timeoutMs: aheadTimeoutMs };
  await Promise.all(
    children.flatMap(({ streams, ownerEpoch }) => [
      client.allocateAhead(streams.commitLog, epochOf(ownerEpoch), 0, options),
      ...(streams.blobData === undefined ? [] : [client.allocateAhead(streams.blobData, epochOf(ownerEpoch), lastData, options)]),
    ]),
  );
}

/** Returns a parent's stream from this extent on; 0 and undefined name all of it. */
const rangeFrom = (stream: string, firstExtentId = 0) =>
  firstExtentId === 0 ? { stream } : { stream, firstExtentId: toWire(firstExtentId) };

function editsOf(parents: readonly HandingParent[], children: readonly OwnedNames[]): MessageInitShape<typeof StreamEditSchema>[] {
  const [first] = parents;
  const shared: readonly string[] = sharedKinds(parents);
  const goes = parents.flatMap(({ streams, ownerEpoch, left }) =>
    sharedOfOne.flatMap((kind) => {
      const name = streams[kind];
      const end = shared.includes(kind) ? left?.[kind]?.endsAt : undefined;
      const complete = typeof end === "object" && { extentId: toWire(end.extentId), lengthBytes: toWire(end.lengthBytes) };
      return name === undefined ? [] : [{ name, ownerEpoch: toWire(ownerEpoch), ...(complete && { complete }) }];
    }),
  );
  const comes = children.flatMap(({ streams, ownerEpoch }) => {
    const made = (name: string, extents: ReturnType<typeof rangeFrom>[], openAhead = false): MessageInitShape<typeof StreamEditSchema> => ({
      name,
      ownerEpoch: toWire(0),
      content: { ownerEpoch: toWire(ownerEpoch), extents, openAhead },
    });
    const of = (kind: "rowData" | "blobData") =>
      parents.flatMap((parent) => (parent.streams[kind] === undefined ? [] : [rangeFrom(parent.streams[kind])]));
    // Else a range that is split often has to read all that went before.
    const metadata = first === undefined ? [] : [rangeFrom(first.streams.metadata, first.recordExtentId)];
    const log = first === undefined || parents.length > 1 ? [] : [rangeFrom(first.streams.commitLog, first.logFromExtentId)];
    return [
      made(streams.metadata, metadata),
      made(streams.commitLog, log, true),
      made(streams.rowData, of("rowData")),
      ...(streams.blobData === undefined ? [] : [made(streams.blobData, of("blobData"))]),
    ];
  });
  return [...goes, ...comes];
}
