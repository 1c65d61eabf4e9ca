/**
 * LevelDB stores of one process, each in a folder of its own. LevelDB's lock file keeps a second process from opening the same one.
 * A store that can't be read any more is `corrupt`: its owner knows how to rebuild it; a store that is merely in use, or a disk that
 * refuses, is a failure of the start.
 */
import { mkdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { assert, FailureError } from "@stamp/base";
import type { KeyRange, KeyValue, KeyValueOpen, KeyValueOperation, KeyValueStores } from "@stamp/ports";
import { DiskError } from "@stamp/ports";
import { ClassicLevel } from "classic-level";

type Level = ClassicLevel<Uint8Array, Uint8Array>;

const plain = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);

interface Explained {
  readonly code: string;
  readonly message: string;
}

/** LevelDB's own code and words, which abstract-level wraps as the cause. */
function explain(error: unknown): Explained {
  const { cause, code, message } = error as { cause?: Explained; code?: string; message?: string };
  return { code: cause?.code ?? code ?? "", message: cause?.message ?? message ?? String(error) };
}

class LevelStore implements KeyValue {
  readonly #level: Level;
  readonly #name: string;

  constructor(name: string, level: Level) {
    this.#name = name;
    this.#level = level;
  }

  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    try {
      const value = await this.#level.get(key);
      return value === undefined ? undefined : plain(value);
    } catch (error) {
      throw this.#failed(error, false);
    }
  }

  async batch(operations: readonly KeyValueOperation[], options: { readonly sync: boolean }): Promise<void> {
    if (operations.length === 0) return;
    try {
      await this.#level.batch(
        operations.map((operation) =>
          operation.kind === "put" ? { type: "put", key: operation.key, value: operation.value } : { type: "del", key: operation.key },
        ),
        { sync: options.sync },
      );
    } catch (error) {
      throw this.#failed(error, options.sync);
    }
  }

  async *range(range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    try {
      for await (const [key, value] of this.#level.iterator({ ...range, highWaterMarkBytes: 64 * 1024 })) yield [plain(key), plain(value)];
    } catch (error) {
      throw this.#failed(error, false);
    }
  }

  close(): Promise<void> {
    return this.#level.close();
  }

  /** LevelDB tells a full disk only by its words. What failed while syncing may be half there: the process must not go on. */
  #failed(error: unknown, syncing: boolean): Error {
    const { code, message } = explain(error);
    if (!code.startsWith("LEVEL_") || code === "LEVEL_DATABASE_NOT_OPEN") return error as Error;
    const kind = /no space left/i.test(message) ? "full" : syncing ? "syncFailed" : "io";
    return new DiskError(kind, this.#name, message);
  }
}

export class NodeKeyValueStores implements KeyValueStores {
  readonly #root: string;

  constructor(root: string) {
    this.#root = resolve(root);
  }

  #folder(name: string): string {
    assert(/^[A-Za-z0-9][A-Za-z0-9._ -]*$/.test(name), `not a name of a store: ${name}`);
    return join(this.#root, name);
  }

  async open(name: string): Promise<KeyValueOpen> {
    const folder = this.#folder(name);
    await mkdir(folder, { recursive: true });
    const existed = await isThere(join(folder, "CURRENT"));
    const level: Level = new ClassicLevel(folder, { keyEncoding: "view", valueEncoding: "view" });
    try {
      await level.open();
    } catch (error) {
      const { code, message } = explain(error);
      if (code === "LEVEL_LOCKED") {
        throw new FailureError({
          code: "failedPrecondition",
          reason: "conflict",
          message: `the store ${folder} is in use: another process (or a second role of the same name) has it open`,
          applied: "no",
        });
      }
      // A manifest or table that is missing is reported as an I/O error.
      if (code === "LEVEL_CORRUPTION" || (existed && /no such file/i.test(message))) return { kind: "corrupt", message };
      throw new FailureError({
        code: "unavailable",
        reason: "diskFailed",
        message: `the store ${folder} does not open: ${message}`,
        applied: "no",
      });
    }
    return { kind: "opened", store: new LevelStore(name, level) };
  }

  async destroy(name: string): Promise<void> {
    await rm(this.#folder(name), { recursive: true, force: true });
  }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
