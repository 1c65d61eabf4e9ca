/**
 * `stamp bench turns`: the longest turn of the event loop of every process under the largest requests. A process that works for long in one
 * turn stops everybody whom it serves, so no request may keep one for more than 50 ms on the machine that the bound was set for; elsewhere,
 * for more than five times what a calibration loop takes (10 ms there).
 *
 * Every input is asked several times and counts with its quickest: what other programs do on the machine, and a rare collection of the
 * heap, make a turn longer, never shorter.
 */
import { parseArgs } from "node:util";
import { type DrillTarget, startOwn } from "@stamp/cli";
import { type Input, Inputs } from "./inputs.ts";
import { calibrate, type LongestTurns, TurnProbe } from "./probe.ts";

const usage = `pnpm bench turns [--scale 1] [--tries 3] [--only TEXT] [--port-base N] [--bound 5] [--json]
--scale: of what takes long to fill (1: 50,000 blocks, appends and pages, 5,000 blobs); --only: inputs whose name has the text;
--bound: longest turn, in times of the calibration loop. Exits with 1 when an input is above it or is answered otherwise than it must be.`;

export interface TurnRow {
  readonly name: string;
  /** Why it is above the bound today; undefined: it must not be. */
  readonly known: string | undefined;
  readonly expected: number | false;
  readonly status: number;
  readonly tookMs: number;
  /** By process, in milliseconds; the quickest of the tries. */
  readonly turns: LongestTurns;
  readonly calibrationMs: number;
}

/** Answered otherwise than it must be. */
export const isWrong = ({ status, expected }: TurnRow): boolean => expected !== false && status !== expected;

/** Longest turn of any process, in times of the calibration loop. */
export const ratioOf = (row: TurnRow): number => Math.max(...row.turns.values()) / row.calibrationMs;

export interface TurnOptions {
  readonly scale: number;
  readonly tries: number;
  /** An input that is above `bound` is asked up to this often: noise passes, a long turn stays. */
  readonly triesMax: number;
  readonly bound: number;
  readonly chosen: (name: string) => boolean;
  readonly onRow?: (row: TurnRow) => void;
}

export async function measureTurns(target: DrillTarget, options: TurnOptions): Promise<readonly TurnRow[]> {
  const inputs = new Inputs(target.connectionString, options.scale);
  const probe = await TurnProbe.of(target);
  const rows: TurnRow[] = [];
  try {
    await inputs.begin();
    for (const input of inputs.all()) {
      if (!options.chosen(input.name)) continue;
      const row = await measured(input, probe, options);
      rows.push(row);
      options.onRow?.(row);
    }
  } finally {
    inputs.close();
  }
  return rows;
}

/** What a request leaves behind for a moment: a copy, a flush. */
const afterwardsMs = 300;

async function measured(input: Input, probe: TurnProbe, { tries, triesMax, bound }: TurnOptions): Promise<TurnRow> {
  await input.prepare?.();
  const least = new Map<string, number>();
  let [status, tookMs, calibrationMs] = [0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const isAbove = (): boolean => Math.max(...least.values()) > bound * calibrationMs;
  for (let attempt = 0; attempt < tries || (attempt < triesMax && isAbove()); attempt++) {
    await input.ready?.(attempt);
    calibrationMs = Math.min(calibrationMs, calibrate());
    await probe.take();
    const startMs = performance.now();
    ({ status } = await input.ask(attempt));
    tookMs = Math.min(tookMs, performance.now() - startMs);
    await new Promise((resolve) => setTimeout(resolve, afterwardsMs));
    for (const [name, ms] of await probe.take()) least.set(name, Math.min(least.get(name) ?? Number.POSITIVE_INFINITY, ms));
  }
  return { name: input.name, known: input.known, expected: input.status, status, tookMs, turns: least, calibrationMs };
}

export async function turns(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      scale: { type: "string", default: "1" },
      tries: { type: "string", default: "3" },
      only: { type: "string", default: "" },
      bound: { type: "string", default: "5" },
      "port-base": { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [scale, tries, bound] = [values.scale, values.tries, values.bound].map(Number);
  if (values.help || !scale || !tries || !bound) {
    console.log(usage);
    return;
  }
  const portBase = values["port-base"];
  const target = await startOwn(portBase === undefined ? {} : { portBase: Number(portBase) }, false);
  try {
    if (!values.json) console.log(headLine);
    const rows = await measureTurns(target, {
      scale,
      tries,
      triesMax: 3 * tries,
      bound,
      chosen: (name) => name.includes(values.only),
      onRow: (row) => void (values.json || console.log(lineOf(row))),
    });
    if (values.json)
      console.log(
        JSON.stringify(
          rows.map((row) => ({ ...row, turns: Object.fromEntries(row.turns) })),
          null,
          2,
        ),
      );
    const above = rows.filter((row) => isWrong(row) || (row.known === undefined && ratioOf(row) > bound));
    if (above.length > 0) console.error(`\nabove the bound, or answered otherwise: ${above.map(({ name }) => name).join("; ")}`);
    process.exitCode = above.length > 0 ? 1 : 0;
  } finally {
    await target.close();
  }
}

const roles = ["front-end", "partition-server", "extent-node", "partition-manager", "stream-manager", "lock-service"];
const headLine = `| input | status | took ms | ${roles.map((role) => `${role} ms`).join(" | ")} | times of the calibration loop |\n|${"---|".repeat(roles.length + 4)}`;

function lineOf(row: TurnRow): string {
  const of = (role: string): string => {
    const found = [...row.turns].filter(([name]) => name.startsWith(role)).map(([, ms]) => ms);
    return Math.max(...found).toFixed(1);
  };
  const status = !isWrong(row) ? String(row.status) : `${row.status}, not ${row.expected}`;
  const name = row.known === undefined ? row.name : `${row.name} (known: ${row.known})`;
  return `| ${name} | ${status} | ${row.tookMs.toFixed(0)} | ${roles.map(of).join(" | ")} | ${ratioOf(row).toFixed(1)} |`;
}
