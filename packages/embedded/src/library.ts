/** Entry of the package `stamp-storage`, whose declarations are `types.ts` and this one line. */
import { startStamp as start } from "./start-stamp.ts";
import type { StartStamp } from "./types.ts";

export const startStamp: StartStamp = start;
