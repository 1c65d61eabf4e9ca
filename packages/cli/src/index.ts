/**
 * The command line for tests and benchmarks: drills and the clients that check promises. Everything else is a command:
 * `./stamp --help`.
 */

export { type ReservedPorts, reservePorts } from "@stamp/cluster";
export { BlobClient, type BlobResult } from "./drills/blob-client.ts";
export { CheckingClient, contentOf } from "./drills/checking-client.ts";
export { attachCompose } from "./drills/compose/compose-target.ts";
export { damageRoles, runDamageDrill } from "./drills/damage/damage-drill.ts";
export { copyOfAllMetadata } from "./drills/damage/metadata-copies.ts";
export { type Drill, drills } from "./drills/drills.ts";
export type { MovingClients, Pause } from "./drills/histories/moving-clients.ts";
export { runDrill } from "./drills/run-drill.ts";
export { type DrillTarget, startOwn, untilReady } from "./drills/target.ts";
/** The drill whose clients are the real SDKs, which are there in a clone only; loaded only by who asks. */
export const historiesDrill = (): Promise<typeof import("./drills/histories/histories-drill.ts")> =>
  import("./drills/histories/histories-drill.ts");
/** The release before feature levels as programs; needs the repository's history, so only tests ask for it. */
export const releaseBefore = (): Promise<typeof import("./upgrade/release-before.ts")> => import("./upgrade/release-before.ts");
/** Maker of certificates; loaded only when it is asked for. */
export const certificates = (): Promise<typeof import("./certificates/certificates.ts")> => import("./certificates/certificates.ts");
