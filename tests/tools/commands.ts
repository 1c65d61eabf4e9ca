/**
 * Runs the tools of this repository (compiler, linter, generator) and the command line `stamp`, and keeps what they say. Nothing that a command
 * says is cut: `execFile` of Node kills a command with SIGTERM when its output passes 1 MiB, and a report of rows is larger.
 */
import { spawn } from "node:child_process";
import { join, resolve } from "node:path";

export const root: string = resolve(import.meta.dirname, "../..");

export interface Ran {
  readonly code: number;
  readonly output: string;
}

export function run(command: string, args: readonly string[], options: { cwd?: string; timeoutMs?: number } = {}): Promise<Ran> {
  return new Promise((done) => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? root,
      env: { ...process.env, PATH: `${join(root, "node_modules", ".bin")}:${process.env.PATH ?? ""}`, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: options.timeoutMs ?? 300_000,
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    child.on("error", (error) => done({ code: 127, output: `${output}${error.message}\n` }));
    child.on("close", (code) => done({ code: code ?? 1, output }));
  });
}

export interface RanStamp {
  /** Exit code; -1 if a signal ended the command, which `output` names. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** `out`, then `err`. */
  readonly output: string;
}

export interface StampOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Kills the command after this time. Default: never. */
  readonly timeoutMs?: number;
  /** Program, and arguments before those of the command. Default: the command line of this repository. */
  readonly program?: readonly [string, ...string[]];
}

/** Runs `stamp`, and returns all that it said on both outputs. */
export function runStamp(args: readonly string[], { env = process.env, timeoutMs = 0, program }: StampOptions = {}): Promise<RanStamp> {
  const [command, ...before] = program ?? [process.execPath, join(root, "packages/cli/src/main.ts")];
  return new Promise((done) => {
    const child = spawn(command, [...before, ...args], { env, stdio: ["ignore", "pipe", "pipe"], timeout: timeoutMs });
    const said = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      said.out += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      said.err += chunk;
    });
    const end = (code: number, why: string): void => {
      const err = said.err + why;
      done({ code, out: said.out, err, output: said.out + err });
    };
    child.on("error", (error) => end(127, `${error.message}\n`));
    child.on("close", (code, signal) => end(code ?? -1, signal === null ? "" : `ended by ${signal}\n`));
  });
}
