/** Writes what an account has into an archive. */

import type { ArchiveWriter } from "./folder/archive-writer.ts";
import { groupLinesMax } from "./folder/records.ts";
import { inOrder } from "./in-order.ts";
import {
  BlobChanged,
  type BlobChunk,
  type BlobFacts,
  type BlobGroup,
  type BlobItem,
  countBlob,
  type Item,
  LeftOut,
  type SourcePosition,
  type Step,
} from "./items.ts";

/** Names that are read at a time, and the bytes that such a name has at most. */
const atOnce = 16;
const smallBytes = 4 * 1024 * 1024;
/** Number of reads after which a blob that changes meanwhile is left out. */
const tries = 5;

/** Tells after each step what was done so far. */
export async function exportSteps(
  writer: ArchiveWriter,
  steps: (from: SourcePosition) => AsyncIterable<Step>,
  tell: (item: Item) => void,
  linesMax: number = groupLinesMax,
): Promise<void> {
  let before: SourcePosition = positionIn(writer.from);
  let begun: Begun | undefined = begunIn(writer.from);
  if (before.stage === "end") return;
  let counts = { ...writer.counts };
  for await (const { item, next, isDurable } of inOrder(steps(before), atOnce, loaded, (step) => step.isDurable === true)) {
    // A later run that repeats a queue counts it itself.
    if (item.kind === "queue") counts = { ...writer.counts };
    if (item.kind === "blobs") {
      await new GroupWriter(writer, before, linesMax).write(item, begun);
      begun = undefined;
    } else await writeItem(writer, item);
    tell(item);
    if (writer.isFull() || isDurable === true) await writer.commit(next, next.hiddenUntilMs === undefined ? writer.counts : counts);
    before = next;
  }
}

/** A blob of which the archive has the first bytes. */
interface Begun {
  readonly name: string;
  /** Number of the item in its group, from 0 on. */
  readonly index: number;
  readonly etag: string;
  /** A snapshot may have the ETag of its blob. */
  readonly which: string;
  /** Offset in the blob of what follows. */
  readonly at: number;
  /** Bytes of the group in the archive, and its lines. */
  readonly bytes: number;
  readonly lines: number;
}

const begunNames = ["begunName", "begunIndex", "begunEtag", "begunWhich", "begunAt", "begunBytes", "begunLines"];

/** Names an item among those of its name. */
const whichOf = ({ current, snapshot, version }: BlobFacts): string => (current ? "" : snapshot || version);

const positionIn = (position: SourcePosition): SourcePosition =>
  Object.fromEntries(Object.entries(position).filter(([name]) => !begunNames.includes(name)));

function begunIn(position: SourcePosition): Begun | undefined {
  const { begunName, begunIndex, begunEtag, begunWhich, begunAt, begunBytes, begunLines } = position;
  if (begunName === undefined) return undefined;
  const [name, etag, which] = [begunName, begunEtag, begunWhich].map(String) as [string, string, string];
  return { name, index: Number(begunIndex), etag, which, at: Number(begunAt), bytes: Number(begunBytes), lines: Number(begunLines) };
}

function isSame({ name, blobs }: BlobGroup, begun: Begun): boolean {
  const facts = blobs[begun.index]?.facts;
  return name === begun.name && facts !== undefined && facts.etag === begun.etag && whichOf(facts) === begun.which;
}

/** Reads small blobs ahead. What fails is read once more at its turn, and told there. */
async function loaded(step: Step): Promise<Step> {
  const { item } = step;
  if (item.kind !== "blobs") return step;
  if (item.blobs.reduce((sum, { facts }) => sum + facts.length, 0) > smallBytes) return step;
  try {
    const blobs: BlobItem[] = [];
    for (const { facts, chunks } of item.blobs) {
      const read: BlobChunk[] = [];
      for await (const chunk of chunks()) read.push(chunk);
      blobs.push({
        facts,
        async *chunks(from = 0) {
          yield* read.filter(({ at }) => at >= from);
        },
      });
    }
    return { ...step, item: { ...item, blobs } };
  } catch (error) {
    if (error instanceof BlobChanged || error instanceof LeftOut) return step;
    throw error;
  }
}

class GroupWriter {
  readonly #writer: ArchiveWriter;
  readonly #before: SourcePosition;
  readonly #linesMax: number;
  #bytes = 0;
  #lines = 0;

  constructor(writer: ArchiveWriter, before: SourcePosition, linesMax: number) {
    this.#writer = writer;
    this.#before = before;
    this.#linesMax = linesMax;
  }

  async write(first: BlobGroup, begun: Begun | undefined): Promise<void> {
    let group: BlobGroup | undefined = first;
    let from = begun !== undefined && isSame(first, begun) ? begun : undefined;
    for (let tried = 1; group !== undefined; tried++) {
      try {
        await this.#once(group, from);
        return;
      } catch (error) {
        const isChanged = error instanceof BlobChanged;
        if (!isChanged && !(error instanceof LeftOut)) throw error;
        if (!isChanged || tried >= tries) {
          const why = isChanged ? `${error.message}, ${tries} times` : error.message;
          await writeItem(this.#writer, { kind: "leftOut", what: `blob ${group.name} in ${group.container}`, why, chosen: false });
          return;
        }
        from = undefined;
        group = await group.again();
      }
    }
  }

  async #once({ name, blobs }: BlobGroup, from: Begun | undefined): Promise<void> {
    this.#bytes = from?.bytes ?? 0;
    this.#lines = from?.lines ?? 0;
    for (const [index, { facts, chunks }] of blobs.entries()) {
      if (index < (from?.index ?? 0)) continue;
      const goesOn = from !== undefined && index === from.index;
      if (!goesOn) {
        this.#countLine();
        await this.#writer.line({ kind: "blob", item: index + 1, ...facts });
      }
      for await (const chunk of chunks(goesOn ? from.at : 0)) {
        this.#countLine();
        await this.#writer.chunk(chunk);
        this.#bytes += chunk.bytes.length;
        if (!this.#writer.isFull()) continue;
        const at = chunk.at + chunk.bytes.length;
        const begun = { begunName: name, begunIndex: index, begunEtag: facts.etag, begunWhich: whichOf(facts), begunAt: at };
        await this.#writer.commit({ ...this.#before, ...begun, begunBytes: this.#bytes, begunLines: this.#lines });
      }
    }
    await this.#writer.line({ kind: "end" });
    for (const { facts } of blobs) countBlob(this.#writer.counts, facts);
    this.#writer.counts.bytes += this.#bytes;
  }

  /** Leaves out a name of which no reader takes so many lines. The last one is its end. */
  #countLine(): void {
    if (++this.#lines >= this.#linesMax)
      throw new LeftOut(`it has more than ${this.#linesMax} pieces, snapshots and versions, which no import reads`);
  }
}

async function writeItem(writer: ArchiveWriter, item: Exclude<Item, BlobGroup>): Promise<void> {
  const { counts } = writer;
  if (item.kind === "entities") {
    for (const entity of item.entities) await writer.line({ kind: "entity", table: item.table, entity });
    counts.entities += item.entities.length;
  } else if (item.kind === "messages") {
    for (const message of item.messages) await writer.line({ kind: "message", queue: item.queue, ...message });
    counts.messages += item.messages.length;
  } else {
    await writer.line(item);
    if (item.kind === "container") counts.containers++;
    else if (item.kind === "table") counts.tables++;
    else if (item.kind === "queue") counts.queues++;
    else if (item.kind === "leftOut" && !item.chosen) counts.leftOut++;
  }
}
