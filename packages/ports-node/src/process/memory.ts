/**
 * How V8 counts the memory of buffers, and how soon it marks the whole heap. Bytes on their way through a service are buffers outside its
 * heap, one or two MiB for each MiB passed on, nearly all of them short-lived. As it comes, V8 answers every few tens of MiB of them with a
 * mark-compact of the whole heap. Counted in the limit of heap and buffers together, scavenges free them, at a tenth of the cost, and the
 * limit still bounds both. docs/design/processes.md
 *
 * That limit is, for the small heap of a service, 16 MiB above what survived the last mark-compact. Here it is more:
 */
import { totalmem } from "node:os";
import { constants, PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics, setFlagsFromString } from "node:v8";

/** The flag is there since; an unknown one would be an error. */
const sinceV8Major = 14;

const growthBytes = 48 * 1024 * 1024;
const growingPercentMax = 200;
/** Least growth that is set, in percent: below it V8's own judgement (0) allows about as much or more. */
const growingPercentMin = 60;

type SetFlag = (flag: string) => void;

export function countBuffersAsHeap(v8Version: string = process.versions.v8, set: SetFlag = setFlagsFromString): void {
  if (Number.parseInt(v8Version, 10) < sinceV8Major) return;
  set("--external-memory-accounted-in-global-limit");
  followLiveHeap(set);
}

/** Returns the percentage by which heap and buffers may grow at this size of the live heap; 0: V8 decides. */
export function growingPercent(heapBytes: number): number {
  const percent = Math.min(growingPercentMax, Math.floor((100 * growthBytes) / Math.max(1, heapBytes)));
  return percent < growingPercentMin ? 0 : percent;
}

/**
 * After each mark-compact, when what is used of the heap is what is live, for the next. Buffers are not counted: their memory is given back
 * later, and those that are live are few, or the service has too much in flight.
 */
function followLiveHeap(set: SetFlag): void {
  let current = growingPercentMax;
  set(`--heap-growing-percent=${current}`);
  const observer = new PerformanceObserver((list) => {
    if (!list.getEntries().some(isMarkCompact)) return;
    const percent = growingPercent(getHeapStatistics().used_heap_size);
    if (percent === current) return;
    current = percent;
    set(`--heap-growing-percent=${percent}`);
  });
  observer.observe({ entryTypes: ["gc"] });
}

/** Returns the memory of the container that this process runs in, if it is bounded, else of the machine; in bytes. */
export function machineMemoryBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** True for a mark-compact. Node's details of a collection are in no type of all its versions. */
const isMarkCompact = (entry: object): boolean =>
  (entry as { readonly detail?: { readonly kind?: number } }).detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
