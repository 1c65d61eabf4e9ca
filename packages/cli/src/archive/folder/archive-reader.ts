/**
 * Reads an archive as a source. It may come from anybody: lines are used when the checksum of their file is right, bytes when their own is, and
 * whatever the format does not allow ends the work with the file and the line.
 *
 * Invariant: what is in memory is bounded: a line, a page of entities, the lines about one name, and a chunk.
 */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { BlobChunk, BlobFacts, BlobGroup, BlobItem, EntityJson, SourcePosition, Step, StoredMessage } from "../items.ts";
import { bytesName, type Manifest, manifestName, type PartSums, plainSize, readManifest, readSums } from "./files.ts";
import { type PlacedLine, PlacedLines } from "./placed-lines.ts";
import { type ArchiveLine, chunkMax, DamagedArchive, type DataLine, groupLinesMax } from "./records.ts";

const entitiesAtOnce = 1_000;
/** In characters of their lines. */
const entityTextAtOnce = 8 * 1024 * 1024;
const messagesAtOnce = 100;
/** Most queues that an archive has twice: the export was left in each of them. */
const voidedMax = 100_000;

type BlobLine = Extract<ArchiveLine, { kind: "blob" }>;

interface PlacedChunk {
  readonly part: number;
  readonly data: DataLine;
}

/** Lines about one blob. */
interface OpenBlob {
  readonly line: BlobLine;
  readonly chunks: PlacedChunk[];
}

export class ArchiveReader {
  readonly manifest: Manifest;
  readonly #folder: string;
  readonly #parts: readonly PartSums[];

  private constructor(folder: string, manifest: Manifest, parts: readonly PartSums[]) {
    this.#folder = folder;
    this.manifest = manifest;
    this.#parts = parts;
  }

  static async open(folder: string): Promise<ArchiveReader> {
    const manifest = await readManifest(folder);
    if (manifest === undefined) throw new DamagedArchive(`${folder} has no ${manifestName}: it is no archive of stamp export`);
    if (!manifest.complete)
      throw new DamagedArchive(
        `the export into ${folder} has not ended: run it again, it goes on where it was (account ${manifest.account})`,
      );
    const { parts } = await readSums(folder, false);
    if (parts.length !== manifest.parts)
      throw new DamagedArchive(`${folder} had ${manifest.parts} parts, and SHA256SUMS has ${parts.length}`);
    return new ArchiveReader(folder, manifest, parts);
  }

  async *steps(from: SourcePosition): AsyncGenerator<Step, void, undefined> {
    const lines = new PlacedLines(this.#folder, this.#parts, Number(from.part ?? 1), Number(from.line ?? 1));
    let voided: ReadonlySet<string> | undefined;
    try {
      for (let at = await lines.peek(); at !== undefined; at = await lines.peek()) {
        const { line } = at;
        if (line.kind === "queue") {
          voided ??= await this.#voided(at);
          if (voided.has(placeText(at))) await passQueue(lines, line.name);
          else yield* queueSteps(lines, line);
        } else if (line.kind === "entity") yield await entityStep(lines, line.table);
        else if (line.kind === "blob") {
          const step = await this.#groupStep(lines);
          if (step !== undefined) yield step;
        } else if (line.kind === "message" || line.kind === "data" || line.kind === "end") {
          throw new DamagedArchive(`${at.where}: ${line.kind} without what it belongs to`);
        } else {
          await lines.take();
          yield { item: line, next: at.behind };
        }
      }
    } finally {
      await lines.close();
    }
  }

  /**
   * Places of the queues that stand once more behind, as an export that was left and goes on writes them. The export repeats only its last queue,
   * and may find new ones before that: a queue counts as last until a later name comes.
   */
  async #voided({ here }: PlacedLine): Promise<ReadonlySet<string>> {
    const lines = new PlacedLines(this.#folder, this.#parts, Number(here.part), Number(here.line));
    const found = new Set<string>();
    let last: { readonly name: string; readonly place: string } | undefined;
    try {
      for (let at = await lines.take(); at !== undefined; at = await lines.take()) {
        if (at.line.kind !== "queue") continue;
        const { name } = at.line;
        if (name === last?.name) found.add(last.place);
        if (found.size > voidedMax) throw new DamagedArchive(`${at.where}: more than ${voidedMax} queues stand twice`);
        if (last === undefined || name >= last.name) last = { name, place: placeText(at) };
      }
    } finally {
      await lines.close();
    }
    return found;
  }

  /** Returns undefined for a name that was begun and never ended: it was left out, or follows once more. */
  async #groupStep(lines: PlacedLines): Promise<Step | undefined> {
    let blobs: OpenBlob[] = [];
    let count = 0;
    for (let at = await lines.peek(); at !== undefined; at = await lines.peek()) {
      const { line } = at;
      const first = blobs[0]?.line;
      const isOther = line.kind === "blob" && first !== undefined && (line.name !== first.name || line.container !== first.container);
      if (isOther || !["blob", "data", "end"].includes(line.kind)) return undefined;
      await lines.take();
      if (++count > groupLinesMax) throw new DamagedArchive(`${at.where}: more than ${groupLinesMax} lines about one name`);
      if (line.kind === "blob") {
        if (line.item === 1) {
          blobs = [];
          count = 1;
        }
        if (line.item !== blobs.length + 1) throw new DamagedArchive(`${at.where}: item ${line.item} follows item ${blobs.length}`);
        blobs.push({ line, chunks: [] });
      } else if (line.kind === "data") {
        const open = blobs.at(-1) as OpenBlob;
        checkChunk(at, line, open);
        open.chunks.push({ part: at.part, data: line });
      } else if (line.kind === "end") {
        for (const each of blobs) checkWhole(at, each);
        return { item: this.#group(blobs), next: at.behind };
      }
    }
    return undefined;
  }

  #group(blobs: readonly OpenBlob[]): BlobGroup {
    const { container = "", name = "" } = blobs[0]?.line ?? {};
    const items = blobs.map(({ line: { kind: _kind, item: _item, ...facts }, chunks }) => this.#item(facts, chunks));
    const group: BlobGroup = { kind: "blobs", container, name, blobs: items, again: async () => group };
    return group;
  }

  #item(facts: BlobFacts, chunks: readonly PlacedChunk[]): BlobItem {
    const read = (chunk: PlacedChunk): Promise<BlobChunk> => this.#chunk(facts, chunk);
    return {
      facts,
      async *chunks(from = 0) {
        for (const chunk of chunks) if (chunk.data.at >= from) yield await read(chunk);
      },
      async verify() {
        for (const chunk of chunks) await read(chunk);
      },
    };
  }

  async #chunk({ container, name }: BlobFacts, { part, data }: PlacedChunk): Promise<BlobChunk> {
    const path = join(this.#folder, bytesName(part));
    const where = `${path}: ${data.length} bytes at ${data.offset}, of blob ${JSON.stringify(name)} in ${container},`;
    if (data.offset + data.length > (await plainSize(path))) throw new DamagedArchive(`${where} are not all there`);
    const bytes = Buffer.alloc(data.length);
    const file = await open(path, "r");
    try {
      for (let read = 0; read < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, read, bytes.length - read, data.offset + read);
        if (bytesRead === 0) throw new DamagedArchive(`${where} are not all there`);
        read += bytesRead;
      }
    } finally {
      await file.close();
    }
    if (createHash("sha256").update(bytes).digest("hex") !== data.sha256) throw new DamagedArchive(`${where} have another checksum`);
    return { at: data.at, bytes, sha256: data.sha256 };
  }
}

function checkChunk({ where }: PlacedLine, { at, length }: DataLine, { line, chunks }: OpenBlob): void {
  const before = chunks.at(-1)?.data;
  const expected = before === undefined ? 0 : before.at + before.length;
  const isRight =
    length > 0 && length <= chunkMax && at + length <= line.length && (line.type === "page" ? at >= expected : at === expected);
  if (!isRight) throw new DamagedArchive(`${where}: ${length} bytes at ${at} do not follow what is there of the blob`);
}

function checkWhole({ where }: PlacedLine, { line, chunks }: OpenBlob): void {
  const last = chunks.at(-1)?.data;
  const length = last === undefined ? 0 : last.at + last.length;
  if (line.type !== "page" && length !== line.length)
    throw new DamagedArchive(`${where}: ${length} of ${line.length} bytes of ${JSON.stringify(line.name)} are there`);
}

async function entityStep(lines: PlacedLines, table: string): Promise<Step> {
  const entities: EntityJson[] = [];
  let [text, next]: [number, SourcePosition] = [0, {}];
  for (let at = await lines.peek(); at?.line.kind === "entity" && at.line.table === table; at = await lines.peek()) {
    if (entities.length >= entitiesAtOnce || (entities.length > 0 && text + at.length > entityTextAtOnce)) break;
    await lines.take();
    entities.push(at.line.entity);
    text += at.length;
    next = at.behind;
  }
  return { item: { kind: "entities", table, entities }, next };
}

const placeText = ({ here }: PlacedLine): string => `${here.part} ${here.line}`;

async function passQueue(lines: PlacedLines, name: string): Promise<void> {
  await lines.take();
  for (let at = await lines.peek(); at?.line.kind === "message" && at.line.queue === name; at = await lines.peek()) await lines.take();
}

/** Until its last message is taken, a later run begins with the queue again: messages have an order, and none may be there twice. */
async function* queueSteps(lines: PlacedLines, line: Extract<ArchiveLine, { kind: "queue" }>): AsyncGenerator<Step, void, undefined> {
  const { here, behind } = (await lines.take()) as PlacedLine;
  const hasMore = async (): Promise<boolean> => {
    const at = await lines.peek();
    return at?.line.kind === "message" && at.line.queue === line.name;
  };
  yield { item: line, next: (await hasMore()) ? here : behind };
  while (await hasMore()) {
    const messages: StoredMessage[] = [];
    let next: SourcePosition = behind;
    while (messages.length < messagesAtOnce && (await hasMore())) {
      const at = (await lines.take()) as PlacedLine & { readonly line: StoredMessage };
      messages.push(at.line);
      next = at.behind;
    }
    yield { item: { kind: "messages", queue: line.name, messages }, next: (await hasMore()) ? here : next };
  }
}
