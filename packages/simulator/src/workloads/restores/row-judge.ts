/**
 * Judges rows over a restore of the metadata. Each key has one writer, which writes rising numbers. What a reader finds was written; it is at least
 * what was acknowledged last, or, after a restore that may lose something, what was acknowledged before the copy was taken.
 */
import { BrokenPromise } from "@stamp/virtual-time";

interface RowWrite {
  readonly value: number;
  readonly sentMs: number;
  /** Time of the acknowledgement, in milliseconds; undefined: unknown outcome. */
  ackedMs: number | undefined;
}

export class RowJudge {
  /** Number of acknowledged writes that a restore lost. */
  lost = 0;
  /** When the first lost write was acknowledged, and the last one that is there was sent, in milliseconds. */
  #firstLostMs = Number.POSITIVE_INFINITY;
  #lastThereMs = 0;
  readonly #writes = new Map<string, RowWrite[]>();
  #next = 1;

  /** True if a write is lost, and one that was sent after its acknowledgement is there. */
  get lacksBetween(): boolean {
    return this.#firstLostMs < this.#lastThereMs;
  }

  /** Begins a write. Call what it returns when the write is acknowledged. */
  writes(key: string, sentMs: number): { readonly value: number; readonly acknowledged: (nowMs: number) => void } {
    const write: RowWrite = { value: this.#next++, sentMs, ackedMs: undefined };
    const before = this.#writes.get(key);
    if (before === undefined) this.#writes.set(key, [write]);
    else before.push(write);
    const acknowledged = (nowMs: number): void => {
      write.ackedMs = nowMs;
    };
    return { value: write.value, acknowledged };
  }

  /**
   * Judges what is read after everything is back. `value`: 0 if there is no row. `copiedMs`: time at which the restored copy was begun; undefined:
   * nothing may be lost.
   */
  read(key: string, value: number, copiedMs: number | undefined): void {
    const writes = this.#writes.get(key) ?? [];
    const found = writes.find((write) => write.value === value);
    if (value !== 0 && found === undefined) throw new BrokenPromise(`${key} has ${value}, which nobody wrote`);
    const lost = writes.filter((write) => write.value > value && write.ackedMs !== undefined);
    const tooOld = lost.find(({ ackedMs = 0 }) => copiedMs === undefined || ackedMs < copiedMs);
    if (tooOld !== undefined) {
      const when = copiedMs === undefined ? "" : ", before the copy was taken,";
      throw new BrokenPromise(`${key} has ${value}: ${tooOld.value} was acknowledged${when} and is lost`);
    }
    this.lost += lost.length;
    for (const { ackedMs = 0 } of lost) this.#firstLostMs = Math.min(this.#firstLostMs, ackedMs);
    this.#lastThereMs = Math.max(this.#lastThereMs, found?.sentMs ?? 0);
    // The value that was read stays: the next read is judged from here on.
    this.#writes.set(key, found === undefined ? [] : [{ ...found, ackedMs: found.ackedMs ?? found.sentMs }]);
  }

  get keys(): readonly string[] {
    return [...this.#writes.keys()];
  }
}
