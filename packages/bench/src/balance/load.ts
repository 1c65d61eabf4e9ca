/** Sends requests at a given rate to queues and tables. In each phase, other ones of them are hot. */

import { TableClient } from "../rows/table-client.ts";
import { SignedClient } from "../signed-client.ts";

/** The phases, in turn. Each is named by what is hot in it. */
export const shapes = ["one queue", "another queue", "one table", "two tables", "everything", "nothing"] as const;
export type Shape = (typeof shapes)[number];

/** Everything that is not hot gets this part of the rate. */
const coldPart = 0.05;
const queues = ["balancea", "balanceb"];
const tables = ["balancec", "balanced"];
const partitionKeys = 16;
const failuresKept = 3;

const hot: Readonly<Record<Shape, readonly string[]>> = {
  "one queue": ["balancea"],
  "another queue": ["balanceb"],
  "one table": ["balancec"],
  "two tables": ["balancec", "balanced"],
  everything: [...queues, ...tables],
  nothing: [],
};

export class ChangingLoad {
  readonly #queue: SignedClient;
  readonly #table: TableClient;
  readonly #rate: number;
  #shape: Shape = "nothing";
  #stopped = false;
  #row = 0;
  readonly #running: Promise<void>[] = [];
  done = 0;
  failed = 0;
  readonly failures: string[] = [];

  /** `rate`: requests a second to each thing that is hot. */
  constructor(connectionString: string, rate: number) {
    this.#queue = new SignedClient(connectionString, "queue");
    this.#table = new TableClient(connectionString);
    this.#rate = rate;
  }

  async begin(): Promise<void> {
    for (const queue of queues) await this.#queue.call("PUT", `/${queue}`, {});
    for (const table of tables) await this.#table.createTable(table);
    for (const queue of queues) this.#running.push(this.#keepOn(queue, (row) => this.#message(queue, row)));
    for (const table of tables) this.#running.push(this.#keepOn(table, (row) => this.#insert(table, row)));
  }

  become(shape: Shape): void {
    this.#shape = shape;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
    this.#queue.close();
    this.#table.close();
  }

  /** Sends requests at the rate of the moment. One that is slow holds up none of those behind it. */
  async #keepOn(name: string, ask: (row: number) => Promise<number>): Promise<void> {
    const under = new Set<Promise<void>>();
    while (!this.#stopped) {
      const rate = hot[this.#shape].includes(name) ? this.#rate : this.#rate * coldPart;
      await new Promise((resolve) => setTimeout(resolve, 1_000 / rate));
      if (under.size >= this.#rate) await Promise.race(under);
      const one = this.#counted(name, ask).finally(() => under.delete(one));
      under.add(one);
    }
    await Promise.all(under);
  }

  async #counted(name: string, ask: (row: number) => Promise<number>): Promise<void> {
    const failure = await ask(this.#row++).then(
      (status) => (status < 300 ? undefined : String(status)),
      (error: unknown) => String(error),
    );
    if (failure === undefined) this.done++;
    else {
      this.failed++;
      if (this.failures.length < failuresKept) this.failures.push(`${name}: ${failure}`);
    }
  }

  async #message(queue: string, row: number): Promise<number> {
    const body = Buffer.from(`<QueueMessage><MessageText>${row}</MessageText></QueueMessage>`);
    return (await this.#queue.call("POST", `/${queue}/messages?messagettl=60`, { "content-type": "application/xml" }, body)).status;
  }

  async #insert(table: string, row: number): Promise<number> {
    const partitionKey = `p${row % partitionKeys}`;
    return (await this.#table.insertOne(table, { partitionKey, rowKey: String(row), data: "x".repeat(100) })).status;
  }
}
