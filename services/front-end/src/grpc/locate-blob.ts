/**
 * Where the bytes of a blob lie (`FrontEnd.LocateBlob`): its content as a read finds it, in pieces of one extent each. An operator of the stamp
 * asks; no byte of the content is told, so no token of the account is needed.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Parsed, parsed } from "@stamp/azure-rest";
import { FailureError, ok } from "@stamp/base";
import { zeroExtentId } from "@stamp/objects";
import { type BlobContent, type LocateBlobResponseSchema, toWire } from "@stamp/wire";
import { answeredCase } from "../objects/answered.ts";
import type { LocatedBlob, Objects } from "../objects/objects.ts";
import type { CallLimits } from "../routing/router.ts";

type In =
  | { readonly case: "extentId"; readonly value: bigint }
  | { readonly case: "row"; readonly value: true }
  | { readonly case: "zeros"; readonly value: true };

interface Piece {
  readonly startBytes: bigint;
  lengthBytes: bigint;
  readonly in: In;
}

/** `name`: of the blob, with the incarnation of its container. */
export async function locateBlob(
  objects: Objects,
  name: LocatedBlob,
  startBytes: bigint,
  limits: CallLimits,
): Promise<Parsed<MessageInitShape<typeof LocateBlobResponseSchema>>> {
  const { router } = objects.parts;
  const kind = { case: "getBlob", value: { name, ...(startBytes > 0n && { startBytes }) } } as const;
  const answer = await router.executeAt(router.routeOf(kind), kind, limits);
  const content = answeredCase(answer.ok ? ok(answer.value.result) : answer, "content");
  if (!content.ok) return content;
  const { blob } = content.value;
  if (!answer.ok || blob === undefined) {
    throw new FailureError({ code: "internal", reason: "bug", message: "content without its blob", applied: "no" });
  }
  const pieces = piecesOf(content.value);
  const next = pieces.reduce((at, { lengthBytes }) => at + lengthBytes, content.value.startBytes);
  const isWhole = next >= blob.contentLengthBytes;
  return parsed({ pieces, rangeId: answer.value.range.rangeId, ...(!isWhole && { nextBytes: next }) });
}

/** Joins places that follow one another in one extent. */
function piecesOf({ startBytes, lengthBytes, inline, places }: BlobContent): Piece[] {
  if (inline.length > 0) return [{ startBytes, lengthBytes, in: { case: "row", value: true } }];
  const pieces: Piece[] = [];
  let at = startBytes;
  for (const { extentId, lengthBytes: length } of places) {
    const last = pieces.at(-1);
    const where: In = extentId === toWire(zeroExtentId) ? { case: "zeros", value: true } : { case: "extentId", value: extentId };
    if (last?.in.case === where.case && last.in.value === where.value) last.lengthBytes += toWire(length);
    else pieces.push({ startBytes: at, lengthBytes: toWire(length), in: where });
    at += toWire(length);
  }
  return pieces;
}
