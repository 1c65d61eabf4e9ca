/**
 * `stamp bench tables`: one table, filled by transactions of 100 entities that go to 1,000 rows of a PartitionKey one after another; at some
 * sizes inserts, point reads, point updates, transactions and queries over a part of a PartitionKey's rows are measured.
 */
import type { DrillTarget } from "@stamp/drills";
import { TableClient, type TableRow, transactionStatus } from "../rows/table-client.ts";
import { contains, expected } from "./answers.ts";
import { type Growing, grow } from "./growth.ts";

const table = "million";
const rowsPerTransaction = 100;
const transactionsPerPartition = 10;
const queryRows = 100;

export const tables = (args: string[]): Promise<void> => grow(args, "tables", (target, bytes) => new TableGrowth(target, bytes));

class TableGrowth implements Growing {
  readonly unit = "entities";
  readonly perFill = rowsPerTransaction;
  readonly operations: Growing["operations"];
  readonly #client: TableClient;
  readonly #data: string;
  /** Transactions done, so that everything before can be read. */
  #filled = 0;
  #next = 0;
  #insertNext = 0;

  constructor(target: DrillTarget, bytes: number) {
    this.#client = new TableClient(target.connectionString);
    this.#data = "x".repeat(bytes);
    this.operations = [
      ["insert", () => this.#insert()],
      ["point get", () => this.#get()],
      ["point update", () => this.#update()],
      ["transaction of 100", () => this.fill()],
      [`query of ${queryRows} rows`, () => this.#query()],
    ];
  }

  async prepare(): Promise<void> {
    const { status, body } = await this.#client.createTable(table);
    if (status !== 201 && status !== 204) throw new Error(`no table: ${status} ${body}`);
  }

  async fill(): Promise<boolean> {
    const transaction = this.#next++;
    for (;;) {
      const rows = Array.from({ length: rowsPerTransaction }, (_, i) => this.#row(transaction * rowsPerTransaction + i));
      const answer = await this.#client.insert(table, rows);
      const { ok, busy } = transactionStatus(answer);
      if (!ok && !busy) throw new Error(`transaction ${transaction}: ${answer.status} ${answer.body.toString().slice(0, 500)}`);
      if (!ok) continue;
      this.#filled++;
      return true;
    }
  }

  /** Beside the others, so that no transaction meets it. */
  async #insert(): Promise<boolean> {
    const at = this.#insertNext++;
    const partitionKey = `${keyOf(Math.floor(Math.random() * this.#partitions))}-more`;
    return expected(await this.#client.insertOne(table, { partitionKey, rowKey: String(at).padStart(9, "0"), data: this.#data }), 204);
  }

  async #get(): Promise<boolean> {
    const { partitionKey, rowKey } = this.#any();
    const answer = await this.#client.get(table, partitionKey, rowKey);
    return expected(answer, 200) && contains(answer, `"RowKey":"${rowKey}"`);
  }

  async #update(): Promise<boolean> {
    return expected(await this.#client.merge(table, this.#any()), 204);
  }

  async #query(): Promise<boolean> {
    const { partitionKey } = this.#any();
    const from = Math.floor(Math.random() * transactionsPerPartition) * queryRows;
    const filter = `PartitionKey eq '${partitionKey}' and RowKey ge '${rowKeyOf(from)}' and RowKey lt '${rowKeyOf(from + queryRows)}'`;
    return expected(await this.#client.query(table, filter, queryRows), 200);
  }

  close(): void {
    this.#client.close();
  }

  get #partitions(): number {
    return Math.max(Math.floor(this.#filled / transactionsPerPartition), 1);
  }

  /** The last transactions may still be under way. */
  #any(): TableRow {
    const rowsPerPartition = rowsPerTransaction * transactionsPerPartition;
    return this.#row(Math.floor(Math.random() * Math.max(this.#partitions - 1, 1) * rowsPerPartition));
  }

  #row(at: number): TableRow {
    const rowsPerPartition = rowsPerTransaction * transactionsPerPartition;
    return { partitionKey: keyOf(Math.floor(at / rowsPerPartition)), rowKey: rowKeyOf(at % rowsPerPartition), data: this.#data };
  }
}

/** Spread over all keys, so that what is new goes anywhere. */
const keyOf = (partition: number): string => (Math.imul(partition + 1, 2_654_435_761) >>> 0).toString(16).padStart(8, "0");
const rowKeyOf = (at: number): string => String(at).padStart(4, "0");
