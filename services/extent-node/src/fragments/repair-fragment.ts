/** Makes one fragment anew on this node: from its old file where that is still good, else from others, the local group first if the code has one. */
import { type Outcome, ok, refused } from "@stamp/base";
import type { FragmentSpec } from "@stamp/extent";
import { type RepairFragmentRequest, toWire } from "@stamp/wire";
import { repairIo } from "../disk/disk-queue.ts";
import type { Node } from "../node.ts";
import { admitRequest, type CodedDescription, codedOf, type FragmentAt, fragmentsOf, jobName, wantedOf } from "./fragment-requests.ts";
import { FragmentSources, PacedSteps, stripeBytes } from "./fragment-sources.ts";
import { otherThan, type WantedFragment } from "./wanted-fragment.ts";

type Repaired = { readonly bytesRead: bigint };

export async function repairFragment(node: Node, request: RepairFragmentRequest): Promise<Outcome<Repaired>> {
  const coded = codedOf(request.extent);
  const [target] = fragmentsOf(coded, request.target === undefined ? [] : [request.target]);
  const sources = fragmentsOf(coded, request.sources);
  if (target === undefined) return refused("invalidArgument", "badRequest", "no fragment is named");
  const { smTerm, stampId } = request;
  const admitted = await admitRequest(node, { smTerm, stampId, diskId: target.diskId });
  if (!admitted.ok) return admitted;
  return node.fragmentJobs.run(jobName("repair", coded, [target]), () => repair(node, coded, target, sources));
}

/**
 * The answer of an earlier repair may have been lost: then the fragment is here, and it is done. A fragment of the same version may also be left
 * of another history, or damaged. It is refused with `conflict`: the attempt is taken back, and the next one has another version.
 */
async function madeBefore(node: Node, spec: FragmentSpec, wanted: WantedFragment): Promise<Outcome<Repaired> | undefined> {
  const held = node.fragments.find(spec.extentId, spec.version);
  if (held === undefined) return undefined;
  const head = await node.fragments.head(held, repairIo);
  const other = head.ok ? otherThan(head.value, spec) : head.failure.message;
  if (other !== undefined) return refused("aborted", "conflict", other);
  if (held.index !== spec.index)
    return refused("aborted", "conflict", `fragment ${held.index} of extent ${spec.extentId}, version ${spec.version}, is on this node`);
  const verified = await node.fragments.verify(held, repairIo, undefined, wanted);
  if (verified?.kind === "intact") return ok({ bytesRead: 0n });
  return refused("aborted", "conflict", `the fragment that is here can't be taken: ${verified?.why ?? "it was deleted meanwhile"}`);
}

async function repair(node: Node, coded: CodedDescription, target: FragmentAt, given: readonly FragmentAt[]): Promise<Outcome<Repaired>> {
  const { extent } = coded;
  const spec = { ...extent, version: target.version, index: target.index };
  const wanted = wantedOf(coded, target.index);
  const made = await madeBefore(node, spec, wanted);
  if (made !== undefined) return made;
  const full = node.refuseBytes(extent.fragmentBytes);
  if (full !== undefined) return { ok: false, failure: full };
  const sources = new FragmentSources(node, coded, target.index, given);
  const begun = await node.fragments.begin(spec, "");
  if (!begun.ok) return begun;
  const writer = begun.value;
  const steps = new PacedSteps(node);
  for (let at = 0; at < extent.fragmentBytes; at += stripeBytes) {
    const bytes = Math.min(stripeBytes, extent.fragmentBytes - at);
    const done = await steps.step(bytes, async () => {
      const stripe = await sources.bytes(at, bytes);
      return stripe.ok ? writer.append(stripe.value) : stripe;
    });
    if (done.ok) continue;
    await writer.discard();
    return done;
  }
  const finished = await writer.finish(wanted.fragmentChecksum);
  return finished.ok ? ok({ bytesRead: toWire(sources.bytesRead) }) : finished;
}
