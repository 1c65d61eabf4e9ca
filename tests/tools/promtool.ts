/**
 * Finds promtool, which checks rules for alerts: in PATH, in `.tools`, or in Debian's package `prometheus`, which is taken apart
 * in `.tools` and not installed.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "./commands.ts";

const run = promisify(execFile);
const downloadMs = 90_000;
const kept = join(root, ".tools", "promtool");

/** Returns its path, or why there is none. */
export async function findPromtool(): Promise<{ readonly path: string } | { readonly missing: string }> {
  for (const path of ["promtool", kept]) {
    const works = await run(path, ["--version"]).then(
      () => true,
      () => false,
    );
    if (works) return { path };
  }
  const work = join(root, ".tools", `promtool.${process.pid}`);
  try {
    mkdirSync(work, { recursive: true });
    await run("apt-get", ["download", "prometheus"], { cwd: work, timeout: downloadMs });
    const [archive = ""] = readdirSync(work);
    await run("dpkg-deb", ["-x", archive, "apart"], { cwd: work });
    const inside = join(work, "apart", "usr", "bin", "promtool");
    if (!existsSync(inside)) return { missing: `${archive} has no promtool` };
    renameSync(inside, kept);
    return { path: kept };
  } catch (error) {
    return { missing: `no promtool, and Debian's package is not to be had: ${(error as Error).message.split("\n")[0]}` };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
