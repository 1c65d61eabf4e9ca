/**
 * Protecting something in a container, and deleting the container: the two meet at the container's row (docs/design/model/protect.pml).
 *
 *   protect:  mark the row | the operation, in the blob's range | mark the row again: it is there still, and a deletion that began meanwhile
 *             has to begin anew | answer
 *   delete:   delete, if nothing was ever marked; else begin, in the row | look at every state of every blob | delete, if what began stands
 *
 * Invariants: no policy or hold that was acknowledged stands in a container when it is deleted, nor any that stood when the request to
 * delete it arrived; none is acknowledged in a container that is gone. A hold whose request failed half-way may stand; it is found and
 * counts, unless its container was being deleted at the same time.
 */
import { type Parsed, parsed, restError, restErrorOfService } from "@stamp/azure-rest";
import type { Outcome } from "@stamp/base";
import type { CallLimits, OperationKind, ResultKind } from "../routing/router.ts";
import { restErrorOf } from "./failures.ts";
import type { LocatedBlob, Objects } from "./objects.ts";

/** Number of times that a deletion begins anew because something was protected; then the client may try again. */
const deletionTriesMax = 4;

interface NewState {
  readonly legalHold?: boolean;
  readonly immutableUntilMs?: bigint;
}

const protects = (state: NewState | undefined): boolean => state?.legalHold === true || state?.immutableUntilMs !== undefined;

/** Returns the blob that this operation protects; undefined if it protects none. */
function protectedBy(kind: OperationKind): LocatedBlob | undefined {
  switch (kind.case) {
    case "putBlob":
    case "putBlockList":
    case "startCopy":
      return protects(kind.value.state as NewState | undefined) ? (kind.value.name as LocatedBlob) : undefined;
    case "setImmutabilityPolicy":
      return kind.value.name as LocatedBlob;
    case "setLegalHold":
      return kind.value.hold ? (kind.value.name as LocatedBlob) : undefined;
    default:
      return undefined;
  }
}

/** Executes an operation. If it protects something, the container's row says so before it happens and before it is answered. */
export async function executeProtecting(objects: Objects, kind: OperationKind, limits: CallLimits): Promise<Outcome<ResultKind>> {
  const { router, world } = objects.parts;
  const name = protectedBy(kind);
  if (name === undefined) return router.execute(kind, limits);
  const { account, container, containerIncarnation: incarnation } = name;
  const mark: OperationKind = { case: "markProtected", value: { account, container, incarnation } };
  const marked = await router.execute(mark, limits);
  if (!marked.ok || marked.value.case === "error") return marked;
  const answered = await router.execute(kind, limits);
  if (!answered.ok || answered.value.case === "error" || !world.rules.on("protectionConfirmed")) return answered;
  const confirmed = await router.execute(mark, limits);
  // The operation has happened: what is not known of the container is not known of the whole.
  if (!confirmed.ok) return { ok: false, failure: { ...confirmed.failure, applied: "unknown" } };
  return confirmed.value.case === "error" ? confirmed : answered;
}

type DeleteContainer = Extract<OperationKind, { case: "deleteContainer" }>["value"];
export interface ContainerDeletion {
  readonly account: string;
  readonly container: string;
  readonly conditions?: NonNullable<DeleteContainer["conditions"]>;
}

export async function deleteContainer(objects: Objects, asked: ContainerDeletion, limits: () => CallLimits): Promise<Parsed<undefined>> {
  for (let tries = 0, begun = 0n; tries < deletionTriesMax; tries++) {
    const deleted = await objects.parts.router.execute({ case: "deleteContainer", value: { ...asked, begun } }, limits());
    if (!deleted.ok) return { ok: false, error: restErrorOf(deleted.failure) };
    const { value: result } = deleted;
    if (result.case !== "error") return parsed(undefined);
    const { code, message, details } = result.value;
    if (code !== "ServerBusy") return { ok: false, error: restErrorOfService(code, message, details) };
    const looked = await lookThrough(objects, asked, limits);
    if (!looked.ok) return looked;
    begun = looked.value;
  }
  return { ok: false, error: restError("ServerBusy", {}, { message: "Blobs of the container are being protected: try again later." }) };
}

/** Begins a deletion, if nothing inside is protected. */
async function lookThrough(objects: Objects, asked: ContainerDeletion, limits: () => CallLimits): Promise<Parsed<bigint>> {
  const { account, container: name } = asked;
  const row = await objects.container(account, name, limits());
  if (!row.ok) return row;
  const { value: container } = row;
  const value = { account, container: name, incarnation: container.incarnation };
  const begun = await objects.execute({ case: "beginDeletion", value }, "container", limits());
  if (!begun.ok) return begun;
  const question = { prefix: "", delimiter: "", marker: "", maxResults: 1, includeMetadata: false, includeUncommitted: false };
  for (let marker = ""; ; ) {
    const page = await objects.listBlobs(account, container, { ...question, marker, onlyProtected: true }, limits());
    if (!page.ok) return page;
    const [found] = page.value.entries;
    if (found?.kind.case === "blob") {
      return { ok: false, error: restError(found.kind.value.legalHold ? "BlobImmutableDueToLegalHold" : "BlobImmutableDueToPolicy") };
    }
    if (page.value.nextMarker === "") return parsed(begun.value.deletionBegun);
    marker = page.value.nextMarker;
  }
}
