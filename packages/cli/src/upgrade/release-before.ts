/**
 * The release before feature levels as a folder of programs: an archive of a commit of this repository, with the packages from npm that are installed
 * here. The links between the packages of the archive lead to each other.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

/** A commit of 26 November 2026, the last but one before feature levels. */
const commit = "8609f636b56415a015c03eb9538acf23a84ccbad";

/** Returns why there is no such release here; undefined: there is. */
export function whyNoReleaseBefore(root: string): string | undefined {
  try {
    execFileSync("git", ["cat-file", "-e", `${commit}^{commit}`], { cwd: root, stdio: "ignore" });
    return undefined;
  } catch {
    return `commit ${commit.slice(0, 8)} is not here: no git, an archive, or a shallow clone`;
  }
}

/** Writes the programs into a new folder. */
export function writeReleaseBefore(root: string, folder: string): void {
  mkdirSync(folder);
  const archive = execFileSync("git", ["archive", commit, "packages", "services", "proto", "package.json"], {
    cwd: root,
    maxBuffer: 1 << 28,
  });
  execFileSync("tar", ["-x", "-C", folder], { input: archive });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const kind of ["packages", "services"]) {
    for (const name of readdirSync(join(folder, kind))) {
      const links = join(root, kind, name, "node_modules");
      if (existsSync(links)) cpSync(links, join(folder, kind, name, "node_modules"), { recursive: true, verbatimSymlinks: true });
    }
  }
}
