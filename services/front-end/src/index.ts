/**
 * The front-end: the REST doors, uploads and downloads, routing by the cached partition map. `FrontEndRole` takes a
 * `World`.
 */
export { type FrontEndConfig, frontEndConfigSchema, httpLimitsOf } from "./config.ts";
export { faultNames } from "./faults/fault-rule.ts";
export { type FaultRuleState, FaultRules } from "./faults/fault-rules.ts";
export { FrontEndRole } from "./front-end.ts";
export { frontEndMetrics } from "./metrics.ts";
