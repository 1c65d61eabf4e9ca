/**
 * Rules about folders and imports between files. A folder shows one step or concept, so it holds few files. Files that import each other can't
 * be read one after the other, so no cycle runs over values, and a cycle over types alone is listed here.
 */
import { join } from "node:path";

const filesMax = 16;

interface File {
  /** Relative to the root. */
  readonly path: string;
  readonly text: string;
  readonly isTest: boolean;
}

/** Cycles over types: the first file of each in the order of the alphabet, and the number of its files, which must not grow. */
const typeCycles: Readonly<Record<string, number>> = {
  "packages/virtual-time/src/kernel/event-queue.ts": 10,
  "services/front-end/src/copy/copies.ts": 4,
};

export function folders(files: readonly File[]): string[] {
  const shipped = files.filter(({ path, isTest }) => !isTest && /^(packages|services)\/[^/]+\/src\//.test(path));
  return [...crowded(shipped), ...valueCycles(shipped), ...unlistedCycles(shipped), ...helpersInUse(shipped)];
}

/** Returns the cycles of imports between shipped files. `types`: imports of types alone count, too. */
export const cyclesBetween = (shipped: readonly File[], types: boolean): string[][] => cyclesOf(graphOf(shipped, types));

function crowded(shipped: readonly File[]): string[] {
  const counts = new Map<string, number>();
  for (const { path } of shipped) counts.set(join(path, ".."), (counts.get(join(path, "..")) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > filesMax)
    .map(([folder, count]) => `${folder}: holds ${count} source files, at most ${filesMax}`);
}

const valueCycles = (shipped: readonly File[]): string[] =>
  cyclesBetween(shipped, false).map((cycle) => `${cycle[0]}: imports itself over ${cycle.slice(1).join(", ")}`);

function unlistedCycles(shipped: readonly File[]): string[] {
  const found = new Map(cyclesBetween(shipped, true).map((cycle) => [cycle[0] ?? "", cycle]));
  const grown = [...found].filter(([path, cycle]) => cycle.length > (typeCycles[path] ?? 0));
  const gone = Object.keys(typeCycles).filter((path) => !found.has(path));
  return [
    ...grown.map(
      ([path, cycle]) => `${path}: imports itself by types over ${cycle.slice(1).join(", ")}; tests/tidy/folders.ts lists no such cycle`,
    ),
    ...gone.map((path) => `tests/tidy/folders.ts: lists a cycle that is gone: ${path}`),
  ];
}

/** Helpers of tests are not in the image. */
const helpersInUse = (shipped: readonly File[]): string[] =>
  shipped
    .filter(({ text }) => /from "\.[^"]*\/testing\/|import\("\.[^"]*\/testing\//.test(text))
    .map(({ path }) => `${path}: imports a helper of tests`);

/** Imports of each file, among `files`. Without `types` an import or export of types alone does not count. */
function graphOf(files: readonly File[], types: boolean): Map<string, ReadonlySet<string>> {
  const known = new Set(files.map(({ path }) => path));
  return new Map(
    files.map(({ path, text }) => {
      const targets = new Set<string>();
      for (const [, type, names = "", specifier = ""] of text.matchAll(/^(?:import|export)\s+(type\s)?([^"';]*?)\s*from\s+"(\.[^"]+)"/gm)) {
        if (types || !(type !== undefined || isTypesOnly(names))) targets.add(join(path, "..", specifier));
      }
      if (types) for (const [, specifier = ""] of text.matchAll(/typeof import\("(\.[^"]+)"\)/g)) targets.add(join(path, "..", specifier));
      return [path, new Set([...targets].filter((each) => known.has(each)))];
    }),
  );
}

function isTypesOnly(names: string): boolean {
  const inBraces = /^\{([^}]*)\}$/.exec(names)?.[1];
  if (inBraces === undefined) return false;
  return inBraces
    .split(",")
    .filter((name) => name.trim() !== "")
    .every((name) => name.trim().startsWith("type "));
}

/** Returns the groups of files that reach each other, each sorted (Tarjan's strongly connected components). */
function cyclesOf(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (path: string): void => {
    index.set(path, index.size);
    low.set(path, index.get(path) ?? 0);
    stack.push(path);
    for (const target of graph.get(path) ?? []) {
      if (!index.has(target)) visit(target);
      if (stack.includes(target)) low.set(path, Math.min(low.get(path) ?? 0, low.get(target) ?? 0));
    }
    if (low.get(path) !== index.get(path)) return;
    const cycle = stack.splice(stack.indexOf(path));
    if (cycle.length > 1 || graph.get(path)?.has(path)) cycles.push(cycle.sort());
  };
  for (const path of graph.keys()) if (!index.has(path)) visit(path);
  return cycles;
}
