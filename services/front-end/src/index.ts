export * from "./config.ts";
export { FrontEndRole } from "./front-end.ts";
export { frontEndMetrics } from "./metrics.ts";
