/** `stamp bench seal|roll|failover|repair|memory|appends|reads`: measurements of the stream layer, each on a cluster of its own. */
import { appends } from "./streams/appends.ts";
import { failover } from "./streams/failover.ts";
import { memory } from "./streams/memory.ts";
import { reads } from "./streams/reads.ts";
import { repair } from "./streams/repair.ts";
import { roll } from "./streams/roll.ts";
import { seal } from "./streams/seal.ts";

export const streamBenches: Readonly<Record<string, (args: string[]) => Promise<void>>> = {
  seal,
  roll,
  failover,
  repair,
  memory,
  appends,
  reads,
};
