/** Makes a replica on this node of the fragments of a coded extent: data fragments are read, lost ones computed from the others. */
import { create } from "@bufbuild/protobuf";
import { concatBytes, type ExtentId, type Outcome, ok, refused } from "@stamp/base";
import type { Profile } from "@stamp/erasure";
import { CopyExtentRequestSchema, type DecodeExtentRequest } from "@stamp/wire";
import { copyExtent } from "../control.ts";
import type { Node } from "../node.ts";
import type { RawSource } from "../repair/copier.ts";
import { codedOf, type FragmentAt, fragmentsOf } from "./fragment-requests.ts";
import { FragmentSources, readFragmentAt, stripeBytes } from "./fragment-sources.ts";

/** Like `CopyExtent`, with fragments as sources: the replica has the extent's checksum, or it is not made. */
export async function decodeExtent(node: Node, request: DecodeExtentRequest): Promise<Outcome<{ checksum: number }>> {
  const coded = codedOf(request.extent);
  const fragments = fragmentsOf(coded, request.fragments);
  const { extentId, fragmentBytes, contentChecksum } = coded.extent;
  if (request.extentId !== request.extent?.extentId)
    return refused("invalidArgument", "badRequest", `the command is for extent ${request.extentId}, its content is that of ${extentId}`);
  const { smTerm, version, ownerEpoch, diskId, stampId, extent } = request;
  const { sealedLengthBytes } = extent;
  const copy = { smTerm, extentId: request.extentId, sealedLengthBytes, version, ownerEpoch, diskId, stampId, sources: [] };
  const source = new FragmentContent(node, extentId, coded.profile, fragmentBytes, fragments);
  return copyExtent(node, create(CopyExtentRequestSchema, { ...copy, checksum: contentChecksum }), source);
}

/** The content of an extent, read from its fragments. */
export class FragmentContent implements RawSource {
  readonly name = "its fragments";
  readonly #node: Node;
  readonly #extentId: ExtentId;
  readonly #profile: Profile;
  readonly #fragmentBytes: number;
  readonly #fragments: readonly FragmentAt[];
  /** By index of a data fragment that could not be read. */
  readonly #computed = new Map<number, FragmentSources>();

  constructor(node: Node, extentId: ExtentId, profile: Profile, fragmentBytes: number, fragments: readonly FragmentAt[]) {
    this.#node = node;
    this.#extentId = extentId;
    this.#profile = profile;
    this.#fragmentBytes = fragmentBytes;
    this.#fragments = fragments;
  }

  async read(offsetBytes: number, lengthBytes: number): Promise<Outcome<Uint8Array>> {
    const pieces: Uint8Array[] = [];
    for (let at = offsetBytes; at < offsetBytes + lengthBytes; ) {
      const index = Math.floor(at / this.#fragmentBytes);
      const from = at - index * this.#fragmentBytes;
      const length = Math.min(offsetBytes + lengthBytes - at, this.#fragmentBytes - from, stripeBytes - (from % stripeBytes));
      const piece = await this.#piece(index, from, length);
      if (!piece.ok) return piece;
      pieces.push(piece.value);
      at += length;
    }
    return ok(concatBytes(pieces));
  }

  /** Bytes that lie in one stripe. */
  async #piece(index: number, from: number, length: number): Promise<Outcome<Uint8Array>> {
    const fragment = this.#fragments.find((each) => each.index === index);
    if (fragment !== undefined && !this.#computed.has(index)) {
      const read = await readFragmentAt(this.#node, this.#extentId, fragment, from, length);
      if (read.ok) return read;
    }
    const others = this.#fragments.filter((each) => each.index !== index);
    const sources = this.#computed.get(index) ?? new FragmentSources(this.#node, this.#extentId, this.#profile, [index], others);
    this.#computed.set(index, sources);
    const begin = Math.floor(from / stripeBytes) * stripeBytes;
    const stripe = await sources.compute(begin, Math.min(stripeBytes, this.#fragmentBytes - begin));
    if (!stripe.ok) return stripe;
    const [bytes] = stripe.value;
    if (bytes === undefined) return refused("internal", "outOfRange", `fragment ${index} of extent ${this.#extentId} was not computed`);
    return ok(bytes.slice(from - begin, from - begin + length));
  }
}
