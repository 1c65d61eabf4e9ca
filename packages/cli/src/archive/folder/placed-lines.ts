/** Lines of an archive in their order, with a look at the next one. The checksum of a file of lines is compared before its first line is given. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import type { SourcePosition } from "../items.ts";
import { linesName, type PartSums, plainSize } from "./files.ts";
import { type ArchiveLine, DamagedArchive, lineMax, lineOf } from "./records.ts";

export interface PlacedLine {
  readonly part: number;
  readonly line: ArchiveLine;
  /** Length of the line, in characters. */
  readonly length: number;
  /** File and line, for people. */
  readonly where: string;
  readonly here: SourcePosition;
  readonly behind: SourcePosition;
}

export class PlacedLines {
  readonly #lines: AsyncGenerator<PlacedLine, void, undefined>;
  #next: PlacedLine | undefined;

  /** `part` and `line`: where it begins, from 1 on. */
  constructor(folder: string, parts: readonly PartSums[], part: number, line: number) {
    this.#lines = placedLines(folder, parts, part, line);
  }

  /** Returns undefined at the end. */
  async peek(): Promise<PlacedLine | undefined> {
    this.#next ??= (await this.#lines.next()).value ?? undefined;
    return this.#next;
  }

  async take(): Promise<PlacedLine | undefined> {
    const next = await this.peek();
    this.#next = undefined;
    return next;
  }

  async close(): Promise<void> {
    await this.#lines.return();
  }
}

async function* placedLines(
  folder: string,
  parts: readonly PartSums[],
  from: number,
  line: number,
): AsyncGenerator<PlacedLine, void, undefined> {
  for (let part = from; part <= parts.length; part++) {
    const path = join(folder, linesName(part));
    await plainSize(path);
    const sum = await sumOf(path);
    if (sum !== parts[part - 1]?.lines)
      throw new DamagedArchive(`${path} has another checksum than SHA256SUMS says: it was changed or is damaged`);
    let number = 0;
    for await (const text of linesIn(path)) {
      number++;
      if ((part === from && number < line) || text.startsWith('{"kind":"position"')) continue;
      const where = `${path}:${number}`;
      const position = (at: number): SourcePosition => ({ part, line: at });
      yield { part, line: lineOf(text, where), length: text.length, where, here: position(number), behind: position(number + 1) };
    }
  }
}

export async function sumOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of createReadStream(path)) hash.update(bytes as Buffer);
  return hash.digest("hex");
}

async function* linesIn(path: string): AsyncGenerator<string, void, undefined> {
  let rest = "";
  for await (const text of createReadStream(path, { encoding: "utf8", highWaterMark: 256 * 1024 })) {
    const lines = (rest + String(text)).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > lineMax) throw new DamagedArchive(`${path}: a line has more than ${lineMax} characters`);
    yield* lines;
  }
  if (rest !== "") throw new DamagedArchive(`${path}: its last line has no end`);
}
