/** Trees of directories: renames, creations and removals that go over several PartitionNames. */
import type { FaultRow } from "./fault-row.ts";

const rulesTest = "packages/tree/src/rules.test.ts";
const actorsTest = "packages/tree/src/actors.test.ts";

export const treeRows: readonly FaultRow[] = [
  {
    fault: "a coordinator of a rename dies or sleeps at any step, and goes on after others have taken the names",
    rules: ["treeBegunBeforeMarks", "treeDecidedWhereBegun", "treeMarksOutliveClocks", "treePrimaryFinished", "treeAttemptsFresh"],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "a name is read while a rename of it is decided, and ended, elsewhere",
    rules: ["treeMarksAskPrimary", "treeMarksReadAgain"],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "something is created in a directory, or renamed into it, while the directory is removed",
    rules: ["treeWriteBeforeLook", "treeMarkBeforeLook", "treeBegunIsEntry"],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "two directories are renamed below each other",
    rules: ["treeMoveLock", "treeWalkUnderLock"],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "the collector is told of a directory that has a name, or of one from which something is renamed away",
    rules: ["treeCollectsRemoved"],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
];
