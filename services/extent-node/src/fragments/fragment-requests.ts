/**
 * Shared by the calls about fragments: numbers are checked, and names of codes become codes, before anything is done.
 */
import { extentId, extentVersion, FailureError, type Outcome } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { type FragmentSpec, fragmentBytesMax, fragmentBytesOf } from "@stamp/extent";
import { type CodedExtent, type FragmentNode, fromWire } from "@stamp/wire";
import type { Node } from "../node.ts";

/** A coded extent, as a request names it. */
export interface Coded {
  readonly extent: Omit<FragmentSpec, "index" | "version">;
  readonly profile: Profile;
}

/** A fragment on a node. */
export interface FragmentAt {
  readonly index: number;
  readonly version: ReturnType<typeof extentVersion>;
  readonly address: string;
  readonly diskId: string;
}

function malformed(message: string): never {
  throw new FailureError({ code: "invalidArgument", reason: "badRequest", message, applied: "no" });
}

/** Throws FailureError `badRequest` for what no fragments can be made of. */
export function codedOf(request: CodedExtent | undefined): Coded {
  if (request === undefined) malformed("no extent is named");
  const profile = profileOf(request.profile) ?? malformed(`there is no code ${request.profile}`);
  const id = fromWire(request.extentId);
  const sealedLengthBytes = fromWire(request.sealedLengthBytes);
  if (id === 0 || sealedLengthBytes === 0) malformed(`extent ${id} of ${sealedLengthBytes} bytes is not cut into fragments`);
  const fragmentBytes = fragmentBytesOf(sealedLengthBytes, profile.data);
  if (fragmentBytes > fragmentBytesMax) malformed(`fragments of ${fragmentBytes} bytes are too large`);
  return {
    extent: { extentId: extentId(id), profile: profile.name, sealedLengthBytes, fragmentBytes, contentChecksum: request.checksum },
    profile,
  };
}

/** Throws FailureError `badRequest` for a fragment that the code does not have, or that is named twice. */
export function fragmentsOf({ profile }: Coded, nodes: readonly FragmentNode[]): FragmentAt[] {
  const seen = new Set<number>();
  return nodes.map(({ index, version, address, diskId }) => {
    if (index >= profile.fragments || seen.has(index)) malformed(`fragment ${index} of ${profile.name}`);
    seen.add(index);
    return { index, version: extentVersion(fromWire(version)), address, diskId };
  });
}

/** The request is for this stamp and this disk, under a term that is obeyed; a raised term is durable when this resolves. */
export async function admit(
  node: Node,
  request: { readonly smTerm: bigint; readonly stampId?: string; readonly diskId?: string },
): Promise<Outcome<void>> {
  if (request.stampId !== undefined && request.stampId !== node.identity.stampId) {
    const message = `this disk belongs to stamp ${node.identity.stampId}, not to ${request.stampId}`;
    return { ok: false, failure: { code: "failedPrecondition", reason: "wrongStamp", message, applied: "no" } };
  }
  const other = request.diskId === undefined ? undefined : node.otherDisk(request.diskId);
  if (other !== undefined) return other;
  const obeyed = node.obey(fromWire(request.smTerm));
  if (!obeyed.ok) return obeyed;
  await obeyed.value;
  return { ok: true, value: undefined };
}

/** Returns a text that is the same for the same work only: its kind, the extent, the code, and each fragment with its version and place. */
export function jobName(kind: "make" | "verify" | "repair", { extent }: Coded, fragments: readonly FragmentAt[]): string {
  const { extentId: id, profile, sealedLengthBytes, contentChecksum } = extent;
  return JSON.stringify([kind, id, profile, sealedLengthBytes, contentChecksum, fragments]);
}

/** Work on the fragments of one attempt, once at a time: who asks again gets the same answer. */
export class FragmentJobs {
  readonly #running = new Map<string, Promise<Outcome<unknown>>>();

  run<T>(name: string, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const running = this.#running.get(name);
    if (running !== undefined) return running as Promise<Outcome<T>>;
    const job = work().finally(() => this.#running.delete(name));
    this.#running.set(name, job);
    return job;
  }
}
