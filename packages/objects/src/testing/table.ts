/** A table in memory for tests: runs plans over a sorted list of rows, as a range partition would. */
import { allRules, compareBytes, emptyBytes, type Rules, toHex } from "@stamp/base";
import { noSeals, type Seals } from "../accounts/seals.ts";
import { BlobGarbage, purgeBlob } from "../blobs/blob-garbage.ts";
import { type Lease, LeaseTimers } from "../blobs/protect/leases.ts";
import { ownerOfRow } from "../garbage.ts";
import { type BlobPolicy, noPolicy, type Operation, type OperationKind, type OperationValue } from "../operation.ts";
import { planOf } from "../operations/planning.ts";
import type { Decision, Plan, PlanContext, Read, ReadAnswer, RowEntry, RowWrite } from "../plan.ts";
import { QueueClocks } from "../queues/queue-clocks.ts";
import type { OperationResult } from "../results.ts";
import { partitionStart } from "../rows/key.ts";
import { assertSameListing } from "./packed-listing.ts";

export class TestTable {
  readonly rows: Map<string, { key: Uint8Array; value: Uint8Array }> = new Map();
  sequence = 0;
  wallMs = 1_700_000_000_000;
  /** Clock of leases, in milliseconds. */
  monotonicMs = 1_000;
  policy: BlobPolicy = noPolicy;
  rules: Rules = allRules;
  range: { low: Uint8Array; high: Uint8Array } = { low: emptyBytes, high: emptyBytes };
  goneExtents: Set<number> = new Set();
  /** So that limits are met in small tests too. */
  scanRowsMax = 7;
  reads = 0;
  /** Pauses of all plans. */
  pauses = 0;
  /** Number of rows that plans were given. */
  rowsRead = 0;
  rowBytesMax = 0;
  commitBytesMax = 0;

  /** Seals of accounts; none by default. */
  seals: Seals = noSeals;
  /** Answer of `mayWrite` for every level. */
  mayWrite: boolean | undefined = true;

  #secrets = 0;
  /** Bytes of the n-th secret that is asked for. */
  receiptSecret = (n: number): Uint8Array => Uint8Array.from({ length: 16 }, (_, index) => ((n * 2654435761) >>> ((index % 4) * 8)) & 0xff);
  readonly #queueClocks = new QueueClocks();
  #timers = new LeaseTimers(this.rules, this.monotonicMs);

  /** Starts lease timers anew, as if another server had loaded the rows. */
  load(): void {
    this.#timers = new LeaseTimers(this.rules, this.monotonicMs);
  }

  /** Context of the next operation. */
  context(): PlanContext {
    return {
      rules: this.rules,
      wallMs: this.wallMs,
      sequence: ++this.sequence,
      range: this.range,
      mayReferTo: (place) => !this.goneExtents.has(place.extentId),
      policy: this.policy,
      leases: { nowMs: this.monotonicMs, endsMs: (lease: Lease) => this.#timers.endsMs(lease) },
      queueMs: (name, clockMs) => this.#queueClocks.actingMs(name, this, clockMs),
      receiptSecret: () => this.receiptSecret(++this.#secrets),
      seals: this.seals,
      mayWrite: () => this.mayWrite,
    };
  }

  decide(operation: Operation): Decision {
    const decision = this.#planned(planOf(operation, this.context()));
    const { timer } = decision;
    if (timer) this.#timers.set(timer, timer.endsMs, this.monotonicMs);
    return decision;
  }

  #planned(plan: Plan): Decision {
    let step = plan.next();
    while (!step.done) step = plan.next(this.#read(step.value));
    return step.value;
  }

  /** Does a pass of a collector over blobs; returns the number of rows that it removed or changed. */
  collect(): number {
    const garbage = new BlobGarbage(this);
    for (const row of this.sorted()) {
      const owner = ownerOfRow(row.key);
      const prefix = partitionStart(row.key);
      if (owner.kind === "inside" && prefix) garbage.see(prefix, owner.objectName, row);
    }
    const { rows, purge } = garbage.take();
    let changed = rows.length;
    this.#write(rows.map((key) => ({ kind: "delete", key })));
    for (const prefix of purge) {
      const { writes } = this.#planned(purgeBlob(prefix, this));
      changed += writes.length;
      this.#write(writes);
    }
    return changed;
  }

  run(operation: Operation): OperationResult {
    const decision = this.decide(operation);
    const sizes = decision.writes.map((write) => write.key.length + (write.kind === "put" ? write.value.length : 0));
    this.commitBytesMax = Math.max(
      this.commitBytesMax,
      sizes.reduce((sum, size) => sum + size, 0),
    );
    this.#write(decision.writes);
    if (operation.case === "listBlobs" && !operation.value.onlyProtected && !operation.value.packed)
      this.#askPacked(operation.value, decision.result);
    return decision.result;
  }

  /** Every listing of a test is asked both ways, and counts once. */
  #askPacked(value: OperationValue<"listBlobs">, answer: OperationResult): void {
    const { sequence, reads, pauses, rowsRead } = this;
    assertSameListing(value, answer, this.decide({ case: "listBlobs", value: { ...value, packed: true } }).result);
    Object.assign(this, { sequence, reads, pauses, rowsRead });
  }

  #write(writes: readonly RowWrite[]): void {
    if (writes.length > 0) this.#sorted = undefined;
    for (const write of writes) {
      if (write.kind === "delete") this.rows.delete(toHex(write.key));
      else this.rows.set(toHex(write.key), { key: write.key, value: write.value });
      if (write.kind === "put") this.rowBytesMax = Math.max(this.rowBytesMax, write.value.length);
    }
  }

  /** Runs it and returns the code of its error, or the case of its result. */
  outcome<K extends OperationKind>(kind: K, value: OperationValue<K>): string {
    const result = this.run({ case: kind, value } as Operation);
    if (result.case !== "error") return result.case;
    const status = result.value.details.status;
    return status ? `${result.value.code} ${status}` : result.value.code;
  }

  row(key: Uint8Array): Uint8Array | undefined {
    return this.rows.get(toHex(key))?.value;
  }

  #read(read: Read): ReadAnswer {
    if (read.kind === "pause") {
      this.pauses++;
      return { kind: "pause" };
    }
    this.reads++;
    if (read.kind === "get") {
      const value = this.rows.get(toHex(read.key))?.value;
      if (value) this.rowsRead++;
      return { kind: "get", value };
    }
    const found = this.sorted().filter((row) => compareBytes(row.key, read.low) >= 0 && compareBytes(row.key, read.high) < 0);
    if (read.kind === "walk") {
      let at: Uint8Array | undefined = read.low;
      for (const row of found) {
        if (compareBytes(row.key, at) < 0) continue;
        this.rowsRead++;
        at = read.visit(row);
        if (at === undefined) break;
      }
      return { kind: "walk" };
    }
    const limit = Math.min(read.rowsMax, this.scanRowsMax);
    this.rowsRead += Math.min(limit, found.length);
    return { kind: "scan", rows: found.slice(0, limit), more: found.length > limit, deleted: 0 };
  }

  #sorted: readonly RowEntry[] | undefined;

  /** All rows in key order. */
  sorted(): readonly RowEntry[] {
    this.#sorted ??= [...this.rows.values()].sort((a, b) => compareBytes(a.key, b.key));
    return this.#sorted;
  }
}
