export { type StreamManagerConfig, streamManagerSchema } from "./config.ts";
export { StreamManagerRole } from "./stream-manager.ts";
