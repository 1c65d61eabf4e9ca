/** Calls of StreamManager: wire in, domain call, wire out. Whoever waits gets an answer before his deadline. */
import type { ExtentId, Outcome } from "@stamp/base";
import { extentId, firstInOrder, ok, ownerEpoch, present, refused, unknownOutcome } from "@stamp/base";
import type { CallContext, Clock, Handlers } from "@stamp/ports";
import { within } from "@stamp/ports";
import type { NodeDuty as RecordedDuty } from "@stamp/stream";
import type { NodeReport, StreamManager, StreamEdit as WireEdit } from "@stamp/wire";
import { fromWire, NodeDuty, toWire } from "@stamp/wire";
import { holdersOnWire } from "./calls/extent-holders.ts";
import type { WantedEdit } from "./calls/owner-calls.ts";
import { listPageMax } from "./calls/views.ts";
import { codingPlan, codingStatus } from "./coding/coding-views.ts";
import type { Serving } from "./leader.ts";
import { lacksOf, waitsOf } from "./leader.ts";

const pageMax = 1_000;
const locateMax = 10_000;
const openedTogetherMax = 16;
/** Time kept from a caller's deadline for the way back, in milliseconds: a tenth of it, at most this. Too late, he would never hear why. */
const answerMsMax = 100;

/** Passes calls to the leading stream manager, and answers each before the deadline of its caller. */
class Door {
  readonly #clock: Clock;
  readonly #serving: () => Serving | undefined;
  readonly #standby: () => Outcome<never>;
  /** Called with each report of a node, also while nothing is served. */
  readonly heard: (report: NodeReport) => void;

  constructor(clock: Clock, serving: () => Serving | undefined, standby: () => Outcome<never>, heard: (report: NodeReport) => void) {
    this.#clock = clock;
    this.#serving = serving;
    this.#standby = standby;
    this.heard = heard;
  }

  readonly led = async <T>(work: (leader: Serving) => Promise<Outcome<T>> | Outcome<T>): Promise<Outcome<T>> => {
    const leader = this.#serving();
    return leader === undefined ? this.#standby() : work(leader);
  };

  /** The work goes on when its caller's time is over: what was begun is finished, and a repeated call joins it. */
  readonly inTime = async <T>(context: CallContext, leader: Serving, work: Promise<Outcome<T>>, what: string): Promise<Outcome<T>> => {
    const untilDeadlineMs = context.deadlineMs - this.#clock.monotonicMs();
    const leftMs = Math.max(1, untilDeadlineMs - Math.min(answerMsMax, untilDeadlineMs / 10));
    const outcome = await within(this.#clock, leftMs, work);
    if (outcome !== undefined) return outcome;
    const waits = waitsOf(leader).join("; ");
    // The caller's own callers are told when it is nodes or room that lack. (A node without room does not answer a fence.)
    const lacks = [...leader.allocator.waits(), ...lacksOf(leader)];
    const reason = lacks.length > 0 ? "noPlacement" : "timeout";
    return unknownOutcome("deadlineExceeded", reason, `${what} is not done yet${waits === "" ? "" : `: ${waits}`}`);
  };

  readonly wanted = (context: CallContext) => (): boolean => !context.aborted && this.#clock.monotonicMs() < context.deadlineMs;
}

type Calls<Names extends keyof Handlers<typeof StreamManager>> = Pick<Handlers<typeof StreamManager>, Names>;

/** `standby` answers while this process does not lead. `heard` is called with each report of a node, also then. */
export function streamManagerHandlers(
  clock: Clock,
  serving: () => Serving | undefined,
  standby: () => Outcome<never>,
  heard: (report: NodeReport) => void = () => {},
): Handlers<typeof StreamManager> {
  const door = new Door(clock, serving, standby, heard);
  return {
    ...openingHandlers(door),
    ...changingHandlers(door),
    ...viewingHandlers(door),
    ...codingHandlers(door),
    ...nodeHandlers(door),
    ...operatorHandlers(door),
  };
}

/** Calls of owners that write: they open a stream and go on to its next extent. */
function openingHandlers({
  led,
  inTime,
  wanted,
}: Door): Calls<"createStream" | "openStream" | "openStreams" | "sealAndAllocate" | "allocateAhead"> {
  return {
    createStream: (request, context) =>
      led(async (leader) => {
        const work = leader.calls.createStream(request.name, ownerEpoch(fromWire(request.ownerEpoch)));
        const created = await inTime(context, leader, work, `creating stream ${request.name}`);
        return created.ok ? ok(leader.views.stream(request.name, leader.term.state.list(request.name))) : created;
      }),
    openStream: (request, context) =>
      led(async (leader) => {
        const work = leader.calls.openStream(request.name, ownerEpoch(fromWire(request.ownerEpoch)), request.create);
        const opened = await inTime(context, leader, work, `opening stream ${request.name}`);
        return opened.ok ? ok(leader.views.stream(request.name, opened.value)) : opened;
      }),
    openStreams: (request, context) =>
      led(async (leader) => {
        const { names, create } = request;
        if (names.length === 0 || names.length > openedTogetherMax || new Set(names).size < names.length)
          return refused("invalidArgument", "badRequest", `1 to ${openedTogetherMax} streams with different names are opened together`);
        const work = leader.calls.openStreams(names, ownerEpoch(fromWire(request.ownerEpoch)), create);
        const opened = await inTime(context, leader, work, `opening streams ${names.join(", ")}`);
        if (!opened.ok) return opened;
        const page = Math.floor(listPageMax / names.length);
        return ok({ streams: names.map((name, i) => leader.views.stream(name, present(opened.value[i], "its list"), 0, page)) });
      }),
    sealAndAllocate: (request, context) =>
      led(async (leader) => {
        const work = leader.calls.sealAndAllocate({
          name: request.name,
          ownerEpoch: ownerEpoch(fromWire(request.ownerEpoch)),
          extent: request.extentId === 0n ? undefined : extentId(fromWire(request.extentId)),
          knownCommittedBytes: fromWire(request.knownCommittedBytes),
          avoidAddresses: request.avoidAddresses,
          complete: request.complete,
          wanted: wanted(context),
        });
        const succeeded = await inTime(context, leader, work, `sealing extent ${request.extentId} of stream ${request.name}`);
        if (!succeeded.ok) return succeeded;
        const successor = leader.term.state.extent(succeeded.value.successor);
        if (successor === undefined) return refused("aborted", "conflict", `stream ${request.name} was changed meanwhile: open it again`);
        return ok({ sealedLengthBytes: toWire(succeeded.value.sealedLengthBytes), extent: leader.views.location(successor) });
      }),
    allocateAhead: (request) =>
      led(async (leader) => {
        const { name, extentId: last } = request;
        const predecessor = last === 0n ? undefined : extentId(fromWire(last));
        const begun = await leader.calls.allocateAhead(name, ownerEpoch(fromWire(request.ownerEpoch)), predecessor);
        return begun.ok ? ok({}) : begun;
      }),
  };
}

/** Calls of owners that change lists of extents. */
function changingHandlers({
  led,
  inTime,
}: Door): Calls<"truncateStream" | "deleteStream" | "renameStream" | "concatenateStreams" | "multiModify"> {
  return {
    truncateStream: (request, context) =>
      led(async (leader) => {
        const { name, beforeExtentId } = request;
        const work = leader.calls.truncate(name, ownerEpoch(fromWire(request.ownerEpoch)), extentId(fromWire(beforeExtentId)));
        const truncated = await inTime(context, leader, work, `truncating stream ${name}`);
        return truncated.ok ? ok(leader.views.stream(name, leader.term.state.list(name))) : truncated;
      }),
    deleteStream: (request, context) =>
      led(async (leader) => {
        const work = leader.calls.deleteStream(request.name, ownerEpoch(fromWire(request.ownerEpoch)));
        const deleted = await inTime(context, leader, work, `deleting stream ${request.name}`);
        return deleted.ok ? ok({}) : deleted;
      }),
    renameStream: (request, context) =>
      led(async (leader) => {
        const { name, newName } = request;
        const work = leader.calls.rename(name, ownerEpoch(fromWire(request.ownerEpoch)), newName);
        const renamed = await inTime(context, leader, work, `renaming stream ${name}`);
        return renamed.ok ? ok(leader.views.stat(newName)) : renamed;
      }),
    concatenateStreams: (request, context) =>
      led(async (leader) => {
        const { target, source } = request;
        const [epoch, sourceEpoch] = [request.targetOwnerEpoch, request.sourceOwnerEpoch].map((each) => ownerEpoch(fromWire(each)));
        if (epoch === undefined || sourceEpoch === undefined) return noStream(source);
        const work = leader.calls.concatenate(target, epoch, source, sourceEpoch);
        const done = await inTime(context, leader, work, `concatenating stream ${source} to ${target}`);
        return done.ok ? ok(leader.views.stat(target)) : done;
      }),
    multiModify: (request, context) =>
      led(async (leader) => {
        const done = await inTime(
          context,
          leader,
          leader.calls.multiModify(request.edits.map(editFromWire)),
          "the change of several streams",
        );
        if (!done.ok) return done;
        const kept = request.edits.filter((edit) => edit.content !== undefined);
        const opened = [...done.value].flatMap(([stream, id]) => {
          const extent = leader.term.state.extent(id);
          return extent?.phase === "open" ? [{ stream, extent: leader.views.location(extent) }] : [];
        });
        return ok({ streams: kept.map((edit) => leader.views.stat(edit.name)), opened });
      }),
  };
}

/** Calls that read streams and extents. */
function viewingHandlers({ led }: Door): Calls<"getStream" | "statStream" | "listStreams" | "locateExtents" | "listExtents"> {
  return {
    getStream: (request) =>
      led((leader) => {
        const { state } = leader.term;
        const { name, afterExtentId } = request;
        if (state.stream(name) === undefined) return noStream(name);
        const list = state.list(name);
        const after = afterExtentId === 0n ? -1 : list.indexOf(extentId(fromWire(afterExtentId)));
        if (after < 0 && afterExtentId !== 0n) {
          return refused("notFound", "unknownExtent", `extent ${afterExtentId} is not in stream ${name}`);
        }
        return ok(leader.views.stream(name, list, after + 1, request.limit === 0 ? undefined : request.limit));
      }),
    statStream: ({ name }) =>
      led((leader) => (leader.term.state.stream(name) === undefined ? noStream(name) : ok(leader.views.stat(name)))),
    listStreams: (request) =>
      led((leader) => {
        const wanted = where(leader.term.state.streamNames(), (name) => name > request.after && name.startsWith(request.prefix));
        const length = pageLength(request.limit);
        const found = firstInOrder(wanted, length + 1, (a, b) => (a < b ? -1 : 1));
        return ok({ streams: found.slice(0, length).map((name) => leader.views.streamSummary(name)), more: found.length > length });
      }),
    locateExtents: (request) =>
      led((leader) => {
        if (request.extentIds.length > locateMax)
          return refused("invalidArgument", "badRequest", `at most ${locateMax} extents in one call`);
        const extents = [];
        for (const id of request.extentIds) {
          const extent = leader.term.state.extent(extentId(fromWire(id)));
          if (extent !== undefined && extent.phase !== "allocating") extents.push(leader.views.location(extent, true));
        }
        return ok({ extents });
      }),
    listExtents: (request) =>
      led((leader) => {
        const length = pageLength(request.limit);
        const found = leader.term.state.extentsAfter(fromWire(request.afterExtentId), length + 1);
        return ok({ extents: found.slice(0, length).map((extent) => leader.views.extent(extent)), more: found.length > length });
      }),
  };
}

/** Calls about coding, decoding and repair. */
function codingHandlers({
  led,
}: Door): Calls<"getRepairStatus" | "getCodingStatus" | "listCodingPlan" | "setCodingPaused" | "codeExtent" | "replicateExtent"> {
  return {
    getRepairStatus: () =>
      led((leader) => {
        const copies = leader.repairer.status();
        const blocked = [...leader.coder.repairs.blockedReasons].map(([why, count]) => `${count} coded extents: ${why}`);
        return ok({ ...copies, ...leader.coder.repairs.repairStatus(), blocked: [...copies.blocked, ...blocked] });
      }),
    getCodingStatus: () => led((leader) => ok(codingStatus(leader))),
    listCodingPlan: (request) => led((leader) => ok(codingPlan(leader, fromWire(request.afterExtentId), pageLength(request.limit)))),
    setCodingPaused: (request) =>
      led(async (leader) => {
        const set = await leader.chooser.setPaused(request.paused, request.note);
        return set.ok ? ok(codingStatus(leader)) : set;
      }),
    codeExtent: (request) =>
      led(async (leader) => {
        const id = extentId(fromWire(request.extentId));
        return recordAfter(leader, id, await leader.coder.codeAsked(id, request.profile));
      }),
    replicateExtent: (request) =>
      led(async (leader) => {
        const id = extentId(fromWire(request.extentId));
        return recordAfter(leader, id, await leader.coder.decode(id));
      }),
  };
}

/** Calls about extent nodes and their reports. */
function nodeHandlers({ led, heard }: Door): Calls<"setNodeDuty" | "listNodes" | "getRoom" | "getExtentHolders" | "reportNode"> {
  return {
    setNodeDuty: (request) =>
      led(async (leader) => {
        const duty = dutyFromWire(request.duty);
        if (duty === undefined) return refused("invalidArgument", "badRequest", "no such duty of a node");
        const set = await leader.operator.setNodeDuty(request.nodeId, duty);
        if (!set.ok) return set;
        leader.coder.repairs.rescan();
        const node = leader.views.nodes().find((one) => one.nodeId === request.nodeId);
        return node === undefined ? refused("notFound", "badRequest", `there is no extent node ${request.nodeId}`) : ok(node);
      }),
    listNodes: () => led((leader) => ok({ nodes: leader.views.nodes() })),
    getRoom: () => led((leader) => ok({ lacks: lacksOf(leader) })),
    getExtentHolders: (request) => led((leader) => ok(holdersOnWire(leader, extentId(fromWire(request.extentId))))),
    reportNode: (request) => {
      heard(request);
      return led((leader) => leader.reports.take(request));
    },
  };
}

/** Decisions that only a person takes: over loss, over quarantined replicas and over stray fragments. */
function operatorHandlers({
  led,
  inTime,
}: Door): Calls<
  | "sealAcceptingLoss"
  | "listQuarantine"
  | "deleteQuarantined"
  | "adoptQuarantined"
  | "listStrayFragments"
  | "deleteStrayFragment"
  | "adoptFragments"
> {
  return {
    sealAcceptingLoss: (request, context) =>
      led(async (leader) => {
        const work = leader.operator.sealAcceptingLoss(extentId(fromWire(request.extentId)), request.note);
        const sealed = await inTime(context, leader, work, `sealing extent ${request.extentId} with loss accepted`);
        return sealed.ok ? ok(leader.views.extent(sealed.value)) : sealed;
      }),
    listQuarantine: () => led((leader) => ok({ replicas: leader.operator.quarantine(), more: leader.term.nodes.quarantineFull })),
    deleteQuarantined: (request) =>
      led(async (leader) => {
        const deleted = await leader.operator.deleteQuarantined(request.nodeId, extentId(fromWire(request.extentId)));
        return deleted.ok ? ok({}) : deleted;
      }),
    adoptQuarantined: (request, context) =>
      led(async (leader) => {
        const work = leader.operator.adoptQuarantined(request.nodeId, extentId(fromWire(request.extentId)));
        const adopted = await inTime(context, leader, work, `adopting extent ${request.extentId}`);
        return adopted.ok ? ok(leader.views.extent(adopted.value)) : adopted;
      }),
    listStrayFragments: (_request, context) =>
      led((leader) => inTime(context, leader, leader.strays.list(), "the list of stray fragments")),
    deleteStrayFragment: (request) =>
      led(async (leader) => {
        const { nodeId, extentId: id, version } = request;
        if (id === 0n || version === 0n) return refused("invalidArgument", "badRequest", "a fragment has an extent and a version");
        const deleted = await leader.strays.delete(nodeId, extentId(fromWire(id)), fromWire(version));
        return deleted.ok ? ok({}) : deleted;
      }),
    adoptFragments: (request, context) =>
      led(async (leader) => {
        const work = leader.adoption.adopt(extentId(fromWire(request.extentId)));
        const adopted = await inTime(context, leader, work, `adopting fragments of extent ${request.extentId}`);
        return adopted.ok ? ok(leader.views.extent(adopted.value)) : adopted;
      }),
  };
}

/** Returns an extent's record after a call with this outcome. */
function recordAfter(leader: Serving, id: ExtentId, outcome: Outcome<void>): Outcome<ReturnType<Serving["views"]["extent"]>> {
  if (!outcome.ok) return outcome;
  const extent = leader.term.state.extent(id);
  return extent === undefined
    ? refused("notFound", "unknownExtent", `extent ${id} was dropped meanwhile`)
    : ok(leader.views.extent(extent));
}

const noStream = (name: string): Outcome<never> => refused("notFound", "streamNotFound", `there is no stream ${name}`);

function dutyFromWire(duty: NodeDuty): RecordedDuty | undefined {
  switch (duty) {
    case NodeDuty.SERVING:
      return "serving";
    case NodeDuty.DRAINING:
      return "draining";
    case NodeDuty.DECOMMISSIONED:
      return "decommissioned";
    default:
      return undefined;
  }
}

function editFromWire(edit: WireEdit): WantedEdit {
  const { name, content, complete } = edit;
  return {
    name,
    ownerEpoch: edit.ownerEpoch === 0n ? undefined : ownerEpoch(fromWire(edit.ownerEpoch)),
    ...(edit.listVersion === undefined ? {} : { listVersion: fromWire(edit.listVersion) }),
    content: content && {
      ownerEpoch: ownerEpoch(fromWire(content.ownerEpoch)),
      ranges: content.extents.map(({ stream, firstExtentId, beforeExtentId }) => ({
        stream,
        ...(firstExtentId === 0n ? {} : { first: extentId(fromWire(firstExtentId)) }),
        ...(beforeExtentId === 0n ? {} : { before: extentId(fromWire(beforeExtentId)) }),
      })),
    },
    ...(content?.openAhead && { openAhead: true }),
    ...(complete && { complete: { extent: extentId(fromWire(complete.extentId)), lengthBytes: fromWire(complete.lengthBytes) } }),
  };
}

const pageLength = (limit: number): number => (limit === 0 ? pageMax : Math.min(limit, pageMax));

function* where<T>(items: Iterable<T>, holds: (item: T) => boolean): Generator<T> {
  for (const item of items) if (holds(item)) yield item;
}
