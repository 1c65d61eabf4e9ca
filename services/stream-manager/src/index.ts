export * from "./config.ts";
export * from "./stream-manager.ts";
