/**
 * Reads everything that an attempt at coding has stored, before its replicas may go. The data fragments must have the extent's checksum, and the
 * coding fragments must be what the data fragments give: so any set of fragments that the code can decode gives the extent back. A person who takes
 * fragments back has only some of them: data fragments that are missing are then computed from the others first. The answer has the checksum of each
 * fragment, which is recorded with the extent: every later repair is compared with it.
 */
import { equalBytes, type Outcome, ok, refused } from "@stamp/base";
import { type CodingPlan, encodePlan, Kernel, repairPlan } from "@stamp/erasure";
import { isContentOf } from "@stamp/extent";
import type { VerifyFragmentsRequest } from "@stamp/wire";
import type { Node } from "../node.ts";
import { admitRequest, type CodedDescription, codedOf, type FragmentAt, fragmentsOf, jobName } from "./fragment-requests.ts";
import { PacedSteps, readFragmentAt, stripeBytes } from "./fragment-sources.ts";

type Verified = { readonly fragmentChecksums: number[] };

export async function verifyFragments(node: Node, request: VerifyFragmentsRequest): Promise<Outcome<Verified>> {
  const coded = codedOf(request.extent);
  const fragments = fragmentsOf(coded, request.fragments);
  const { profile } = coded;
  if (fragments.length !== profile.fragments && !request.partial)
    return refused("invalidArgument", "badRequest", `${profile.name} has ${profile.fragments} fragments, not ${fragments.length}`);
  const given = fragments.map(({ index }) => index);
  const missing = Array.from({ length: profile.data }, (_, index) => index).filter((index) => !given.includes(index));
  const lost = repairPlan(profile, missing, given);
  if (lost === undefined)
    return refused("invalidArgument", "badRequest", `${fragments.length} fragments do not determine an extent of ${profile.name}`);
  const admitted = await admitRequest(node, { smTerm: request.smTerm });
  if (!admitted.ok) return admitted;
  return node.fragmentJobs.run(jobName("verify", coded, fragments), () => verify(node, coded, fragments, lost));
}

/** Verifies fragments; `lost`: plan that computes the data fragments which are not among them. */
async function verify(node: Node, coded: CodedDescription, fragments: readonly FragmentAt[], lost: CodingPlan): Promise<Outcome<Verified>> {
  const { profile, extent } = coded;
  const { extentId: id, fragmentBytes } = extent;
  const { crc32c } = node.world.digest;
  // Stored fragments in the first lanes, computed ones behind.
  const kernel = new Kernel(2 * profile.fragments - profile.data, stripeBytes);
  const plan = encodePlan(profile);
  const computedLane = (index: number): number => (index < profile.data ? index : profile.fragments + index - profile.data);
  const checksums = new Array<number>(profile.fragments).fill(0);

  const stripe = async (at: number, bytes: number): Promise<Outcome<void>> => {
    const read = await Promise.all(fragments.map((fragment) => readFragmentAt(node, coded, fragment, at, bytes)));
    for (const [i, each] of read.entries()) {
      if (!each.ok) return each;
      kernel.lane((fragments[i] as FragmentAt).index).set(each.value);
    }
    if (lost.outputs.length > 0) kernel.run(lost, (index) => index, bytes);
    kernel.run(plan, computedLane, bytes);
    for (let index = 0; index < profile.fragments; index++)
      checksums[index] = crc32c(kernel.lane(computedLane(index)).subarray(0, bytes), checksums[index]);
    for (const { index } of fragments) {
      if (index < profile.data) continue;
      const [stored, computed] = [kernel.lane(index), kernel.lane(computedLane(index))];
      if (!equalBytes(stored.subarray(0, bytes), computed.subarray(0, bytes)))
        return refused("dataLoss", "damaged", `fragment ${index} of extent ${id} is not what the data fragments give, at ${at}`);
    }
    return ok();
  };

  const steps = new PacedSteps(node);
  for (let at = 0; at < fragmentBytes; at += stripeBytes) {
    const bytes = Math.min(stripeBytes, fragmentBytes - at);
    const done = await steps.step(bytes * profile.fragments, () => stripe(at, bytes));
    if (!done.ok) return done;
  }
  if (isContentOf(crc32c, extent, checksums.slice(0, profile.data))) return ok({ fragmentChecksums: checksums });
  return refused("dataLoss", "damaged", `the fragments of extent ${id} do not have its recorded checksum ${extent.contentChecksum}`);
}
