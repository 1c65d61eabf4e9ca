/**
 * How V8 counts the memory of buffers. Bytes on their way through a service are buffers outside its heap, several MiB for each MiB passed on
 * (from the socket, joined, framed), nearly all of them short-lived. As it comes, V8 answers every few tens of MiB of them with a
 * mark-compact of the whole heap: 40% of the CPU of a service under large writes. Counted in the limit of heap and buffers together,
 * scavenges free them, at a tenth of the cost, and the limit still bounds both. docs/decisions/0090-buffers-count-as-heap.md
 */
import { setFlagsFromString } from "node:v8";

/** The flag is there since; an unknown one would be an error. */
const sinceV8Major = 14;

export function countBuffersAsHeap(v8Version: string = process.versions.v8, set: (flag: string) => void = setFlagsFromString): void {
  if (Number.parseInt(v8Version, 10) >= sinceV8Major) set("--external-memory-accounted-in-global-limit");
}
