import type { ReshapeTimes } from "@stamp/wire";

/** Returns how long a split or merge held up its server, and with which steps. */
export const timesText = (times: ReshapeTimes): string =>
  `writes held up for ${times.heldMs} ms at the server (drain ${times.drainMs}, write ${times.writeMs}, hand over ${times.handOverMs}, ` +
  `load ${times.loadMs}, begin ${times.beginMs}), blob data for ${times.dataHeldMs} ms`;
