/**
 * Runs parts of CI, several at once: most of them wait for leases, timeouts and downloads. What runs on virtual time runs at the lowest
 * priority beside the others and gets the time of the processors that they do not need. A part that judges time runs when no other part does.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./commands.ts";
import { type FailedPart, recordingIn, takeFailures } from "./failures.ts";

export interface Part {
  readonly title: string;
  /** What would go wrong unseen without it. */
  readonly guards: string;
  /** True if it runs with `./stamp ci --all` only. */
  readonly all?: boolean;
  readonly command: readonly string[];
  readonly timeoutMs: number;
  /** Exit code besides 0 with which the part has passed. */
  readonly passesWith?: number;
  /** True if it runs at the lowest priority beside the other parts. */
  readonly idle?: boolean;
  /** True if it judges time: it runs after the others, by itself. */
  readonly alone?: boolean;
  /** Why it can't run here; undefined when it can. */
  readonly missing?: string | undefined;
}

export interface PartResult extends FailedPart {
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
}

export interface Ended {
  readonly code: number;
  readonly output: string;
}

export interface RunOptions {
  /** False: what it writes is kept, and not shown. */
  readonly shown: boolean;
  readonly idle?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

/** Time between the request to end and the end by force, in milliseconds. */
const endMs = 10_000;
/** The second argument on is the command. Linux schedules sessions against each other first (autogroup), then processes by their nice value. */
const atLowestPriority = ["sh", "-c", 'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "$@"', "sh"];

/** Runs the parts: idle ones in a lane of their own, `lanes` others at once in their order, and then, one by one, those that judge time. */
export async function runParts(parts: readonly Part[], lanes: number): Promise<PartResult[]> {
  const ordinary = parts.filter(({ idle, alone }) => idle !== true && alone !== true);
  const beside = [
    runLanes(ordinary, lanes),
    runLanes(
      parts.filter(({ idle }) => idle === true),
      1,
    ),
  ];
  const results = (await Promise.all(beside)).flat();
  return [
    ...results,
    ...(await runLanes(
      parts.filter(({ alone }) => alone === true),
      1,
    )),
  ];
}

/** Runs the parts in their order, at most `lanes` of them at once. */
async function runLanes(parts: readonly Part[], lanes: number): Promise<PartResult[]> {
  const waiting = [...parts];
  const results: PartResult[] = [];
  const lane = async (): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), "stamp-ci-"));
    try {
      for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
        if (part.missing !== undefined) console.log(`\n== ${part.title}: SKIPPED: ${part.missing}`);
        else results.push(await runPart(part, join(folder, "failures")));
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

async function runPart(part: Part, failuresPath: string): Promise<PartResult> {
  const { title, command, timeoutMs, passesWith, idle = false, alone = false } = part;
  console.log(`\n== ${title}${alone ? "" : " (beside other parts; its output comes at its end)"}`);
  const startMs = performance.now();
  const { code, output } = await run(command, timeoutMs, { shown: alone, idle, env: recordingIn(failuresPath) });
  const passes = code === 0 || code === passesWith;
  const sum = [...output.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1);
  const passed = sum === undefined ? (passes ? 1 : 0) : Number(sum[1]);
  const failed = sum === undefined ? (passes ? 0 : 1) : Math.max(Number(sum[2]), passes ? 0 : 1);
  const seconds = (performance.now() - startMs) / 1000;
  if (!alone) console.log(`\n== output of ${title}\n${output.trimEnd()}`);
  console.log(`== ${title}: ${passed} passed, ${failed} failed (${seconds.toFixed(0)} s)`);
  return { title, passed, failed, seconds, output, failures: takeFailures(failuresPath) };
}

/** Runs a command in the root, and ends it with all that it started when its time is over. */
export function run(command: readonly string[], timeoutMs: number, { shown, idle = false, env = {} }: RunOptions): Promise<Ended> {
  return new Promise((done) => {
    const [program = "", ...args] = idle ? [...atLowestPriority, ...command] : command;
    const child = spawn(program, args, {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env, CI: "true" },
      // A session of its own, whose priority can be lowered.
      detached: idle,
    });
    let output = "";
    const timer = setTimeout(() => {
      output += `\nended after ${timeoutMs / 1_000} s\n`;
      kill(child, idle, "SIGTERM");
      setTimeout(() => kill(child, idle, "SIGKILL"), endMs).unref();
    }, timeoutMs);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        output += chunk;
        if (shown) process.stdout.write(chunk);
      });
    }
    child.on("error", (error) => {
      clearTimeout(timer);
      done({ code: 127, output: error.message });
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      done({ code: code ?? 1, output });
    });
  });
}

function kill(child: ChildProcess, group: boolean, signal: "SIGTERM" | "SIGKILL"): void {
  if (!group || child.pid === undefined) return void child.kill(signal);
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    // All of them have ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Returns the parts by their seconds, the longest first. */
export const secondsText = (results: readonly PartResult[]): string =>
  results
    .toSorted((a, b) => b.seconds - a.seconds)
    .map(({ title, seconds }) => `${seconds.toFixed(0).padStart(6)} s  ${title}`)
    .join("\n");
