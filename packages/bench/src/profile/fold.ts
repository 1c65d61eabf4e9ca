/** Folds profiles of V8 by function, and prints the functions with the most samples before and after a change. */
import { basename } from "node:path";

/** The part of a profile that is read here. */
export interface Profile {
  readonly nodes: readonly {
    readonly callFrame: { readonly functionName: string; readonly url: string };
    /** Number of samples in which the function itself ran, without functions that it called. */
    readonly hitCount?: number;
  }[];
}

/** Samples of one or several processes. */
export interface FoldedProfile {
  /** Samples by role, function and file: `front-end`, `encode`, codec.ts. Garbage collection has a row of its own in each role. */
  readonly functions: ReadonlyMap<string, number>;
  /** Processor time of all functions, in milliseconds. */
  readonly busy: number;
  /** Samples in which the process waited for events. */
  readonly idle: number;
  /** Samples in which the main thread ran native code that no function of JavaScript had called. */
  readonly program: number;
}

/** `profiles`: role of the process, and its profile. */
export function fold(profiles: readonly (readonly [role: string, profile: Profile])[]): FoldedProfile {
  const functions = new Map<string, number>();
  const left = { "(idle)": 0, "(program)": 0, "(root)": 0 };
  let busy = 0;
  for (const [role, { nodes }] of profiles) {
    for (const { callFrame, hitCount = 0 } of nodes) {
      const { functionName: name, url } = callFrame;
      if (hitCount === 0) continue;
      if (name === "(idle)" || name === "(program)" || name === "(root)") {
        left[name] += hitCount;
        continue;
      }
      const key = `${role} ${labelOf(name, url)}`;
      functions.set(key, (functions.get(key) ?? 0) + hitCount);
      busy += hitCount;
    }
  }
  return { functions, busy, idle: left["(idle)"], program: left["(program)"] };
}

/** Folders are left out: a file that has moved between two commits is the same file. */
function labelOf(name: string, url: string): string {
  if (name === "(garbage collector)") return "garbage collection";
  const shown = `\`${name === "" ? "(anonymous)" : name}\``;
  if (url === "") return `${shown} native`;
  return url.startsWith("wasm:") ? `${shown} WebAssembly` : `${shown} ${basename(url)}`;
}

/** Returns a row for each rank: the function of that rank before and the function of that rank after, each with its share in both. */
export function rowsOf(before: FoldedProfile, after: FoldedProfile, count: number): string[] {
  const [first, second] = [before, after].map(({ functions }) =>
    [...functions.keys()].sort((a, b) => atOf(functions, b) - atOf(functions, a)),
  );
  const cellOf = (key: string | undefined, own: FoldedProfile, other: FoldedProfile): string =>
    key === undefined ? " |  | " : `${key} | ${shareOf(own, key)} | ${shareOf(other, key)}`;
  return Array.from(
    { length: count },
    (_, at) => `| ${at + 1} | ${cellOf(first?.[at], before, after)} | ${cellOf(second?.[at], after, before)} |`,
  );
}

const atOf = (functions: ReadonlyMap<string, number>, key: string): number => functions.get(key) ?? 0;

/** Returns the percent of the busy samples; a dash if there is no sample of the function. */
function shareOf({ functions, busy }: FoldedProfile, key: string): string {
  const samples = functions.get(key);
  return samples === undefined ? "–" : ((samples / busy) * 100).toFixed(1);
}
