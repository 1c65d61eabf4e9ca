/**
 * Finds Prometheus and its tool promtool, which checks rules for alerts: in PATH, in `.tools`, or in Debian's package `prometheus`, which
 * is taken apart in `.tools` and not installed.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "./commands.ts";

const run = promisify(execFile);
const downloadMs = 90_000;

export type Program = "prometheus" | "promtool";
export type Found = { readonly path: string } | { readonly missing: string };

/** Returns the path of a program, or why there is none. */
export async function findProgram(program: Program): Promise<Found> {
  const kept = join(root, ".tools", program);
  for (const path of [program, kept]) {
    const works = await run(path, ["--version"]).then(
      () => true,
      () => false,
    );
    if (works) return { path };
  }
  const work = join(root, ".tools", `${program}.${process.pid}`);
  try {
    mkdirSync(work, { recursive: true });
    await run("apt-get", ["download", "prometheus"], { cwd: work, timeout: downloadMs });
    const [archive = ""] = readdirSync(work);
    await run("dpkg-deb", ["-x", archive, "apart"], { cwd: work });
    const inside = join(work, "apart", "usr", "bin", program);
    if (!existsSync(inside)) return { missing: `${archive} has no ${program}` };
    renameSync(inside, kept);
    return { path: kept };
  } catch (error) {
    return { missing: `no ${program}, and Debian's package is not to be had: ${(error as Error).message.split("\n")[0]}` };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
