/** Calls about fragments → domain. */
import { extentId, extentVersion, type Outcome, ok, refused } from "@stamp/base";
import type { FragmentName } from "@stamp/extent";
import type { CallContext } from "@stamp/ports";
import { type DeleteFragmentRequest, fromWire, type ListFragmentsRequest, type ReadFragmentRequest, toWire } from "@stamp/wire";
import { repairIo } from "../disk/disk-queue.ts";
import type { Node } from "../node.ts";
import { admitRequest } from "./fragment-requests.ts";

const readBytesMax = 4 * 1024 * 1024;
const listMax = 1_000;

export async function readFragment(
  node: Node,
  request: ReadFragmentRequest,
  context: CallContext,
): Promise<Outcome<{ payload: Uint8Array; payloadChecksum: number }>> {
  const { index, lengthBytes, background, profile, sealedLengthBytes, checksum, fragmentChecksum, creation } = request;
  if (lengthBytes === 0 || lengthBytes > readBytesMax) return refused("invalidArgument", "badRequest", `a read of ${lengthBytes} bytes`);
  const arrivedMs = node.world.clock.monotonicMs();
  const io = { class: background ? repairIo.class : ("read" as const), deadlineMs: context.deadlineMs, caller: context };
  const name = { extentId: extentId(fromWire(request.extentId)), version: extentVersion(fromWire(request.version)), index };
  const wanted = {
    ...(profile === "" ? {} : { profile }),
    ...(sealedLengthBytes === 0n ? {} : { sealedLengthBytes: fromWire(sealedLengthBytes) }),
    ...(checksum === undefined ? {} : { contentChecksum: checksum }),
    ...(creation === undefined ? {} : { creation: fromWire(creation) }),
    ...(checksum === undefined || fragmentChecksum === undefined ? {} : { fragmentChecksum }),
  };
  const bytes = await node.fragments.read(name, fromWire(request.offsetBytes), lengthBytes, io, wanted);
  if (!background) node.took.read.since(arrivedMs);
  return bytes.ok ? ok({ payload: bytes.value, payloadChecksum: node.world.digest.crc32c(bytes.value) }) : bytes;
}

export async function deleteFragment(node: Node, request: DeleteFragmentRequest): Promise<Outcome<Record<string, never>>> {
  const { smTerm, diskId } = request;
  const id = extentId(fromWire(request.extentId));
  const version = fromWire(request.fragmentVersion);
  const admitted = await admitRequest(node, { smTerm, diskId });
  if (!admitted.ok) return admitted;
  const { creation } = request;
  await node.fragments.remove(id, version, creation === undefined ? undefined : fromWire(creation));
  return ok({});
}

export async function listFragments(node: Node, request: ListFragmentsRequest) {
  const limit = Math.min(listMax, request.limit === 0 ? listMax : request.limit);
  const ids = node.fragments.idsAfter(fromWire(request.afterExtentId), limit + 1);
  const names = ids.slice(0, limit).flatMap((id) => node.fragments.of(id));
  const fragments = [];
  for (const name of names) {
    const head = request.withHeads ? await headOf(node, name) : undefined;
    // After the head is read: a head that is damaged is found only then.
    const damage = node.fragments.damageOf(name);
    const known = { damage: damage?.why ?? "", chunksReadable: damage?.chunksReadable ?? true };
    fragments.push({ extentId: toWire(name.extentId), version: toWire(name.version), index: name.index, ...known, ...head });
  }
  return ok({ fragments, more: ids.length > limit }) satisfies Outcome<unknown>;
}

/** Returns facts of a fragment's head; undefined if it can't be read. */
async function headOf(node: Node, name: FragmentName) {
  const head = await node.fragments.head(name, repairIo);
  if (!head.ok) return undefined;
  const { profile, sealedLengthBytes, contentChecksum } = head.value;
  return { profile, sealedLengthBytes: toWire(sealedLengthBytes), checksum: contentChecksum };
}
