/**
 * Where an operation belongs: its table, the key by which its range is found, and the keys of the rows whose order it keeps. The front-end
 * routes by it and the partition server checks by it, so that both always mean the same place.
 */
import type { Rules } from "@stamp/base";
import { lockKeysOfTables } from "../tables/routing.ts";
import { type Routable, routeOf } from "./rows.ts";

/** Returns the lock keys: operations that share one are decided in turn, others independently. Reads have none. */
export const lockKeysOf = (rules: Rules, operation: Routable): Uint8Array[] =>
  operation.case === "table" ? lockKeysOfTables(rules, operation.value) : [routeOf(rules, operation).key];
