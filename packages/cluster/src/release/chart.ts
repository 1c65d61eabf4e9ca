/** The Helm chart as an archive, `helm package` without helm: the same files give the same bytes. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";

/** All files have the time of npm's tarballs, because a checkout has none of its own. */
const mtime = new Date("1985-10-26T08:15:00Z");

/** Returns the archive of the chart in the folder. Its files lie below the chart's name. `ci` holds values of tests. */
export async function chartArchive(folder: string, name: string): Promise<Buffer> {
  const archive = pack();
  const files = globSync("**/*", { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((file) => !file.startsWith("ci/"));
  for (const file of files.sort()) archive.entry({ name: `${name}/${file}`, mtime, mode: 0o644 }, readFileSync(join(folder, file)));
  archive.finalize();
  return gzipSync(await buffer(archive), { level: 9 });
}
