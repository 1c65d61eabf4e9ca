/**
 * The longest turn of the event loop of each process of a cluster, from its metrics page: `nodejs_eventloop_lag_max_seconds`, one sample a
 * turn, begun anew each time the page is asked for.
 */
import { get } from "node:http";
import type { DrillTarget } from "@stamp/cli";

/** Name of the process → longest turn since it was asked before, in milliseconds. */
export type LongestTurns = ReadonlyMap<string, number>;

export class TurnProbe {
  readonly #pages: readonly { readonly name: string; readonly url: string }[];

  private constructor(pages: readonly { readonly name: string; readonly url: string }[]) {
    this.#pages = pages;
  }

  static async of(target: DrillTarget): Promise<TurnProbe> {
    const { processes } = await target.status();
    return new TurnProbe(processes.map(({ name, http }) => ({ name, url: `http://${http}/metrics` })));
  }

  async take(): Promise<LongestTurns> {
    const texts = await Promise.all(this.#pages.map(async ({ name, url }) => [name, await textOf(url)] as const));
    return new Map(texts.map(([name, text]) => [name, lagMsOf(text)]));
  }
}

const lagMsOf = (text: string): number => Number(/^nodejs_eventloop_lag_max_seconds\{[^}]*\} (\S+)$/m.exec(text)?.[1]) * 1_000;

function textOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

/** Milliseconds of work that takes 10 ms on the machine that the bound of 50 ms was set for; the least of a few runs. */
export function calibrate(): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 5; run++) {
    const startMs = performance.now();
    work();
    least = Math.min(least, performance.now() - startMs);
  }
  return least;
}

/** What servers do: small objects, texts, maps. */
function work(): number {
  const held = new Map<string, { readonly at: number; readonly text: string }>();
  for (let i = 0; i < 18_000; i++) held.set(`key-${i % 9_000}`, { at: i, text: `value ${i}` });
  let sum = 0;
  for (const { at, text } of held.values()) sum += at + text.length;
  return sum;
}
