/** Runs the tools of this repository (compiler, linter, generator) and keeps what they say. */
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
