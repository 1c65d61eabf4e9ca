/** Trees of directories: renames, creations and removals that go over several PartitionNames. */
import type { FaultRow } from "./fault-row.ts";

const rulesTest = "packages/tree/src/rules.test.ts";
const actorsTest = "packages/tree/src/actors.test.ts";

export const treeRows: readonly FaultRow[] = [
  {
    fault: "a coordinator of a rename dies or sleeps at any step, and goes on after others have taken the names",
    closedBy:
      "an operation is begun at its primary before anything is marked, once, and decided only where it is still begun; a mark goes when its operation was given up or decided, and a primary when its marks are gone (`design/tree.md`)",
    rules: [
      {
        name: "treeBegunBeforeMarks",
        workload: "trees",
        focus: "slow-operations",
        why: "a mark is released as dead, and its operation begins and is decided later",
      },
      {
        name: "treeDecidedWhereBegun",
        workload: "trees",
        focus: "slow-operations",
        why: "an operation that was given up is decided when its marks are gone",
      },
      {
        name: "treeMarksOutliveClocks",
        workload: "trees",
        focus: "slow-operations",
        why: "a mark is released while its operation can still be decided",
      },
      {
        name: "treePrimaryFinished",
        workload: "trees",
        focus: "slow-operations",
        why: "a primary forgets its operation, and marks of it look dead: two names",
      },
      {
        name: "treeAttemptsFresh",
        workload: "trees",
        focus: "late-operations",
        why: "a beginning is sent again, and a directory is left that nobody can reach",
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
        workload: "trees",
        focus: "slow-operations",
        why: "a name is read after its rename was decided",
      },
      {
        name: "treeMarksReadAgain",
        workload: "trees",
        focus: "slow-operations",
        why: "a name is read as it was before a rename that has ended",
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
        workload: "trees",
        focus: "slow-operations",
        why: "a directory is removed between the look of a creation and its entry",
      },
      {
        name: "treeMarkBeforeLook",
        workload: "trees",
        why: "a directory is removed with what was created in it",
      },
      {
        name: "treeBegunIsEntry",
        workload: "trees",
        focus: "slow-operations",
        why: "a creation is decided in a directory that was removed",
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
        workload: "trees",
        focus: "slow-operations",
        why: "two directories go below each other",
      },
      {
        name: "treeWalkUnderLock",
        workload: "trees",
        focus: "slow-operations",
        why: "a directory goes below one that came below it since the look",
      },
    ],
    tests: [rulesTest, actorsTest],
    faults: [],
  },
  {
    fault: "the collector is asked to empty a directory that was not removed, or from which a rename takes something away",
    closedBy:
      "it deletes only the content of removed directories, and by the same steps as a removal, which finishes a pending rename first (`design/tree.md`)",
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
