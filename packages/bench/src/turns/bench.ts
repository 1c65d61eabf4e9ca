/**
 * `stamp bench turns`: the longest turn of the event loop of every process under the largest requests. A process that works for long in one
 * turn stops everybody whom it serves, so no request may keep one for more than 50 ms on the machine that the bound was set for; elsewhere,
 * for more than five times what a calibration loop takes (10 ms there). CI runs it at a small scale.
 */
import { parseArgs } from "node:util";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { type Input, Inputs } from "./inputs.ts";
import { type MachineInput, machineInputs } from "./machines.ts";
import { isWrong, joinedRows, measured, type TurnOptions, type TurnRow, type TurnSurroundings } from "./measure.ts";
import { calibrate, OwnProbe, TurnProbe } from "./probe.ts";
import { RangeInputs } from "./ranges.ts";

const usage = `pnpm bench turns [--scale 1] [--tries 3] [--tries-max N] [--only TEXT] [--port-base N] [--bound 5] [--json]
--scale: of what takes long to fill (1: 50,000 blocks, appends and pages, 5,000 blobs, a container of 100,000); --only: inputs whose name has the text;
--bound: longest turn, in times of the calibration loop; --tries: times each input is asked; --tries-max: times an input is asked that
is above the bound (default: three times --tries). Exits with 1 when an input is above the bound or is answered otherwise than it must be.`;

export interface ChosenTurns extends TurnOptions {
  readonly scale: number;
  /** Scale of the work of managers, which takes nothing to fill. */
  readonly machineScale?: number;
  readonly chosen: (name: string) => boolean;
  readonly onRow?: (row: TurnRow) => void;
}

/**
 * Measures every chosen input, one after another. Those that are above the bound are measured once more at the end: what made a process slow
 * for a few seconds (another program, a file system that writes back) is over by then, a handler that works for too long is not.
 */
export async function measureTurns(target: DrillTarget, options: ChosenTurns): Promise<readonly TurnRow[]> {
  const inputs = new Inputs(target.connectionString, options.scale);
  const ranges = new RangeInputs(target, Math.ceil(crowdedBlobs * options.scale));
  const around = { probe: await TurnProbe.of(target), calibrate, settle };
  const machines = machineInputs(options.machineScale ?? 1).map((input) => {
    const probe = new OwnProbe(input.role);
    return { input: asInput(input, probe), around: { ...around, probe, settle: async () => {} } };
  });
  const chosen = [...[...inputs.all(), ...ranges.all()].map((input) => ({ input, around })), ...machines];
  const rows = new Map<Chosen, TurnRow>();
  try {
    await inputs.begin();
    for (const each of chosen.filter(({ input }) => options.chosen(input.name))) {
      const row = await measured(each.input, each.around, options);
      rows.set(each, row);
      options.onRow?.(row);
    }
    for (const [each, row] of rows) {
      if (row.ratio <= options.bound || isWrong(row)) continue;
      const { prepare: _done, ...input } = each.input;
      const again = joinedRows(row, await measured(input, each.around, options));
      rows.set(each, again);
      options.onRow?.(again);
    }
  } finally {
    inputs.close();
    ranges.close();
  }
  return [...rows.values()];
}

interface Chosen {
  readonly input: Input;
  readonly around: TurnSurroundings;
}

/** Returns an input of this process: it is made ready, then done in one turn. */
function asInput({ name, prepare }: MachineInput, probe: OwnProbe): Input {
  let work = (): unknown => undefined;
  return {
    name,
    status: false,
    ready: async () => {
      work = prepare();
    },
    ask: async () => {
      probe.run(work);
      return { status: 0 };
    },
  };
}

/** Number of blobs of the container that is deleted, at scale 1. */
const crowdedBlobs = 100_000;

const settleMs = 200;
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, settleMs));

export async function runTurns(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      scale: { type: "string", default: "1" },
      tries: { type: "string", default: "3" },
      "tries-max": { type: "string" },
      only: { type: "string", default: "" },
      bound: { type: "string", default: "5" },
      "port-base": { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [scale, tries, bound] = [values.scale, values.tries, values.bound].map(Number);
  const triesMax = values["tries-max"] === undefined ? 3 * (tries ?? 0) : Number(values["tries-max"]);
  if (values.help || !scale || !tries || !triesMax || !bound) {
    console.log(usage);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const portBase = values["port-base"];
  // Rows of a deleted container rest for minutes as it comes: here they are collected at once.
  const roles = { "partition-server": { collectGoneMs: 1 } };
  const target = await startOwn({ roles, ...(portBase !== undefined && { portBase: Number(portBase) }) }, false);
  try {
    if (!values.json) console.log(headLine);
    const rows = await measureTurns(target, {
      scale,
      tries,
      triesMax,
      bound,
      chosen: (name) => name.includes(values.only),
      onRow: (row) => void (values.json || console.log(lineOf(row))),
    });
    if (values.json)
      console.log(
        JSON.stringify(
          rows.map((row) => ({ ...row, turns: Object.fromEntries(row.turns), ratios: Object.fromEntries(row.ratios) })),
          null,
          2,
        ),
      );
    if (rows.length === 0) console.error(`no input is named like "${values.only}"`);
    const wrong = rows.filter(isWrong).map(({ name }) => name);
    const above = rows.filter(({ ratio }) => ratio > bound).map((row) => aboveText(row, bound));
    if (wrong.length > 0) console.error(`\nanswered otherwise than it must be: ${wrong.join("; ")}`);
    if (above.length > 0) console.error(`\na turn longer than ${bound} times the calibration loop: ${above.join("; ")}`);
    process.exitCode = rows.length === 0 || wrong.length > 0 || above.length > 0 ? 1 : 0;
  } finally {
    await target.close();
  }
}

function aboveText({ name, tries, ratios, turns }: TurnRow, bound: number): string {
  const processes = [...ratios].filter(([, ratio]) => ratio > bound);
  const texts = processes.map(([process, ratio]) => `${process} ${turns.get(process)?.toFixed(1)} ms, ${ratio.toFixed(1)} times`);
  return `${name} (${texts.join(", ")}; in each of ${tries} tries)`;
}

const roles = ["front-end", "partition-server", "extent-node", "partition-manager", "stream-manager", "lock-service"];
const headLine = `| input | status | took ms | ${roles.map((role) => `${role} ms`).join(" | ")} | times of the calibration loop | tries |\n|${"---|".repeat(roles.length + 5)}`;

function lineOf(row: TurnRow): string {
  const of = (role: string): string => {
    const found = [...row.turns].filter(([name]) => name.startsWith(role)).map(([, ms]) => ms);
    return found.length === 0 ? "" : Math.max(...found).toFixed(1);
  };
  const status = !isWrong(row) ? String(row.status) : `${row.status}, not ${row.expected}`;
  return `| ${row.name} | ${status} | ${row.tookMs.toFixed(0)} | ${roles.map(of).join(" | ")} | ${row.ratio.toFixed(1)} | ${row.tries} |`;
}
