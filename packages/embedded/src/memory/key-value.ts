/**
 * Key-value stores of one role in memory. Batches of a store are applied in the order of their calls, each as a whole. What was applied stays
 * when the role is killed. Keys are held as strings of one character per byte, whose order is the order of the bytes.
 */
import { assert, FailureError } from "@stamp/base";
import type { KeyRange, KeyValue, KeyValueOpen, KeyValueOperation, KeyValueStores } from "@stamp/ports";
import { nextTurn } from "./next-turn.ts";

class Content {
  readonly #values = new Map<string, Uint8Array>();
  /** Keys of the values in order. */
  readonly #keys: string[] = [];
  /** Store that has the content open; undefined: none has. */
  openBy: MemoryStore | undefined;

  get(key: string): Uint8Array | undefined {
    const value = this.#values.get(key);
    return value === undefined ? undefined : new Uint8Array(value);
  }

  put(key: string, value: Uint8Array): void {
    if (!this.#values.has(key)) this.#keys.splice(this.#place(key), 0, key);
    this.#values.set(key, value);
  }

  delete(key: string): void {
    if (this.#values.delete(key)) this.#keys.splice(this.#place(key), 1);
  }

  find({ gte, lt, limit = Number.MAX_SAFE_INTEGER, reverse }: KeyRange): (readonly [string, Uint8Array])[] {
    const from = gte === undefined ? 0 : this.#place(textOf(gte));
    const to = Math.max(from, lt === undefined ? this.#keys.length : this.#place(textOf(lt)));
    const keys = reverse ? this.#keys.slice(Math.max(from, to - limit), to).reverse() : this.#keys.slice(from, Math.min(to, from + limit));
    return keys.map((key) => [key, this.#values.get(key) as Uint8Array]);
  }

  /** Returns where the key is, or would be. */
  #place(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export class MemoryKeyValueStores implements KeyValueStores {
  readonly #contents = new Map<string, Content>();

  async open(name: string): Promise<KeyValueOpen> {
    await nextTurn();
    let content = this.#contents.get(name);
    if (content === undefined) {
      content = new Content();
      this.#contents.set(name, content);
    }
    if (content.openBy !== undefined) throw refused(`the store ${name} is in use`);
    return { kind: "opened", store: new MemoryStore(name, content) };
  }

  async destroy(name: string): Promise<void> {
    await nextTurn();
    if (this.#contents.get(name)?.openBy !== undefined) throw refused(`the store ${name} is in use`);
    this.#contents.delete(name);
  }
}

class MemoryStore implements KeyValue {
  readonly #name: string;
  readonly #content: Content;

  constructor(name: string, content: Content) {
    this.#name = name;
    this.#content = content;
    content.openBy = this;
  }

  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    const text = textOf(key);
    await this.#turn();
    return this.#content.get(text);
  }

  async batch(operations: readonly KeyValueOperation[]): Promise<void> {
    assert(this.#content.openBy === this, `the store ${this.#name} is closed`);
    for (const operation of operations) {
      if (operation.kind === "put") this.#content.put(textOf(operation.key), new Uint8Array(operation.value));
      else this.#content.delete(textOf(operation.key));
    }
    await this.#turn();
  }

  async *range(range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    await this.#turn();
    for (const [key, value] of this.#content.find(range)) yield [bytesOf(key), new Uint8Array(value)];
  }

  async close(): Promise<void> {
    if (this.#content.openBy === this) this.#content.openBy = undefined;
    await nextTurn();
  }

  #turn(): Promise<void> {
    return this.#content.openBy === this ? nextTurn() : Promise.reject(refused(`the store ${this.#name} is closed`));
  }
}

const refused = (message: string): FailureError =>
  new FailureError({ code: "failedPrecondition", reason: "conflict", message, applied: "no" });

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "latin1"));
