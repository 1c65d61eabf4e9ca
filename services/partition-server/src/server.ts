/** Wire calls of a partition server: to what it holds, and to operations on objects. */
import { emptyBytes, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { type OperationResult, type Place, zeroExtentId } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { type AnswerMemory, causeOf, type Handlers } from "@stamp/ports";
import type { StorageCounts } from "@stamp/range-partition";
import { answerable, fromWire, operationOf, type PartitionServer, toWire } from "@stamp/wire";
import type { Collector } from "./collector/collector.ts";
import { ExtentUsers } from "./collector/extent-users.ts";
import type { Executor } from "./operations/execute.ts";
import { answeredTo, askedBy } from "./operations/front-end-view.ts";
import { incarnationsHere } from "./operations/incarnations.ts";
import type { HeldRange, Holdings, ServingRange } from "./ranges/holdings.ts";
import { findSplitKey } from "./ranges/split-key.ts";
import type { VouchedCommands } from "./ranges/vouched-commands.ts";
import { queuesHere } from "./removal/queues-here.ts";
import type { Remover } from "./removal/remover.ts";
import type { HandleKey } from "./shipping/data/data-handles.ts";
import type { Reports } from "./shipping/reports.ts";
import type { Shipments } from "./shipping/shipments.ts";
import type { Shipper } from "./shipping/shipper.ts";
import { shippingFacts } from "./shipping/shipping-facts.ts";
import { operationFromWire, policyFromWire } from "./wire/operation-from-wire.ts";
import { rangeFromWire } from "./wire/range-from-wire.ts";
import { levelOfAnswer, placeToWire, resultToWire } from "./wire/result-to-wire.ts";

export function partitionServerHandlers(
  holdings: Holdings,
  executor: Executor,
  collector: Collector,
  commands: VouchedCommands,
  shipments: Shipments,
  shipper: Shipper,
  reports: Reports,
  remover: Remover,
  answers: AnswerMemory,
): Handlers<typeof PartitionServer> {
  /** Answers only for a range that is served here before and after the work. */
  const answered = async <T>(
    { rangeId, rangeVersion }: { readonly rangeId: string; readonly rangeVersion: bigint },
    work: (held: ServingRange) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> => {
    const before = holdings.serving(rangeId, fromWire(rangeVersion));
    if (!before.ok) return before;
    const done = await work(before.value);
    if (!done.ok) return done;
    const held = holdings.serving(rangeId, fromWire(rangeVersion));
    const may = held.ok ? executor.mayAnswer(held.value) : held;
    return may.ok ? done : may;
  };
  const extentUsers = new ExtentUsers();
  return {
    ...commandHandlers(holdings, commands),
    ...upkeepHandlers(holdings, collector),
    ...objectHandlers(holdings, executor, answers, shipments.handles),
    applyShipped: (request, context) => guarded(() => shipments.applyShipped(request, context)),
    applyScanned: (request, context) => guarded(() => shipments.applyScanned(request, context)),
    fenceShipped: (request) => guarded(() => answered(request, () => shipments.fence(request))),
    endRemoval: (request) => guarded(() => answered(request, () => shipments.endRemoval(request))),
    getRemovals: ({ accounts }) => guarded(async () => ok({ ranges: await remover.facts(accounts, (held) => executor.mayAnswer(held)) })),
    listRangeQueues: (request) =>
      guarded(() =>
        answered(request, async (held) => {
          const names = await queuesHere(held, request.account);
          return names.ok ? ok({ names: names.value }) : names;
        }),
      ),
    getShippedVersions: (request) => guarded(() => reports.versions(request)),
    listDivergedRows: (request) => guarded(() => reports.page(request)),
    forgetDivergedRows: (request) => guarded(() => reports.forget(request)),
    readDivergedBlob: (request, context) => guarded(() => reports.blobs.read(request, context.deadlineMs)),
    getShipping: ({ account, epoch, paired, drainedMsAgo, copyLineage }) =>
      guarded(async () => {
        const drained = drainedMsAgo === undefined ? undefined : fromWire(drainedMsAgo);
        const copied = { epoch: fromWire(epoch), paired: fromWire(paired), copyLineage: fromWire(copyLineage) };
        const asked = { account, ...copied, drainedMsAgo: drained };
        return ok({ ranges: shippingFacts(holdings, shipper, asked, (held) => executor.mayAnswer(held)) });
      }),
    listExtentUsers: ({ rangeId, extentId, fromKey }) =>
      guarded(async () => {
        const held = holdings.servingAny(rangeId);
        if (!held.ok) return held;
        const found = await extentUsers.page(held.value, fromWire(extentId), fromKey);
        const answered = executor.mayAnswer(held.value);
        return answered.ok ? found : answered;
      }),
    listPartitions: async () => {
      const { rowBytes, ...load } = holdings.figures;
      return ok({ partitions: holdings.all.map(infoOf), server: { ...load, rowBytes: toWire(rowBytes) } });
    },
  };
}

type Calls<Names extends keyof Handlers<typeof PartitionServer>> = Pick<Handlers<typeof PartitionServer>, Names>;

/** Handles commands of the partition manager, each vouched for by its term and by the epoch of the range's owner. */
function commandHandlers(holdings: Holdings, commands: VouchedCommands): Calls<"loadPartition" | "closePartition" | "reshapePartitions"> {
  return {
    loadPartition: (request) =>
      guarded(async () => {
        const range = rangeFromWire(request.range);
        if (!range.ok) return range;
        const { rangeId, ownerEpoch } = range.value;
        const command = { pmTerm: fromWire(request.pmTerm), leaseEpoch: fromWire(request.leaseEpoch), rangeId, ownerEpoch };
        const loaded = await commands.run({ term: command.pmTerm, ownerEpoch }, () => holdings.load(command, range.value));
        return loaded.ok ? ok({}) : loaded;
      }),
    closePartition: (request) =>
      guarded(async () => {
        const { rangeId } = request;
        const ownerEpoch = fromWire(request.ownerEpoch);
        const command = { pmTerm: fromWire(request.pmTerm), leaseEpoch: fromWire(request.leaseEpoch), rangeId, ownerEpoch };
        const closed = await commands.run({ term: command.pmTerm, ownerEpoch }, () => holdings.close(command));
        return closed.ok ? ok({}) : closed;
      }),
    reshapePartitions: (request, context) =>
      guarded(async () => {
        const children: Range[] = [];
        for (const child of request.children) {
          const range = rangeFromWire(child);
          if (!range.ok) return range;
          children.push(range.value);
        }
        const command = { pmTerm: fromWire(request.pmTerm), leaseEpoch: fromWire(request.leaseEpoch) };
        const parents = request.parents.map(({ rangeId, ownerEpoch }) => ({ rangeId, ownerEpoch: fromWire(ownerEpoch) }));
        if (parents.length === 0 || children.length === 0) return refused("invalidArgument", "badRequest", "no parents or no children");
        const highest = Math.max(...children.map(({ ownerEpoch }) => ownerEpoch));
        const times = await commands.run({ term: command.pmTerm, ownerEpoch: highest }, () =>
          holdings.reshape(command, parents, children, context.deadlineMs),
        );
        return times.ok ? ok({ heldMs: times.value.heldMs, times: times.value }) : times;
      }),
  };
}

/** Handles work on one range for an operator or the partition manager, which changes nothing that a client sees. */
function upkeepHandlers(holdings: Holdings, collector: Collector): Calls<"suggestSplitKey" | "checkpointPartition" | "collectPartition"> {
  return {
    suggestSplitKey: (request) =>
      guarded(async () => {
        const held = holdings.servingAny(request.rangeId);
        if (!held.ok) return held;
        const key = await findSplitKey(held.value);
        if (!key.ok) return key;
        if (key.value) return ok({ key: key.value });
        const why = "nothing is in it, or it is all of one PartitionName, which is never parted";
        return refused("notFound", "noSplitKey", `${request.rangeId} has no key at which it could be split: ${why}`);
      }),
    checkpointPartition: (request) =>
      guarded(async () => {
        const held = holdings.servingAny(request.rangeId);
        if (!held.ok) return held;
        const written = await held.value.engine.checkpoint();
        return written.ok ? ok({}) : written;
      }),
    collectPartition: (request) =>
      guarded(async () => {
        const held = holdings.servingAny(request.rangeId);
        if (!held.ok) return held;
        const collected = await collector.collect(held.value);
        if (!collected.ok) return collected;
        const { rows, rowsDeleted, extents, extentsDropped, extentsRewritten, bytesRewritten } = collected.value;
        return ok({
          rows: toWire(rows),
          rowsDeleted: toWire(rowsDeleted),
          extents,
          extentsDropped,
          extentsRewritten,
          bytesRewritten: toWire(bytesRewritten),
        });
      }),
  };
}

/** Calls of front-ends: operations on objects, and the bytes that go ahead of them. */
function objectHandlers(
  holdings: Holdings,
  executor: Executor,
  answers: AnswerMemory,
  handles: HandleKey,
): Calls<"listIncarnations" | "execute" | "writeData" | "pinData"> {
  return {
    listIncarnations: (request) =>
      guarded(async () => {
        const held = holdings.serving(request.rangeId, fromWire(request.rangeVersion));
        if (!held.ok) return held;
        const found = await incarnationsHere(held.value, request);
        if (!found.ok) return found;
        const answered = executor.mayAnswer(held.value);
        return answered.ok ? ok({ incarnations: found.value.map(toWire) }) : answered;
      }),
    execute: (request, context) =>
      guarded(async () => {
        const sent = operationOf(request);
        const known = operationFromWire(sent);
        if (!known.ok) return known;
        const operation = askedBy(context.caller, known.value);
        const version = fromWire(request.rangeVersion);
        const policy = policyFromWire(sent);
        const isQuery = operation.case === "table" && operation.value.case === "queryEntities";
        const lent = isQuery ? answers.lend(context) : undefined;
        const pageMemory = lent && ((lengthBytes: number) => lent.of(lengthBytes));
        const asked = { policy, pageMemory, cause: causeOf(context.metadata) };
        const result = await executor.execute(request.rangeId, version, operation, context.deadlineMs, asked);
        if (!result.ok) return result;
        const understood = answerable(levelOfAnswer(operation, result.value), request.callerLevel);
        if (!understood.ok) return understood;
        const extents = await executor.locate(placesOf(result.value), context.deadlineMs);
        const kind = sent?.kind;
        lent?.answered(rowsOf(result.value));
        return ok({
          result: resultToWire(answeredTo(context.caller, result.value), extents, kind?.case === "getBlockList" && kind.value.packed),
        });
      }),
    writeData: (request, context) =>
      guarded(async () => {
        const version = fromWire(request.rangeVersion);
        const { key, payload } = request;
        const data = { key, payload, free: context.giveBackPayload, cause: causeOf(context.metadata) };
        const places = await executor.writeData(request.rangeId, version, data, context.deadlineMs);
        if (!places.ok) return places;
        const [place] = places.value;
        const mac = place && handles.macOf(request.key, place);
        return ok({ places: places.value.map(placeToWire), pinTermMs: executor.pinTermMs, ...(mac && { mac }) });
      }),
    pinData: (request, context) =>
      guarded(async () => {
        const extentIds = request.extentIds.map(fromWire);
        const version = fromWire(request.rangeVersion);
        const gone = await executor.pinData(request.rangeId, version, request.key, extentIds, context.deadlineMs);
        return gone.ok ? ok({ goneExtentIds: gone.value.map(toWire) }) : gone;
      }),
  };
}

/** Returns the packed rows of a page of entities; empty for any other result. */
function rowsOf(result: OperationResult): Uint8Array {
  const page = result.case === "table" && result.value.case === "entities" ? result.value.value : undefined;
  return page?.rows ?? emptyBytes;
}

/** Returns the places whose extents the caller will want to read. */
function placesOf(result: OperationResult): readonly Place[] {
  if (result.case === "content") return result.value.places.filter((place) => place.extentId !== zeroExtentId);
  return result.case === "copyParts" ? result.value.parts.flatMap((part) => part.blocks.flatMap((block) => block.places)) : [];
}

function infoOf(held: HeldRange) {
  const facts = held.engine?.facts;
  return {
    rangeId: held.range.rangeId,
    table: held.range.table,
    ownerEpoch: toWire(held.range.ownerEpoch),
    rangeVersion: toWire(held.range.rangeVersion),
    state: held.state === "dropped" ? "closed" : held.state,
    sequence: toWire(facts?.sequence ?? 0),
    memoryTableBytes: toWire(facts?.memoryTableBytes ?? 0),
    checkpointCount: facts?.checkpointCount ?? 0,
    checkpointBytes: toWire(facts?.checkpointBytes ?? 0),
    load: held.load.figures,
    ageMs: toWire(Math.round(held.load.ageMs)),
    ...(facts?.storage === undefined ? {} : { storage: storageToWire(facts.storage) }),
  };
}

const storageToWire = (counts: StorageCounts): Record<keyof StorageCounts, bigint> => ({
  pointReads: toWire(counts.pointReads),
  checkpointsMet: toWire(counts.checkpointsMet),
  bloomAbsent: toWire(counts.bloomAbsent),
  bloomFalsePositives: toWire(counts.bloomFalsePositives),
  rowCacheHits: toWire(counts.rowCacheHits),
  rowCacheMisses: toWire(counts.rowCacheMisses),
  indexCacheHits: toWire(counts.indexCacheHits),
  indexCacheMisses: toWire(counts.indexCacheMisses),
  rowsScanned: toWire(counts.rowsScanned),
  rowBytesScanned: toWire(counts.rowBytesScanned),
  rowBytesAccepted: toWire(counts.rowBytesAccepted),
  flushedBytes: toWire(counts.flushedBytes),
  mergedBytes: toWire(counts.mergedBytes),
});

/** Runs work; numbers that no peer sends are refused instead of thrown. */
async function guarded<T>(work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}
