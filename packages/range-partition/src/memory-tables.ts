/**
 * The commits of a partition that are in no checkpoint: the active table, which takes commits, and at times a frozen one,
 * which is being written out.
 */
import { type LogPlace, MemoryTable } from "@stamp/lsm";
import type { FrozenTable } from "./checkpoint/maintenance.ts";
import type { CommittedGroup } from "./commit/group-commit.ts";
import type { ReplayedLog } from "./load/load.ts";
import type { PartitionLimits } from "./types.ts";

export class MemoryTables {
  readonly #limits: Pick<Required<PartitionLimits>, "memoryTableBytesMax" | "logBytesMax">;
  #active: MemoryTable;
  #frozen: FrozenTable | undefined;
  #lastSequence: number;
  #activeLogBytes: number;
  #logEnd: LogPlace;

  /** `logEnd`: last extent of the log when it was found. */
  constructor(limits: Required<PartitionLimits>, { table, lastSequence, logBytes }: ReplayedLog, logEnd: LogPlace) {
    this.#limits = limits;
    this.#active = table;
    this.#lastSequence = lastSequence;
    this.#activeLogBytes = logBytes;
    this.#logEnd = logEnd;
  }

  get active(): MemoryTable {
    return this.#active;
  }

  get frozen(): FrozenTable | undefined {
    return this.#frozen;
  }

  get newestFirst(): readonly MemoryTable[] {
    return this.#frozen === undefined ? [this.#active] : [this.#active, this.#frozen.table];
  }

  /** Sequence of the last commit. */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** Bytes of the active table's commits in the log. */
  get activeLogBytes(): number {
    return this.#activeLogBytes;
  }

  /** Returns where the last commit ends in the log; before there is one, the place that the tables were made with. */
  get logEnd(): LogPlace {
    return this.#logEnd;
  }

  get frozenBytes(): number {
    return this.#frozen?.table.bytes ?? 0;
  }

  /** True if the active table is to be written out. */
  get full(): boolean {
    return this.#active.bytes > this.#limits.memoryTableBytesMax || this.#activeLogBytes > this.#limits.logBytesMax;
  }

  /** A child without rows in the inherited log is due as well, so that the log's extents can be released. */
  get checkpointDue(): boolean {
    return this.full || (this.#active.count === 0 && this.#activeLogBytes > 0);
  }

  /** Takes commits that are durable in the log. Returns the bytes of their keys and values. */
  apply({ firstSequence, transactions, place, bytes }: CommittedGroup): number {
    let rowBytes = 0;
    for (const [i, writes] of transactions.entries()) {
      for (const write of writes) {
        const value = write.kind === "put" ? write.value : undefined;
        this.#active.put(write.key, firstSequence + i, value);
        rowBytes += write.key.length + (value?.length ?? 0);
      }
    }
    this.#lastSequence = firstSequence + transactions.length - 1;
    if (place !== undefined) {
      this.#activeLogBytes += bytes;
      this.#logEnd = { extentId: place.extentId, offsetBytes: place.offsetBytes + place.lengthBytes };
    }
    return rowBytes;
  }

  /** Freezes the active table; commits go to a new one. */
  freeze(lastTicket: number): FrozenTable {
    const frozen: FrozenTable = { table: this.#active, lastSequence: this.#lastSequence, logStart: this.#logEnd, lastTicket };
    this.#frozen = frozen;
    this.#active = new MemoryTable();
    this.#activeLogBytes = 0;
    return frozen;
  }

  /** Lets the frozen table go: a checkpoint has it, or the partition is lost. */
  release(): void {
    this.#frozen = undefined;
  }
}
