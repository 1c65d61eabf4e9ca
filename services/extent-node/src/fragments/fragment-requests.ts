/**
 * Shared by the calls about fragments: numbers are checked, and names of codes become codes, before anything is done.
 */
import { extentId, extentVersion, type Failed, FailureError, JoinedWork, type Outcome } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { type FragmentSpec, fragmentBytesMax, fragmentBytesOf } from "@stamp/extent";
import { type CodedExtent, type FragmentNode, fromWire } from "@stamp/wire";
import type { WantedFragment } from "./wanted-fragment.ts";

/** Coded extent, as a request describes it. */
export interface CodedDescription {
  readonly extent: Omit<FragmentSpec, "index" | "version">;
  readonly profile: Profile;
  /** crc32c of the content of each fragment, by index, as recorded when the extent was coded; empty: they are not recorded. */
  readonly checksums: readonly number[];
}

/** Returns what the fragment of this index has to be: code, length and checksum of the extent, and the recorded checksum of its own content. */
export function wantedOf({ extent, checksums }: CodedDescription, index: number): WantedFragment {
  const { profile, sealedLengthBytes, contentChecksum, creation = 0 } = extent;
  const fragmentChecksum = checksums[index];
  return { profile, sealedLengthBytes, contentChecksum, creation, ...(fragmentChecksum === undefined ? {} : { fragmentChecksum }) };
}

/** Fragment and the node that holds it. */
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
export function codedOf(request: CodedExtent | undefined): CodedDescription {
  if (request === undefined) malformed("no extent is named");
  const profile = profileOf(request.profile) ?? malformed(`there is no code ${request.profile}`);
  const id = fromWire(request.extentId);
  const sealedLengthBytes = fromWire(request.sealedLengthBytes);
  if (id === 0 || sealedLengthBytes === 0) malformed(`extent ${id} of ${sealedLengthBytes} bytes is not cut into fragments`);
  const fragmentBytes = fragmentBytesOf(sealedLengthBytes, profile.data);
  const checksums = request.fragmentChecksums;
  if (checksums.length > 0 && checksums.length !== profile.fragments)
    malformed(`${checksums.length} checksums of ${profile.fragments} fragments`);
  if (fragmentBytes > fragmentBytesMax) malformed(`fragments of ${fragmentBytes} bytes are too large`);
  const creation = fromWire(request.creation);
  return {
    extent: {
      extentId: extentId(id),
      profile: profile.name,
      sealedLengthBytes,
      fragmentBytes,
      contentChecksum: request.checksum,
      ...(creation === 0 ? {} : { creation }),
    },
    profile,
    checksums,
  };
}

/** Throws FailureError `badRequest` for a fragment that the code does not have, or that is named twice. */
export function fragmentsOf({ profile }: CodedDescription, nodes: readonly FragmentNode[]): FragmentAt[] {
  const seen = new Set<number>();
  return nodes.map(({ index, version, address, diskId }) => {
    if (index >= profile.fragments || seen.has(index)) malformed(`fragment ${index} of ${profile.name}`);
    seen.add(index);
    return { index, version: extentVersion(fromWire(version)), address, diskId };
  });
}

/** Parts of a node that admit a request for fragments. */
interface Admitting {
  readonly identity: { readonly stampId: string };
  /** Returns the refusal of a command for another disk than this node's. */
  otherDisk(diskId: string): Failed | undefined;
  /** Obeys a term; the returned promise ends when the term is durable. */
  obey(term: number): Outcome<Promise<void>>;
}

/** Admits a request for this stamp and disk, under an obeyed term. Resolves when a raised term is durable. */
export async function admitRequest(
  node: Admitting,
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
export function jobName(
  kind: "make" | "verify" | "repair",
  { checksums, extent }: CodedDescription,
  fragments: readonly FragmentAt[],
): string {
  const { extentId: id, profile, sealedLengthBytes, contentChecksum, creation } = extent;
  return JSON.stringify([kind, id, creation, profile, sealedLengthBytes, contentChecksum, checksums, fragments]);
}

/** Work on the fragments of one attempt, once at a time: who asks again gets the same answer. */
export class FragmentJobs {
  readonly #running = new JoinedWork<string, Outcome<unknown>>();

  run<T>(name: string, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    return this.#running.run(name, work) as Promise<Outcome<T>>;
  }
}
