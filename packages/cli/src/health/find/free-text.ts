/** Free room of a disk, in words for people. */
import { bytesText } from "../../print.ts";
import { factAt, numberAt } from "../facts.ts";

/** Free room of a process's disk, with its inodes if the file system has a fixed number of them. */
export function freeText(facts: Parameters<typeof factAt>[0]): string {
  const bytes = bytesText(numberAt(facts, "freeBytes"));
  return factAt(facts, "freeFiles") === undefined ? bytes : `${bytes} and ${numberAt(facts, "freeFiles")} inodes`;
}
