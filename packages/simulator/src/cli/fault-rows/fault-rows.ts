/**
 * The table of faults: what closes each, the rules of the code that do, and the tests that attack it. The mutants of the gate are derived from
 * it (`mutants.ts`); `./stamp sim --write-docs` makes docs/faults.md of it. A test holds the table, `RuleName` and the files
 * against each other.
 */
import { appendRows } from "./appends-and-disks.ts";
import { consensusRows } from "./consensus.ts";
import type { FaultRow } from "./fault-row.ts";
import { fragmentRows } from "./fragments.ts";
import { geoRows } from "./geo.ts";
import { handleRows } from "./handles.ts";
import { leaderRows } from "./leaders.ts";
import { objectRows } from "./objects.ts";
import { processRows } from "./processes.ts";
import { surroundingRows } from "./surroundings.ts";
import { treeRows } from "./tree.ts";

export const faultRows: readonly FaultRow[] = [
  ...leaderRows,
  ...appendRows,
  ...fragmentRows,
  ...processRows,
  ...objectRows,
  ...surroundingRows,
  ...geoRows,
  ...treeRows,
  ...handleRows,
  ...consensusRows,
];
