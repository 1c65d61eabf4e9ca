/** The Helm chart as an archive, `helm package` without helm: the same files give the same bytes. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { archiveEnd, entryOf } from "./tar.ts";

/** Returns the archive of the chart in the folder. Its files lie below the chart's name. `ci` holds values of tests. */
export function chartArchive(folder: string, name: string): Buffer {
  const files = globSync("**/*", { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((file) => !file.startsWith("ci/"));
  const entries = files.sort().flatMap((file) => entryOf(`${name}/${file}`, readFileSync(join(folder, file))));
  return gzipSync(Buffer.concat([...entries, archiveEnd]), { level: 9 });
}
