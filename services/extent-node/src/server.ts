/** Calls → domain. Until the node is ready, and when its disk is another stamp's, every call is refused. */
import { type Failed, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { type CallContext, causeOf, DiskError, type Handlers } from "@stamp/ports";
import { type ExtentFragments, type ExtentNode, fromWire } from "@stamp/wire";
import { append } from "./append/primary.ts";
import { replicate } from "./append/secondary.ts";
import { checkReplicas } from "./check/check.ts";
import { createExtent, deleteExtent, fenceExtent, sealExtent } from "./control.ts";
import { copyExtent } from "./copy-extent.ts";
import { decodeExtent } from "./fragments/decode-extent.ts";
import { deleteFragment, listFragments, readFragment } from "./fragments/fragment-calls.ts";
import { makeFragments } from "./fragments/make-fragments.ts";
import { repairFragment } from "./fragments/repair-fragment.ts";
import { verifyFragments } from "./fragments/verify-fragments.ts";
import { writeFragment } from "./fragments/write-fragment.ts";
import { type Node, unknownExtent } from "./node.ts";
import { readBlocks, readExtent, readPlaces, readRaw } from "./read/reader.ts";
import { replicaOnWire } from "./replica-wire.ts";
import { getNodeReport } from "./reporter.ts";

const listMax = 1_000;

/** Runs the synchronous part at once, in the order of arrival; a malformed number becomes a refusal. */
function guarded<T>(ready: () => Outcome<Node>, work: (node: Node) => Promise<Outcome<T>>): Promise<Outcome<T>> {
  const node = ready();
  if (!node.ok) return Promise.resolve(node);
  const refusal = (error: unknown): Failed => {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    if (error instanceof DiskError && error.kind === "full") return refused("resourceExhausted", "diskFull", error.message);
    if (error instanceof DiskError) return refused("unavailable", "diskFailed", error.message);
    throw error;
  };
  try {
    return work(node.value).catch(refusal);
  } catch (error) {
    return Promise.resolve(refusal(error));
  }
}

/** Logs the end of a call with the id of the client's request. Returns what it was given. */
function told<T>(
  { world, slow }: Node,
  call: string,
  request: { readonly extentId: bigint },
  context: CallContext,
  done: Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  const sinceMs = world.clock.monotonicMs();
  const ended = (outcome?: Outcome<T>): void => {
    const facts = () => ({
      call,
      requestId: causeOf(context.metadata)?.["request-id"],
      extentId: fromWire(request.extentId),
      outcome: outcome?.ok ? "done" : outcome?.failure.reason,
    });
    slow.ended("a call took long", sinceMs, facts);
    if (context.metadata["request-id"] !== undefined)
      world.logger.debug("call", { ...facts(), tookMs: world.clock.monotonicMs() - sinceMs });
  };
  void done.then(ended, () => ended());
  return done;
}

/** Numbers of a command. GetNodeReport is about no extent. */
interface Command {
  readonly smTerm: bigint;
  readonly extentId?: bigint;
  readonly version?: bigint;
}

/**
 * Does work under a stream manager's term. It begins at once, in the order of arrival, unless the lock service must vouch for the term first, or
 * the stream manager for the version.
 */
function commanded<R extends Command, T>(
  ready: () => Outcome<Node>,
  work: (node: Node, request: R) => Promise<Outcome<T>>,
): (request: R) => Promise<Outcome<T>> {
  const isFarVersion = (node: Node, { extentId, version }: R): boolean =>
    extentId !== undefined && version !== undefined && node.versions.isFar(node.find(fromWire(extentId)), fromWire(version));
  const vouchedWork = async (node: Node, term: number, request: R): Promise<Outcome<T>> => {
    const vouchedTerm = node.isFarTerm(term) ? await node.vouchFor(term) : ok();
    if (!vouchedTerm.ok) return vouchedTerm;
    if (isFarVersion(node, request)) {
      const vouched = await node.versions.vouchFor(fromWire(request.extentId ?? 0n), fromWire(request.version ?? 0n));
      if (!vouched.ok) return vouched;
    }
    const still = ready();
    return still.ok ? work(still.value, request) : still;
  };
  return (request) =>
    guarded(ready, (node) => {
      const term = fromWire(request.smTerm);
      // A stale term is refused first: the refusal says more than that of a version.
      const isFar = node.isFarTerm(term) || (term >= node.smTerm && isFarVersion(node, request));
      return isFar ? vouchedWork(node, term, request) : work(node, request);
    });
}

/** Gives raw content to a node that the record of the extent names. */
async function toHolders<T>(
  node: Node,
  request: { readonly extentId: bigint },
  context: CallContext,
  give: () => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  const may = await node.holders.mayRead(fromWire(request.extentId), context);
  return may.ok ? give() : may;
}

export function extentNodeHandlers(ready: () => Outcome<Node>): Handlers<typeof ExtentNode> {
  return {
    append: (request, context) => guarded(ready, (node) => told(node, "append", request, context, append(node, request, context))),
    replicate: (request, context) => guarded(ready, (node) => told(node, "replicate", request, context, replicate(node, request, context))),
    read: (request, context) => guarded(ready, (node) => told(node, "read", request, context, readExtent(node, request, context))),
    readPlaces: (request, context) =>
      guarded(ready, (node) => told(node, "readPlaces", request, context, readPlaces(node, request, context))),
    readBlocks: (request, context) => guarded(ready, (node) => readBlocks(node, request, context)),
    readRaw: (request, context) => guarded(ready, (node) => toHolders(node, request, context, () => readRaw(node, request, context))),
    createExtent: commanded(ready, createExtent),
    fenceExtent: commanded(ready, fenceExtent),
    sealExtent: commanded(ready, sealExtent),
    copyExtent: commanded(ready, copyExtent),
    deleteExtent: commanded(ready, deleteExtent),
    getNodeReport: commanded(ready, getNodeReport),
    checkReplicas: (request) => guarded(ready, (node) => checkReplicas(node, request)),
    getExtentReplica: (request) =>
      guarded(ready, async (node) => {
        const id = fromWire(request.extentId);
        const extent = node.find(id);
        return extent === undefined ? unknownExtent(id) : ok(replicaOnWire(node, extent));
      }),
    listExtentReplicas: (request) =>
      guarded(ready, async (node) => {
        const after = fromWire(request.afterExtentId);
        const limit = Math.min(listMax, request.limit === 0 ? listMax : request.limit);
        const ids = node.store.extents.idsAfter(after, limit + 1);
        const replicas = ids.slice(0, limit).flatMap((id) => {
          const extent = node.find(id);
          return extent === undefined ? [] : [replicaOnWire(node, extent)];
        });
        return ok({ replicas, more: ids.length > limit });
      }),
  };
}

export function extentFragmentHandlers(ready: () => Outcome<Node>): Handlers<typeof ExtentFragments> {
  const taken = commanded(ready, writeFragment);
  return {
    makeFragments: commanded(ready, makeFragments),
    writeFragment: (request, context) =>
      guarded(ready, async (node) => {
        const { extentId = 0n } = request.extent ?? {};
        const may = await node.holders.mayWrite(fromWire(extentId), fromWire(request.version), context);
        return may.ok ? taken(request) : may;
      }),
    verifyFragments: commanded(ready, verifyFragments),
    repairFragment: commanded(ready, repairFragment),
    decodeExtent: commanded(ready, decodeExtent),
    // Exactly one version is deleted, so no number of it can stand in the way of another command.
    deleteFragment: commanded(ready, deleteFragment),
    readFragment: (request, context) =>
      guarded(ready, (node) => toHolders(node, request, context, () => readFragment(node, request, context))),
    listFragments: (request) => guarded(ready, (node) => listFragments(node, request)),
  };
}
