/** Makes one fragment anew on this node, from others: the local group first, where the code has one. */
import { type Outcome, ok, refused } from "@stamp/base";
import { type RepairFragmentRequest, toWire } from "@stamp/wire";
import type { Node } from "../node.ts";
import { admit, type Coded, codedOf, type FragmentAt, fragmentsOf } from "./fragment-requests.ts";
import { FragmentSources, PacedSteps, stripeBytes } from "./fragment-sources.ts";

type Repaired = { readonly bytesRead: bigint };

export async function repairFragment(node: Node, request: RepairFragmentRequest): Promise<Outcome<Repaired>> {
  const coded = codedOf(request.extent);
  const [target] = fragmentsOf(coded, request.target === undefined ? [] : [request.target]);
  const sources = fragmentsOf(coded, request.sources);
  if (target === undefined) return refused("invalidArgument", "badRequest", "no fragment is named");
  const { smTerm, stampId } = request;
  const admitted = await admit(node, { smTerm, stampId, diskId: target.diskId });
  if (!admitted.ok) return admitted;
  const { extentId: id, fragmentBytes } = coded.extent;
  // The answer of an earlier repair was lost: it is done.
  if (node.fragments.find(id, target.version)?.index === target.index) return ok({ bytesRead: 0n });
  const full = node.refuseBytes(fragmentBytes);
  if (full !== undefined) return { ok: false, failure: full };
  return node.fragmentJobs.run(`repair ${id} ${target.version} ${target.index}`, () => repair(node, coded, target, sources));
}

async function repair(
  node: Node,
  { extent, profile }: Coded,
  target: FragmentAt,
  given: readonly FragmentAt[],
): Promise<Outcome<Repaired>> {
  const sources = new FragmentSources(node, extent.extentId, profile, [target.index], given);
  const begun = await node.fragments.begin({ ...extent, version: target.version, index: target.index }, "");
  if (!begun.ok) return begun;
  const writer = begun.value;
  const steps = new PacedSteps(node);
  for (let at = 0; at < extent.fragmentBytes; at += stripeBytes) {
    const bytes = Math.min(stripeBytes, extent.fragmentBytes - at);
    const done = await steps.step(bytes, async () => {
      const computed = await sources.compute(at, bytes);
      // A copy: the lane is used again while the disk may still hold these bytes.
      return computed.ok ? writer.append((computed.value[0] as Uint8Array).slice()) : computed;
    });
    if (done.ok) continue;
    await writer.discard();
    return done;
  }
  const finished = await writer.finish();
  return finished.ok ? ok({ bytesRead: toWire(sources.bytesRead) }) : finished;
}
