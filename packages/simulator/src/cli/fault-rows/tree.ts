/** Trees of directories: renames, creations and removals that go over several PartitionNames. */
import type { FaultRow } from "./fault-row.ts";

const rulesTest = "packages/tree/src/rules.test.ts";
const actorsTest = "packages/tree/src/actors.test.ts";

/** Reasons why no seed is known; behind them stands the name of the rule in the model. */
const fourSeeds = "four seeds of workload trees passed without it, more were not tried. Model tree.pml has the rule";
const notSearched = "no seed of workload trees was searched yet. Model tree.pml has the rule";

export const treeRows: readonly FaultRow[] = [
  {
    fault: "a coordinator of a rename dies or sleeps at any step, and goes on after others have taken the names",
    closedBy:
      "an operation is begun at its primary before anything is marked, once, and decided only where it is still begun; a mark goes when its operation was given up or decided, and a primary when its marks are gone (`design/tree.md`)",
    rules: [
      { name: "treeBegunBeforeMarks", unnoticed: `${fourSeeds} as BEGIN` },
      { name: "treeDecidedWhereBegun", unnoticed: `${notSearched} as DECIDE` },
      { name: "treeMarksOutliveClocks", unnoticed: `${notSearched} as ABORT` },
      { name: "treePrimaryFinished", unnoticed: `${notSearched} as FINISH` },
      { name: "treeAttemptsFresh", unnoticed: `${notSearched} as FRESH` },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "a name is read while a rename of it is decided, and ended, elsewhere",
    closedBy: "a marked row asks its primary; where that knows nothing, the row is read again (`design/tree.md`)",
    rules: [
      { name: "treeMarksAskPrimary", unnoticed: `${fourSeeds} as ASK` },
      { name: "treeMarksReadAgain", unnoticed: `${notSearched} as REREAD` },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "something is created in a directory, or renamed into it, while the directory is removed",
    closedBy: "a creation writes and then looks, a removal marks and then looks; what is begun in the directory counts (`design/tree.md`)",
    rules: [
      { name: "treeWriteBeforeLook", unnoticed: `${fourSeeds} as WRITE` },
      {
        name: "treeMarkBeforeLook",
        workload: "trees",
        why: "a directory is removed with what was created in it",
      },
      { name: "treeBegunIsEntry", unnoticed: `${notSearched} as PENDING` },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "two directories are renamed below each other",
    closedBy: "a directory goes to another parent under the filesystem's move lock; the way up is read under it (`design/tree.md`)",
    rules: [
      { name: "treeMoveLock", unnoticed: `${fourSeeds} as LOCK` },
      { name: "treeWalkUnderLock", unnoticed: `${notSearched} as WALK` },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "the collector is told of a directory that has a name, or of one from which something is renamed away",
    closedBy:
      "it takes only what hangs in removed directories, by the removal that everybody uses, which settles a rename first (`design/tree.md`)",
    rules: [
      {
        name: "treeCollectsRemoved",
        workload: "trees",
        why: "the collector empties a directory that has a name",
      },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
];
