/** The Helm chart as an archive, `helm package` without helm: the same files give the same bytes. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const blockBytes = 512;
/** Time of all files, in seconds since 1970: that of npm's tarballs, because a checkout has none of its own. */
const modified = Date.parse("1985-10-26T08:15:00Z") / 1_000;

/** Returns the archive of the chart in the folder. Its files lie below the chart's name. `ci` holds values of tests. */
export function chartArchive(folder: string, name: string): Buffer {
  const files = globSync("**/*", { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((file) => !file.startsWith("ci/"));
  const entries = files.sort().flatMap((file) => entryOf(`${name}/${file}`, readFileSync(join(folder, file))));
  // Two empty blocks end an archive.
  return gzipSync(Buffer.concat([...entries, Buffer.alloc(2 * blockBytes)]), { level: 9 });
}

/** Returns header, content and padding of a file in the format ustar. Throws Error if the name does not fit. */
function entryOf(name: string, content: Buffer): Buffer[] {
  if (Buffer.byteLength(name) > 100) throw new Error(`${name}: longer than the 100 bytes that an archive has for a name`);
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, length: number): number => header.write(value.toString(8).padStart(length, "0"), at);
  header.write(name);
  octal(0o644, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(content.length, 124, 11);
  octal(modified, 136, 11);
  header.write("        0", 148);
  header.write("ustar\u000000", 257);
  // The checksum counts its own eight bytes as spaces.
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  header.write("\0 ", 154);
  return [header, content, Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes)];
}
