/**
 * Erasure codes of sealed extents. `profileOf` names a code, `encodePlan` and `repairPlan` say which fragments are
 * computed from which, and a `Kernel` computes them. The caller reads sources into the kernel's lanes, keeps the order
 * of fragments, verifies checksums before and after, and repairs only the bytes it needs. Pure: no file, no clock.
 */
export { Kernel, laneUnit } from "./kernel.ts";
export { type CodingPlan, decodable, encodePlan, repairPlan } from "./plan.ts";
export { type Profile, type ProfileName, profileNames, profileOf } from "./profile.ts";
