/** Makes a replica on this node of the fragments of a coded extent: data fragments are read, lost ones computed from the others. */
import { create } from "@bufbuild/protobuf";
import { concatBytes, type Outcome, ok, refused } from "@stamp/base";
import { type Kernel, laneUnit } from "@stamp/erasure";
import { CopyExtentRequestSchema, type DecodeExtentRequest } from "@stamp/wire";
import { copyExtent } from "../copy-extent.ts";
import type { Node } from "../node.ts";
import type { RawSource } from "../repair/copier.ts";
import { type CodedDescription, codedOf, type FragmentAt, fragmentsOf } from "./fragment-requests.ts";
import { FragmentSources, kernelOnce, stripeBytes } from "./fragment-sources.ts";

/** Makes a replica from fragments, like `CopyExtent`: it has the extent's checksum, or is not made. */
export async function decodeExtent(node: Node, request: DecodeExtentRequest): Promise<Outcome<{ checksum: number }>> {
  const coded = codedOf(request.extent);
  const fragments = fragmentsOf(coded, request.fragments);
  const { extentId, contentChecksum } = coded.extent;
  if (request.extentId !== request.extent?.extentId)
    return refused("invalidArgument", "badRequest", `the command is for extent ${request.extentId}, its content is that of ${extentId}`);
  const { smTerm, version, ownerEpoch, diskId, stampId, extent, stream } = request;
  const { creation, sealedLengthBytes } = extent;
  const copy = {
    smTerm,
    extentId: request.extentId,
    sealedLengthBytes,
    version,
    ownerEpoch,
    diskId,
    stampId,
    sources: [],
    creation,
    stream,
  };
  const source = new FragmentContent(node, coded, fragments);
  return copyExtent(node, create(CopyExtentRequestSchema, { ...copy, checksum: contentChecksum }), source);
}

/** Content of an extent, read from its fragments. */
export class FragmentContent implements RawSource {
  readonly name: string;
  readonly #node: Node;
  readonly #coded: CodedDescription;
  readonly #fragments: readonly FragmentAt[];
  readonly #kernel: () => Kernel;
  /** Keyed by index of a data fragment. */
  readonly #sources = new Map<number, FragmentSources>();

  constructor(node: Node, coded: CodedDescription, fragments: readonly FragmentAt[]) {
    this.#node = node;
    this.#coded = coded;
    this.name = `its fragments of ${coded.profile.name}`;
    this.#fragments = fragments;
    this.#kernel = kernelOnce(coded);
  }

  async read(offsetBytes: number, lengthBytes: number): Promise<Outcome<Uint8Array>> {
    const { fragmentBytes } = this.#coded.extent;
    const pieces: Uint8Array[] = [];
    for (let at = offsetBytes; at < offsetBytes + lengthBytes; ) {
      const index = Math.floor(at / fragmentBytes);
      const from = at - index * fragmentBytes;
      const length = Math.min(offsetBytes + lengthBytes - at, fragmentBytes - from, stripeBytes - (from % stripeBytes));
      const piece = await this.#piece(index, from, length);
      if (!piece.ok) return piece;
      pieces.push(piece.value);
      at += length;
    }
    return ok(concatBytes(pieces));
  }

  /** Returns the bytes that lie in one stripe. */
  async #piece(index: number, from: number, length: number): Promise<Outcome<Uint8Array>> {
    const sources = this.#sources.get(index) ?? new FragmentSources(this.#node, this.#coded, index, this.#fragments, this.#kernel);
    this.#sources.set(index, sources);
    const begin = Math.floor(from / laneUnit) * laneUnit;
    const end = Math.ceil((from + length) / laneUnit) * laneUnit;
    const bytes = await sources.bytes(begin, end - begin);
    return bytes.ok ? ok(bytes.value.subarray(from - begin, from - begin + length)) : bytes;
  }
}
