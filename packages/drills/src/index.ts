/**
 * Drills: a cluster is broken on purpose, while clients write and check what they were promised. Start at `startOwn`, a
 * cluster in a temporary folder, or `attach` and `attachCompose`, one that runs; `runDrill` runs one of `drills` on it.
 * Tests and benchmarks use the clusters and the clients alone. The caller owes: `close()` of each target and client.
 */
export { BlobClient, type BlobResult } from "./blob-client.ts";
export { CheckingClient, contentOf } from "./checking-client.ts";
export { attachCompose } from "./compose/compose-target.ts";
export type { ActOutcome, DamageAct } from "./damage/hand.ts";
export { copyOfAllMetadata } from "./damage/metadata-copies.ts";
export type { Drill } from "./drill.ts";
export { DrillError } from "./drill-error.ts";
export { drills } from "./drills.ts";
export { explain, geoDrillNames, ownDrills } from "./explain.ts";
export { type GeoDrillReport, geoDrill } from "./geo/geo-drill.ts";
export { TwoStamps } from "./geo/two-stamps.ts";
export type { HistoriesReport } from "./histories/histories-drill.ts";
export type { MovingClients, Pause } from "./histories/moving-clients.ts";
export { type DrillOptions, type DrillReport, runDrill, type Writes } from "./run-drill.ts";
export { runSlowClientsDrill, type SlowReport } from "./slow-clients/slow-clients-drill.ts";
export { attach, type DrillTarget, startOwn, untilReady } from "./target.ts";
export type { Verdict } from "./verdict.ts";
export { entryText } from "./watch.ts";
/** Returns the drill whose clients are the real SDKs, which are there in a clone only; loaded only by who asks. */
export const historiesDrill = (): Promise<typeof import("./histories/histories-drill.ts")> => import("./histories/histories-drill.ts");
