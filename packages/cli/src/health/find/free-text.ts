/** Free room of a disk, in words for people. */
import { bytesText } from "../../print.ts";
import { factAt, numberAt } from "../facts.ts";

/** Returns the free room of a process's disk as text, with inodes if their number is fixed. */
export function freeText(facts: Parameters<typeof factAt>[0]): string {
  const bytes = bytesText(numberAt(facts, "freeBytes"));
  return factAt(facts, "freeFiles") === undefined ? bytes : `${bytes} and ${numberAt(facts, "freeFiles")} inodes`;
}
