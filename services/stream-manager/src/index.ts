export { type StreamManagerConfig, streamManagerSchema } from "./config.ts";
export { streamManagerMetrics } from "./metrics.ts";
export { StreamManagerRole } from "./stream-manager.ts";
