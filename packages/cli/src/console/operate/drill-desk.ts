/**
 * Drills on the stamp that the console shows, for sessions with the role "operate". A drill runs in a process of its own (`stamp drill run
 * --attach --events`), which this file follows.
 *
 * Invariants:
 * - A drill begins only on a stamp that was started for faults on purpose, and while no other drill of this console runs.
 * - A drill ends by itself, and mends what it broke, whether or not a page or the console is still there.
 * - Memory is bounded: of one drill 2,000 entries and 1,800 seconds of the clients are kept; of what it writes, the newest.
 */
import type { DrillRow, DrillRun } from "@stamp/console-page";
import { CommandError } from "../../exit.ts";
import { wordIn } from "../data/fields.ts";
import type { StampChange } from "./account-operations.ts";

const entriesMax = 2_000;
const secondsMax = 1_800;
const wordsMax = 2_000;

/** Process of a drill, as the desk sees it. */
export interface DrillProcess {
  /** Lines of its output. */
  readonly lines: AsyncIterable<string>;
  /** Text that it wrote to standard error, at its end; empty for none. */
  readonly failure: Promise<string>;
}

export interface DrillDeskParts {
  readonly drills: readonly DrillRow[];
  /** Why no drill can run on this stamp; empty if one can. */
  readonly whyNot: () => string;
  readonly begin: (drill: string) => DrillProcess;
  readonly wallMs: () => number;
}

type Growing = { -readonly [K in keyof DrillRun]: DrillRun[K] };

export class DrillDesk {
  readonly #parts: DrillDeskParts;
  #run: Growing | undefined;

  constructor(parts: DrillDeskParts) {
    this.#parts = parts;
  }

  /** Drills that can be begun, and the one that runs or ran last. */
  get shown(): object {
    return { whyNot: this.#parts.whyNot(), drills: this.#parts.drills, run: this.#run ?? null };
  }

  get isRunning(): boolean {
    return this.#run?.isOver === false;
  }

  /** Changes by path. */
  get operations(): Readonly<Record<string, StampChange>> {
    return { "/api/start-drill": async (fields) => this.#start(wordIn(fields, "drill")) };
  }

  #start(name: string): object {
    const { drills, whyNot, begin, wallMs } = this.#parts;
    const why = whyNot();
    if (why !== "") throw new CommandError(why);
    if (!drills.some((each) => each.name === name)) throw new CommandError(`there is no drill ${name}: load the page again`);
    if (this.#run?.isOver === false) throw new CommandError(`the drill ${this.#run.drill} runs: wait for its end, one runs at a time`);
    const run: Growing = {
      drill: name,
      startedMs: wallMs(),
      isOver: false,
      entries: [],
      writes: [],
      verdict: "",
      conclusion: "",
      broken: [],
    };
    this.#run = run;
    void this.#follow(run, begin(name));
    return {};
  }

  /** Never throws: the end of the process is the end of the run. */
  async #follow(run: Growing, { lines, failure }: DrillProcess): Promise<void> {
    try {
      for await (const line of lines) this.#take(run, line);
    } catch (error) {
      run.conclusion = `the drill can't be followed any more: ${(error as Error).message}`;
    }
    const words = await failure.catch((error: unknown) => (error as Error).message);
    if (run.verdict === "") {
      run.verdict = "failed";
      run.conclusion ||= words === "" ? "the drill ended without a verdict" : words.slice(-wordsMax);
    }
    run.isOver = true;
  }

  #take(run: Growing, line: string): void {
    const told = parsed(line);
    if (told?.entry !== undefined) run.entries = [...run.entries, told.entry].slice(-entriesMax);
    if (told?.writes !== undefined) {
      const { count, longestMs } = told.writes;
      run.writes = [...run.writes, { atMs: this.#parts.wallMs(), count, longestMs }].slice(-secondsMax);
    }
    if (told?.report !== undefined) {
      const { verdict, conclusion, broken } = told.report;
      Object.assign(run, { verdict, conclusion, broken });
    }
  }
}

interface DrillLine {
  readonly entry?: DrillRun["entries"][number];
  readonly writes?: { readonly count: number; readonly longestMs: number | null };
  readonly report?: Pick<DrillRun, "verdict" | "conclusion" | "broken">;
}

/** A line that is no event, e.g. a warning of Node, is left out. */
function parsed(line: string): DrillLine | undefined {
  try {
    return JSON.parse(line) as DrillLine;
  } catch {
    return undefined;
  }
}
