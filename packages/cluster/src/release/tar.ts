/** Archives in the format ustar, with one time for all files: the same files give the same bytes. */

export const blockBytes = 512;
/** Time of all files, in seconds since 1970: that of npm's tarballs, because a checkout has none of its own. */
const modified = Date.parse("1985-10-26T08:15:00Z") / 1_000;

/** Two empty blocks end an archive. */
export const archiveEnd: Buffer = Buffer.alloc(2 * blockBytes);

/** Returns header, content and padding of a file. Throws Error if the name does not fit. */
export function entryOf(name: string, content: Buffer): Buffer[] {
  if (Buffer.byteLength(name) > 100) throw new Error(`${name}: longer than the 100 bytes that an archive has for a name`);
  const header = Buffer.alloc(blockBytes);
  header.write(name);
  writeOctal(header, 0o644, 100, 7);
  writeOctal(header, 0, 108, 7);
  writeOctal(header, 0, 116, 7);
  writeOctal(header, content.length, 124, 11);
  header.write("ustar\u000000", 257);
  return [withTime(header, modified), content, Buffer.alloc(paddingOf(content.length))];
}

/** Writes the time into a header, in seconds since 1970, and the checksum that fits. Returns the header. */
export function withTime(header: Buffer, seconds: number): Buffer {
  writeOctal(header, seconds, 136, 11);
  // The checksum counts its own eight bytes as spaces.
  header.write("        ", 148);
  const sum = header.reduce((sum, byte) => sum + byte, 0);
  writeOctal(header, sum, 148, 6);
  header.write("\0 ", 154);
  return header;
}

export interface TarEntry {
  readonly name: string;
  /** Letter of the kind: "0" and "\0" are files, "x" describes the next entry. */
  readonly kind: string;
  /** Part of the archive, which changes with it. */
  readonly header: Buffer;
  readonly content: Buffer;
}

/** Entries of an archive, with views of its bytes. Throws Error for sizes that no archive of an image has. */
export function* entriesOf(archive: Buffer): Generator<TarEntry> {
  for (let at = 0; at + blockBytes <= archive.length && archive[at] !== 0; ) {
    const header = archive.subarray(at, at + blockBytes);
    const textAt = (from: number, to: number): string => header.toString("utf8", from, to).split("\0")[0] ?? "";
    const size = Number.parseInt(textAt(124, 136).trim() || "0", 8);
    const begin = at + blockBytes;
    if (!Number.isSafeInteger(size) || begin + size > archive.length) throw new Error(`${textAt(0, 100)}: the archive ends before it`);
    yield { name: textAt(0, 100), kind: textAt(156, 157), header, content: archive.subarray(begin, begin + size) };
    at = begin + size + paddingOf(size);
  }
}

const paddingOf = (length: number): number => (blockBytes - (length % blockBytes)) % blockBytes;

function writeOctal(header: Buffer, value: number, at: number, length: number): void {
  header.write(value.toString(8).padStart(length, "0"), at);
}
