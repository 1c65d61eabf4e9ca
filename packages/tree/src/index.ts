/**
 * A tree of directories with atomic renames over the object tables, pure. Operations are machines that ask for steps; a step is what one
 * PartitionName does atomically, by a plan. Design: docs/design/tree.md.
 */
export { create } from "./changes/create.ts";
export { type RemoveOptions, remove, removeKnown } from "./changes/remove.ts";
export { type RenameOptions, rename } from "./changes/rename.ts";
export { type Collected, collect, forget } from "./collect.ts";
export { type Listed, type ListPage, list } from "./list.ts";
export { ended, type Machine, type MachineContext, type Refusal, type Result } from "./machine.ts";
export { dataLakeNames, filesNames, keyName, type NameRules, type PathProblem, pathProblem } from "./names.ts";
export { type Link, reach, resolve } from "./resolve.ts";
export { freed } from "./settle.ts";
