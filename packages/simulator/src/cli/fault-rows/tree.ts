/** Trees of directories: renames, creations and removals that go over several PartitionNames. */
import type { FaultRow } from "./fault-row.ts";

const rulesTest = "packages/tree/src/rules.test.ts";
const actorsTest = "packages/tree/src/actors.test.ts";

/** Reason why no seed notices; behind it stands the name of the rule in the model. */
const noWorkload = "no workload of the simulator has directories. Model tree.pml has the rule";

export const treeRows: readonly FaultRow[] = [
  {
    fault: "a coordinator of a rename dies or sleeps at any step, and goes on after others have taken the names",
    closedBy:
      "an operation is begun at its primary before anything is marked, once, and decided only where it is still begun; a mark goes when its operation was given up or decided, and a primary when its marks are gone (`design/tree.md`)",
    rules: [
      {
        name: "treeBegunBeforeMarks",
        unnoticed: `${noWorkload} as BEGIN`,
      },
      {
        name: "treeDecidedWhereBegun",
        unnoticed: `${noWorkload} as DECIDE`,
      },
      {
        name: "treeMarksOutliveClocks",
        unnoticed: `${noWorkload} as ABORT`,
      },
      {
        name: "treePrimaryFinished",
        unnoticed: `${noWorkload} as FINISH`,
      },
      {
        name: "treeAttemptsFresh",
        unnoticed: `${noWorkload} as FRESH`,
      },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "a name is read while a rename of it is decided, and ended, elsewhere",
    closedBy: "a marked row asks its primary; where that knows nothing, the row is read again (`design/tree.md`)",
    rules: [
      {
        name: "treeMarksAskPrimary",
        unnoticed: `${noWorkload} as ASK`,
      },
      {
        name: "treeMarksReadAgain",
        unnoticed: `${noWorkload} as REREAD`,
      },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "something is created in a directory, or renamed into it, while the directory is removed",
    closedBy: "a creation writes and then looks, a removal marks and then looks; what is begun in the directory counts (`design/tree.md`)",
    rules: [
      {
        name: "treeWriteBeforeLook",
        unnoticed: `${noWorkload} as WRITE`,
      },
      {
        name: "treeMarkBeforeLook",
        unnoticed: `${noWorkload} as MARK`,
      },
      {
        name: "treeBegunIsEntry",
        unnoticed: `${noWorkload} as PENDING`,
      },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "two directories are renamed below each other",
    closedBy: "a directory goes to another parent under the filesystem's move lock; the way up is read under it (`design/tree.md`)",
    rules: [
      {
        name: "treeMoveLock",
        unnoticed: `${noWorkload} as LOCK`,
      },
      {
        name: "treeWalkUnderLock",
        unnoticed: `${noWorkload} as WALK`,
      },
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
        unnoticed: `${noWorkload}'s other half as SETTLE`,
      },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
];
