/** Takes the pieces of a fragment from the node that makes it. Pieces come in order and from one maker; the first one begins the fragment anew. */
import { extentVersion, type Outcome, ok, refused } from "@stamp/base";
import { fromWire, type WriteFragmentRequest } from "@stamp/wire";
import type { Node } from "../node.ts";
import { admitRequest, codedOf } from "./fragment-requests.ts";
import type { FragmentWriter } from "./fragment-writer.ts";

const pieceBytesMax = 1024 * 1024;

export async function writeFragment(node: Node, request: WriteFragmentRequest): Promise<Outcome<Record<string, never>>> {
  const { extent, profile } = codedOf(request.extent);
  const { index, payload, maker, payloadChecksum } = request;
  const spec = { ...extent, version: extentVersion(fromWire(request.version)), index };
  const at = fromWire(request.offsetBytes);
  if (index >= profile.fragments || payload.length > pieceBytesMax)
    return refused("invalidArgument", "badRequest", `${payload.length} bytes of fragment ${index} of ${profile.name}`);
  const admitted = await admitRequest(node, request);
  if (!admitted.ok) return admitted;
  if (node.world.digest.crc32c(payload) !== payloadChecksum)
    return refused("dataLoss", "damaged", `a piece of fragment ${index} of extent ${spec.extentId} is not what was sent`);
  let writer: FragmentWriter | undefined;
  if (at === 0) {
    const full = node.refuseBytes(spec.fragmentBytes);
    if (full !== undefined) return { ok: false, failure: full };
    const begun = await node.fragments.begin(spec, maker);
    if (!begun.ok) return begun;
    writer = begun.value;
  } else writer = node.fragments.making(spec);
  if (writer === undefined || writer.maker !== maker || writer.nextBytes !== at)
    return refused("aborted", "conflict", `no piece at ${at} of fragment ${index} of extent ${spec.extentId} is waited for from ${maker}`);
  const taken = await writer.append(payload);
  if (!taken.ok) return taken;
  if (!request.last) return ok({});
  const finished = await writer.finish();
  return finished.ok ? ok({}) : finished;
}
