/**
 * Mixed load for as long as a measurement lasts: small blobs, table entities and messages are written and read, pages and queries are read, and blobs of
 * 4 MiB are put at a fixed pace, so that a long run does not fill the disk.
 */
import { scenarioNamed, scenariosOf } from "../scenarios/all.ts";
import type { Scenario, Space } from "../scenarios/scenario.ts";

/** Each worker takes the next operation of this list. Names of scenarios, and how many of forty operations they are. */
export const shares: readonly (readonly [name: string, count: number])[] = [
  ["put 1 KiB", 10],
  ["get 1 KiB", 10],
  ["table insert 1 KiB", 6],
  ["table point read", 6],
  ["queue put", 4],
  ["get 4 MiB", 2],
  ["list 1,000 of 10,000", 1],
  ["table query, 1,000 entities", 1],
];
const large = "put 4 MiB";

export interface MixedResult {
  readonly operations: number;
  readonly failed: number;
  readonly firstFailure: string;
}

/** The list in an order in which equal operations are apart. */
export function orderOf(all: typeof shares): string[] {
  const total = all.reduce((sum, [, count]) => sum + count, 0);
  const at = all.flatMap(([name, count]) => Array.from({ length: count }, (_, i) => ({ name, at: ((i + 0.5) * total) / count })));
  return at.toSorted((a, b) => a.at - b.at).map(({ name }) => name);
}

/** Runs until the signal. Each failure counts; the load goes on. */
export async function mixedLoad(
  connectionString: string,
  space: Space,
  { clients, largeEveryMs, begun }: { readonly clients: number; readonly largeEveryMs: number; readonly begun: () => AbortSignal },
): Promise<MixedResult> {
  const scenarios = scenariosOf(connectionString, space);
  const named = new Map([...shares.map(([name]) => name), large].map((name) => [name, scenarioNamed(scenarios, name)] as const));
  for (const scenario of named.values()) await scenario.prepare();
  const order = orderOf(shares);
  const numbers = new Map<string, number>();
  const signal = begun();
  let [turn, failed, operations, firstFailure] = [0, 0, 0, ""];
  let largeAtMs = performance.now();
  const next = (): string => {
    if (performance.now() < largeAtMs) return order[turn++ % order.length] as string;
    largeAtMs += largeEveryMs;
    return large;
  };
  const worker = async (): Promise<void> => {
    while (!signal.aborted) {
      const name = next();
      const number = numbers.get(name) ?? 0;
      numbers.set(name, number + 1);
      try {
        await (named.get(name) as Scenario).operation(number);
        operations += 1;
      } catch (error) {
        failed += 1;
        firstFailure ||= `${name}: ${(error as Error).message}`;
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, worker));
  scenarios.close();
  return { operations, failed, firstFailure };
}
