export * from "./config.ts";
export * from "./lock-service.ts";
