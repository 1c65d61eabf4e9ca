/**
 * Files that gateways of other protocols hold open, over gRPC (`stamp.v1.FileHandles`). A handle is named `share/incarnation/file id/handle id`.
 */
import { fileBytesMax, fileError, type Parsed, parsed, rejected, restErrorOfService } from "@stamp/azure-rest";
import type { Outcome } from "@stamp/base";
import { allRights, shareContainer } from "@stamp/objects";
import type { CallContext, Handlers } from "@stamp/ports";
import { resolve } from "@stamp/tree";
import { type Blob, type FileHandles, fromWire, type HandlesAnswer, toWire } from "@stamp/wire";
import { bytesOf, type ContentExchange, putBytes } from "../http/file/data.ts";
import { refusedFile } from "../http/file/refusals.ts";
import { contentEntries } from "../http/file/smb.ts";
import { busyError, restErrorOf } from "../objects/failures.ts";
import { endOf, type LocatedBlob } from "../objects/objects.ts";
import type { CallLimits } from "../routing/router.ts";
import { type HandleStepInit, isHandleRefusal } from "../trees/handles.ts";
import { limitsOf } from "./call-limits.ts";
import { allowedFiles, type GrpcDoorParts, outcomeOf } from "./grpc.ts";

/** Bytes of one read or write at most. */
const ioBytesMax = 1024 * 1024;
/** Longest name of a session, and of a client that is shown, in UTF-16 units. */
const textMax = 256;
/** Times that an open meets handles of ended sessions. */
const opensMax = 4;

interface Held {
  readonly name: LocatedBlob;
  readonly handleId: string;
}

type Call<Request, Answer> = (request: Request, limits: CallLimits, content: ContentExchange) => Promise<Parsed<Answer>>;

export function fileHandlesHandlers(parts: GrpcDoorParts): Handlers<typeof FileHandles> {
  const { objects } = parts;
  const call =
    <Request extends { readonly account: string }, Answer>(operation: string, work: Call<Request, Answer>) =>
    async (request: Request, context: CallContext): Promise<Outcome<Answer>> => {
      const own = limitsOf(context);
      const policy = await allowedFiles(parts, request.account, operation, context, own);
      if (!policy.ok) return policy;
      const limits: CallLimits = { ...own, policy: policy.value };
      const content: ContentExchange = {
        objects,
        headers: {},
        cause: own.cause,
        limits: () => limits,
        request: { remoteAddress: "grpc", signal: context.signal },
      };
      const done = await work(request, limits, content);
      return outcomeOf(done.ok ? done : { ok: false, error: fileError(done.error) });
    };
  const change = <Request extends { readonly account: string; readonly handle: string }>(
    operation: string,
    stepOf: (request: Request) => Parsed<HandleStepInit>,
  ) =>
    call<Request, Record<string, never>>(operation, async (request, limits) => {
      const held = await heldBy(parts, request, limits);
      if (!held.ok) return held;
      const step = stepOf(request);
      if (!step.ok) return step;
      const done = await stepped(parts, held.value.name, { ...step.value, handle: { id: held.value.handleId } }, limits);
      return done.ok ? parsed({}) : done;
    });
  return {
    open: call("PutRange", (request, limits) => open(parts, request, limits)),
    read: call(
      "GetFile",
      async (request: { account: string; handle: string; startBytes: bigint; lengthBytes: number }, limits, content) => {
        const held = await heldBy(parts, request, limits);
        if (!held.ok) return held;
        if (request.lengthBytes > ioBytesMax) return tooLarge();
        return readRange(held.value, startOf(request), request.lengthBytes, content);
      },
    ),
    write: call(
      "PutRange",
      async (request: { account: string; handle: string; startBytes: bigint; payload: Uint8Array }, limits, content) => {
        const held = await heldBy(parts, request, limits);
        if (!held.ok) return held;
        if (request.payload.length > ioBytesMax) return tooLarge();
        if (request.payload.length === 0) return parsed({});
        return writeRange(held.value, startOf(request), request.payload, content);
      },
    ),
    setLength: call("SetFileProperties", async (request: { account: string; handle: string; lengthBytes: bigint }, limits, content) => {
      if (request.lengthBytes > fileBytesMax) return rejected("InvalidInput", { Reason: "A file has 4 TiB at most." });
      const held = await heldBy(parts, request, limits);
      return held.ok ? setLength(held.value, request.lengthBytes, content) : held;
    }),
    lock: change("PutRange", (request: Locking) => lockStep("lock", request)),
    unlock: change("PutRange", (request: Locking) => lockStep("unlock", request)),
    setDisposition: change("DeleteFile", ({ deletePending: pending }: { account: string; handle: string; deletePending: boolean }) =>
      parsed({ action: "dispose", pending }),
    ),
    close: call("PutRange", async (request: { account: string; handle: string }, limits) => {
      const held = await heldBy(parts, request, limits);
      if (!held.ok) return held;
      const { name, handleId } = held.value;
      const closed = await objects.parts.handles.step(name, { action: "close", handle: { id: handleId } }, limits);
      if (!closed.ok) return { ok: false, error: restErrorOf(closed.failure) };
      // A file that is gone has no handle any more.
      if ("answer" in closed.value) await objects.parts.handles.removeDoomed(name, closed.value.answer, limits);
      return parsed({});
    }),
    list: call("ListHandles", async (request: { account: string; share: string; path: string }, limits) => {
      const found = await fileAt(parts, request, limits);
      if (!found.ok) return found;
      const { name } = found.value;
      const listed = await stepped(parts, name, { action: "list" }, limits);
      if (!listed.ok) return listed;
      const { handles, pending: deletePending } = listed.value;
      return parsed({ deletePending, handles: handles.map((state) => ({ handle: nameOf(request.share, name, state.id), state })) });
    }),
  };
}

interface Locking {
  readonly account: string;
  readonly handle: string;
  readonly lock?: HandleStepInit["lock"];
}

/** Bytes are told apart up to here, which is far beyond the largest file. Clients of SMB name bytes up to 2^64. */
const tellable = BigInt(Number.MAX_SAFE_INTEGER);

/** A lock that reaches further than bytes are told apart ends there. One that begins there would keep nothing. */
function lockStep(action: "lock" | "unlock", { lock }: Locking): Parsed<HandleStepInit> {
  if (!lock) return rejected("InvalidInput", { Reason: "A lock has a range." });
  const { startBytes = 0n, endBytes = 0n } = lock;
  if (startBytes >= tellable) return rejected("InvalidInput", { Reason: `A lock begins before byte ${tellable}.` });
  return parsed({ action, lock: { ...lock, endBytes: endBytes > tellable ? tellable : endBytes } });
}

/** First byte of a read or write. What lies beyond every file is all one. */
const startOf = ({ startBytes }: { readonly startBytes: bigint }): number =>
  fromWire(startBytes > fileBytesMax ? BigInt(fileBytesMax) : startBytes);

const tooLarge = (): Parsed<never> => rejected("RequestBodyTooLarge", { MaxLimit: String(ioBytesMax) });

const nameOf = (share: string, { containerIncarnation, blob }: LocatedBlob, id: string): string =>
  `${share}/${containerIncarnation}/${blob}/${id}`;

/** Reads handles. Refuses if the share was deleted meanwhile: its files are out of reach then. */
async function heldBy(
  { objects }: GrpcDoorParts,
  { account, handle }: { readonly account: string; readonly handle: string },
  limits: CallLimits,
): Promise<Parsed<Held>> {
  const [, share = "", incarnation = "", blob = "", handleId = ""] = /^([^/]+)\/(\d+)\/([0-9a-f]+)\/(\d+)$/.exec(handle) ?? [];
  if (share === "") return rejected("InvalidInput", { Reason: "No handle that Open has answered." });
  const container = shareContainer(share);
  const row = await objects.container(account, container, limits);
  if (!row.ok) return row;
  if (String(row.value.incarnation) !== incarnation) return rejected("ResourceNotFound");
  return parsed({ name: objects.located({ account, container, blob }, row.value), handleId });
}

/** Takes a step, and again when handles of ended sessions were in its way. */
async function stepped(
  { objects }: GrpcDoorParts,
  name: LocatedBlob,
  step: HandleStepInit,
  limits: CallLimits,
): Promise<Parsed<HandlesAnswer>> {
  const { handles } = objects.parts;
  for (let attempt = 1; ; attempt++) {
    const done = await handles.step(name, step, limits);
    if (!done.ok) return { ok: false, error: restErrorOf(done.failure) };
    if ("code" in done.value) return { ok: false, error: restErrorOfService(done.value.code, "", {}) };
    const { refused } = done.value.answer;
    if (refused === "") return parsed(done.value.answer);
    const isLast = attempt === opensMax || !isHandleRefusal(refused);
    if (isLast || !(await handles.settle(name, limits))) return { ok: false, error: restErrorOfService(refused, "", {}) };
  }
}

async function fileAt(
  { objects }: GrpcDoorParts,
  { account, share, path }: { readonly account: string; readonly share: string; readonly path: string },
  limits: CallLimits,
) {
  const row = await objects.container(account, shareContainer(share), limits);
  if (!row.ok) return row;
  const tree = { account, filesystem: row.value.name, incarnation: fromWire(row.value.incarnation) };
  const names = path.split("/").filter((name) => name !== "");
  const found = await objects.parts.trees.run(tree, (context) => resolve(context, names), limits);
  if (!found.ok) return found.refusal === "notFound" ? rejected("ResourceNotFound") : refusedFile(found);
  const link = found.value.at(-1);
  if (link?.held.kind !== "file") return rejected("ResourceTypeMismatch");
  return parsed({ at: link.at, name: objects.located({ account, container: row.value.name, blob: link.held.id }, row.value) });
}

interface Opening {
  readonly account: string;
  readonly share: string;
  readonly path: string;
  readonly session: string;
  readonly sessionEpoch: bigint;
  readonly access: number;
  readonly shareMode: number;
  readonly deleteOnClose: boolean;
  readonly client: string;
}

async function open(parts: GrpcDoorParts, request: Opening, limits: CallLimits): Promise<Parsed<{ handle: string; lengthBytes: bigint }>> {
  const { objects } = parts;
  const { world, handles } = objects.parts;
  const { session, sessionEpoch, access, shareMode: share, deleteOnClose, client } = request;
  if (access > allRights || share > allRights) return rejected("InvalidInput", { Reason: "Rights are a sum of 1, 2 and 4." });
  if (deleteOnClose && access < 4) return rejected("InvalidInput", { Reason: "delete_on_close needs the right to delete (4)." });
  if (session.length > textMax || client.length > textMax)
    return rejected("InvalidInput", { Reason: `Names have at most ${textMax} characters.` });
  const isLive = await handles.isLive(session, sessionEpoch);
  if (isLive === undefined) return { ok: false, error: busyError("The lock service does not answer. The session may go on: try again.") };
  if (!isLive) {
    const reason = `The lease files/${session} does not have epoch ${sessionEpoch} now: take it at the lock service first.`;
    return rejected("InvalidInput", { Reason: reason });
  }
  const found = await fileAt(parts, request, limits);
  if (!found.ok) return found;
  const { at, name } = found.value;
  const id = (new DataView(world.random.bytes(8).slice().buffer).getBigUint64(0) >> 1n).toString();
  const openedMs = toWire(world.clock.wallMs());
  const handle = { id, session, sessionEpoch, access, share, deleteOnClose, client, openedMs };
  const step = { action: "open", handle, directoryId: at.directory, entryName: at.name };
  const opened = await stepped(parts, name, step, limits);
  return opened.ok ? parsed({ handle: nameOf(request.share, name, id), lengthBytes: opened.value.lengthBytes }) : opened;
}

async function readRange(
  { name, handleId }: Held,
  startBytes: number,
  lengthBytes: number,
  content: ContentExchange,
): Promise<Parsed<{ payload: Uint8Array }>> {
  const { objects, limits } = content;
  const none = parsed({ payload: new Uint8Array(0) });
  if (lengthBytes === 0) return none;
  const ends = { startBytes: toWire(startBytes), endBytes: toWire(startBytes + lengthBytes) };
  const read = await objects.execute({ case: "getBlob", value: { name, conditions: { handleId }, ...ends } }, "content", limits());
  if (!read.ok) return read.error.code === "InvalidRange" ? none : read;
  const blob = read.value.blob as Blob;
  const bytes = await bytesOf(content, name, read.value, endOf(blob, startBytes + lengthBytes));
  return bytes.ok ? parsed({ payload: bytes.value }) : bytes;
}

async function writeRange({ name, handleId }: Held, startBytes: number, payload: Uint8Array, content: ContentExchange) {
  async function* once(): AsyncGenerator<Uint8Array, void> {
    yield payload;
  }
  const options = { contentLengthBytes: payload.length, wants: { md5: false, crc64: false }, isPages: true, from: "grpc" };
  const received = await content.objects.receive(name, once(), options);
  if (!received.ok) return received;
  const { inline, places } = received.value;
  const range = { startBytes, endBytes: startBytes + payload.length };
  const put = await putBytes(content, name, range, { inline, places: [...places] }, { handleId });
  return put.ok ? parsed({}) : put;
}

async function setLength({ name, handleId }: Held, contentLengthBytes: bigint, content: ContentExchange) {
  const value = { name, conditions: { handleId }, contentLengthBytes, sequenceNumber: 0n, setMetadata: contentEntries(content) };
  const limits = content.limits();
  for (;;) {
    const set = await content.objects.execute({ case: "setPageBlobProperties", value }, "cleared", limits);
    if (!set.ok) return set;
    if (set.value.nextBytes === 0n) return parsed({});
  }
}
