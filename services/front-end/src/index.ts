/**
 * The front-end: the REST doors, uploads and downloads, routing by the cached partition map. `FrontEndRole` takes a
 * `World`.
 */
export { type FrontEndConfig, frontEndConfigSchema, httpLimitsOf } from "./config.ts";
export { faultNames } from "./faults/fault-rule.ts";
export { type FaultRuleState, FaultRules } from "./faults/fault-rules.ts";
export { FrontEndRole } from "./front-end.ts";
export { initFailed } from "./init/init-door.ts";
export { checkInit, type Init, InitError, loadInit } from "./init/load-init.ts";
export { makeAccounts } from "./init/make-accounts.ts";
export { frontEndMetrics } from "./metrics.ts";
export { MapCache } from "./routing/map-cache.ts";
export { Router } from "./routing/router.ts";
export { rootId, Trees } from "./trees/trees.ts";
