/**
 * Answers where the content of a blob lies that only this stamp had when it was deposed: the rows of its PartitionName as the report has them, up to
 * a commit, are laid over nothing, and the content is read from them (`reportedContent` of @stamp/objects).
 *
 * Invariants:
 * - Only rows of reports are read, and only those of the account that is named. The stamp's rows of now are the new primary's.
 * - The memory of the rows of one blob is bounded, and so is the number of blobs that are read at once.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { compareBytes, type Outcome, ok, refused, toHex } from "@stamp/base";
import { beginsContent, isBlobState, type RowEntry, reportedContent, shippedNames } from "@stamp/objects";
import { holdsKey } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { decodeReportRow, isReportKey, type RangePartition, reportKey } from "@stamp/range-partition";
import { type DivergedContentSchema, fromWire, type ReadDivergedBlobRequest, toWire } from "@stamp/wire";
import type { RowView } from "../operations/engine.ts";
import type { Executor } from "../operations/execute.ts";
import { runPlan } from "../operations/run-plan.ts";
import type { Holdings } from "../ranges/holdings.ts";
import { placeToWire } from "../wire/result-to-wire.ts";

type Content = MessageInitShape<typeof DivergedContentSchema>;

/** Bytes of the rows of one blob that are held at once. */
const rowBytesMax = 64 * 1024 * 1024;
const readAtOnceMax = 2;
const bad = (message: string) => refused("invalidArgument", "badRequest", message);

export class ReportedBlobs {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #executor: Pick<Executor, "mayAnswer" | "locate">;
  #reading = 0;

  constructor(world: World, holdings: Holdings, executor: Pick<Executor, "mayAnswer" | "locate">) {
    this.#world = world;
    this.#holdings = holdings;
    this.#executor = executor;
  }

  async read(request: ReadDivergedBlobRequest, deadlineMs: number): Promise<Outcome<Content>> {
    if (this.#reading >= readAtOnceMax)
      return refused("resourceExhausted", "throttled", `${this.#reading} blobs of reports are read at this server: try again`);
    this.#reading++;
    try {
      return await this.#read(request, deadlineMs);
    } finally {
      this.#reading--;
    }
  }

  async #read(
    { rangeId, rangeVersion, place, startBytes, endBytes }: ReadDivergedBlobRequest,
    deadlineMs: number,
  ): Promise<Outcome<Content>> {
    const held = this.#holdings.serving(rangeId, fromWire(rangeVersion));
    if (!held.ok) return held;
    const { range, engine } = held.value;
    if (place === undefined) return bad("no row of a report is named");
    const { account, key } = place;
    const name = shippedNames(account)(key);
    if (range.table !== "Blob" || name === undefined || !isBlobState(key)) return bad(`the key is of no blob of account ${account}`);
    if (!holdsKey(range, name)) return refused("failedPrecondition", "wrongPartition", `${rangeId} does not hold the blob`);
    if (engine.partition === undefined) return refused("unimplemented", "unknownMethod", `${rangeId} has no reports`);
    const [operation, sequence] = [fromWire(place.operation), fromWire(place.sequence)];
    const rows = await reportedRows(engine.partition, name, { operation, sequence });
    if (!rows.ok) return rows;
    if (rows.value.writtenIn.get(toHex(key)) !== sequence)
      return refused("notFound", "conflict", `the report of failover ${operation} has no row of the blob that commit ${sequence} wrote`);
    const blob = { prefix: name, key, hasBegin: (generation: number) => rows.value.begun.has(generation) };
    const plan = reportedContent(this.#world.rules, blob, fromWire(startBytes), fromWire(endBytes));
    const planned = await runPlan(this.#world.clock, plan, viewOf(rows.value.entries));
    const found = planned.ok ? planned.value : planned;
    if (!found.ok) return found;
    const { contentLengthBytes, lengthBytes, inline, places, encryptionKeySha256, encryptionScope } = found.value;
    const extents = await this.#executor.locate(places, deadlineMs);
    const answered = this.#executor.mayAnswer(held.value);
    if (!answered.ok) return answered;
    const keyName = { ...(encryptionKeySha256 && { encryptionKeySha256 }), ...(encryptionScope !== undefined && { encryptionScope }) };
    const content = { contentLength: toWire(contentLengthBytes), lengthBytes: toWire(lengthBytes), inline };
    return ok({ ...content, places: places.map(placeToWire), extents, ...keyName });
  }
}

interface ReportedRows {
  /** Rows of the report, in the order of their keys. */
  readonly entries: readonly RowEntry[];
  /** Sequence of the commit that wrote each row, by its key in hexadecimal. */
  readonly writtenIn: ReadonlyMap<string, number>;
  /** Commits that began the content of a state. */
  readonly begun: ReadonlySet<number>;
}

/** Returns the rows of a PartitionName after the report's commits up to `sequence`. */
async function reportedRows(
  partition: Pick<RangePartition, "scan">,
  name: Uint8Array,
  { operation, sequence }: { readonly operation: number; readonly sequence: number },
): Promise<Outcome<ReportedRows>> {
  const rows = new Map<string, RowEntry>();
  const writtenIn = new Map<string, number>();
  const begun = new Set<number>();
  let bytes = 0;
  const [gte, lt] = [0, sequence + 1].map((number) => reportKey(name, { operation, sequence: number, index: 0 })) as [
    Uint8Array,
    Uint8Array,
  ];
  for await (const [key, value] of partition.scan({ gte, lt, background: true, hidden: true })) {
    if (!isReportKey(key, name)) continue;
    const row = decodeReportRow(key, name, value);
    if (!row.ok) return row;
    const { write } = row.value;
    const id = toHex(write.key);
    bytes -= sizeOf(rows.get(id));
    if (write.kind === "delete") {
      rows.delete(id);
      continue;
    }
    // The scan's value may be a view of a block.
    const entry = { key: write.key, value: Uint8Array.from(write.value) };
    rows.set(id, entry);
    bytes += sizeOf(entry);
    if (bytes > rowBytesMax)
      return refused(
        "resourceExhausted",
        "overloaded",
        `the report has more than ${rowBytesMax} bytes of rows of this blob: too many to read`,
      );
    writtenIn.set(id, row.value.sequence);
    if (beginsContent(entry, row.value.sequence)) begun.add(row.value.sequence);
  }
  const entries = [...rows.values()].sort((a, b) => compareBytes(a.key, b.key));
  return ok({ entries, writtenIn, begun });
}

const sizeOf = (entry: RowEntry | undefined): number => (entry === undefined ? 0 : entry.key.length + entry.value.length);

/** Returns a view of rows in memory, like that of a range. */
function viewOf(entries: readonly RowEntry[]): RowView {
  const byKey = new Map(entries.map((entry) => [toHex(entry.key), entry.value]));
  const inside = (low: Uint8Array, high: Uint8Array): RowEntry[] =>
    entries.filter(({ key }) => compareBytes(key, low) >= 0 && compareBytes(key, high) < 0);
  return {
    get: async (key) => ok(byKey.get(toHex(key))),
    scan: async (low, high, { rowsMax }) => {
      const found = inside(low, high);
      return ok({ rows: found.slice(0, rowsMax), more: found.length > rowsMax, deleted: 0 });
    },
    walk: async (low, high, visit) => {
      let from: Uint8Array | undefined = low;
      for (const entry of inside(low, high)) {
        if (from === undefined) break;
        if (compareBytes(entry.key, from) >= 0) from = visit(entry);
      }
      return ok();
    },
  };
}
