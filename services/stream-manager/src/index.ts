/**
 * The stream manager: seals, allocation, repair, garbage, erasure coding, over the metadata store. `StreamManagerRole`
 * takes a `World`.
 */
export { streamManagerSchema } from "./config.ts";
export { streamManagerMetrics } from "./metrics.ts";
export { StreamManagerRole } from "./stream-manager.ts";
