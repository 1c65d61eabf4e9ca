/** Numbers of things, in words for people. */
/** Returns "1 replica", "2 replicas". A verb for one and one for several follow the noun if they are given: "1 node is", "2 nodes are". */
export function counted(number: number | bigint, noun: string, verbs?: readonly [one: string, several: string]): string {
  const one = BigInt(number) === 1n;
  const plural = noun.endsWith("s") ? `${noun}es` : `${noun}s`;
  const verb = verbs === undefined ? "" : ` ${verbs[one ? 0 : 1]}`;
  return `${number} ${one ? noun : plural}${verb}`;
}

export const countedAre = ["is", "are"] as const;

/** Returns "1.5 s" for 1,500 ms, "12 s" for 12,000 ms. */
export const seconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
