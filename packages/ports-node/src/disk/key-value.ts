/**
 * LevelDB stores of one process, each in a folder of its own. LevelDB's lock file keeps a second process from opening the same one.
 * A store that can't be read any more is `corrupt`: its owner knows how to rebuild it; a store that is merely in use, or a disk that
 * refuses, is a failure of the start. Its files are read through before LevelDB opens them, which reports little of what is damaged.
 *
 * LevelDB must not be written to after a write of it failed: its log goes on behind the part that got in, and the next opening drops all of
 * that without a word. So batches go one at a time, and after a failed one the store is opened anew before the next: what was written
 * before is in the log, the torn end is cut.
 */
import { mkdir, mkdtemp, rm, stat, statfs, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { assert, FailureError } from "@stamp/base";
import type { KeyRange, KeyValue, KeyValueOpen, KeyValueOperation, KeyValueStores } from "@stamp/ports";
import { DiskError } from "@stamp/ports";
import { Level as LevelDb } from "level";
import { damageIn } from "./level-check.ts";

type Level = LevelDb<Uint8Array, Uint8Array>;

const plain = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);

interface Explained {
  readonly code: string;
  readonly message: string;
}

/** Returns LevelDB's own code and words, which abstract-level wraps as the cause. */
function explain(error: unknown): Explained {
  const { cause, code, message } = error as { cause?: Explained; code?: string; message?: string };
  return { code: cause?.code ?? code ?? "", message: cause?.message ?? message ?? String(error) };
}

const rewrittenTogether = 1_000;
type Bounds = Required<Pick<KeyRange, "gte" | "lt">>;
/** Compacts a part of the store; the types of `level` lack this call of LevelDB. */
const compacted = (level: Level, { gte, lt }: Bounds): Promise<void> =>
  (level as unknown as { compactRange(from: Uint8Array, to: Uint8Array): Promise<void> }).compactRange(gte, lt);
/** Opening writes what is in the log into a table (4 MiB at most), and a new log. */
const reopenBytes = 16 * 1024 * 1024;

class LevelStore implements KeyValue {
  readonly #folder: string;
  readonly #name: string;
  #level: Level;
  #last: Promise<void> = Promise.resolve();
  /** Number of reads under way. */
  #gets = 0;
  #noGets = (): void => {};
  /** Whoever reads one may do other things between. */
  #ranges = 0;
  /** Opening of the store anew, for which reads wait; undefined: none is under way. */
  #opening: Promise<void> | undefined;
  /** Error of a write since the store was opened; undefined: none failed. */
  #hurt: DiskError | undefined;
  #closed = false;

  constructor(folder: string, name: string, level: Level) {
    this.#folder = folder;
    this.#name = name;
    this.#level = level;
  }

  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    while (this.#opening !== undefined) await this.#opening;
    this.#gets += 1;
    try {
      const value = await this.#level.get(key);
      return value === undefined ? undefined : plain(value);
    } catch (error) {
      throw this.#failed(error, false);
    } finally {
      if (--this.#gets === 0) this.#noGets();
    }
  }

  batch(operations: readonly KeyValueOperation[], options: { readonly sync: boolean }): Promise<void> {
    if (operations.length === 0) return Promise.resolve();
    const done = this.#last.then(() => this.#write(operations, options.sync));
    this.#last = done.catch(() => {});
    return done;
  }

  async #write(operations: readonly KeyValueOperation[], sync: boolean): Promise<void> {
    if (this.#hurt !== undefined) await this.#openAnew(this.#hurt);
    try {
      await this.#level.batch(
        operations.map((operation) =>
          operation.kind === "put" ? { type: "put", key: operation.key, value: operation.value } : { type: "del", key: operation.key },
        ),
        { sync },
      );
    } catch (error) {
      const failed = this.#failed(error, sync);
      if (failed instanceof DiskError) this.#hurt = failed;
      throw failed;
    }
  }

  /** Throws what hurt it while that can't be done: a failed sync for ever, a full disk until there is room, and no range is being read. It can be read until then. */
  async #openAnew(hurt: DiskError): Promise<void> {
    if (hurt.kind === "syncFailed" || this.#closed) throw hurt;
    const { bavail, bsize } = await statfs(this.#folder);
    if (bavail * bsize < reopenBytes || this.#ranges > 0) throw hurt;
    let opened = (): void => {};
    this.#opening = new Promise((resolve) => {
      opened = resolve;
    });
    try {
      if (this.#gets > 0) {
        await new Promise<void>((resolve) => {
          this.#noGets = resolve;
        });
      }
      await this.#level.close();
      this.#level = levelOf(this.#folder);
      await this.#level.open();
      this.#hurt = undefined;
    } catch (error) {
      throw this.#failed(error, false);
    } finally {
      this.#opening = undefined;
      opened();
    }
  }

  async *range(range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    while (this.#opening !== undefined) await this.#opening;
    this.#ranges += 1;
    try {
      for await (const [key, value] of this.#level.iterator({ ...range, highWaterMarkBytes: 64 * 1024 })) yield [plain(key), plain(value)];
    } catch (error) {
      throw this.#failed(error, false);
    } finally {
      this.#ranges -= 1;
    }
  }

  /**
   * LevelDB drops old values when it merges two of its files. A log that it writes out as the only file of these keys has old values beside new
   * ones, and a compaction leaves that file alone: so every key is written once more before the second compaction.
   */
  forgetOld(range: Bounds): Promise<void> {
    const done = this.#last.then(async () => {
      await compacted(this.#level, range);
      let together: KeyValueOperation[] = [];
      for await (const [key, value] of this.range(range)) {
        together.push({ kind: "put", key, value });
        if (together.length < rewrittenTogether) continue;
        await this.#write(together, false);
        together = [];
      }
      await this.#write(together, true);
      await compacted(this.#level, range);
    });
    this.#last = done.catch(() => {});
    return done;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
    await this.#level.close();
    openHere.delete(this.#folder);
  }

  /** Returns an error as DiskError. LevelDB tells a full disk in words only. A failed sync may be half there: the process must not go on. */
  #failed(error: unknown, syncing: boolean): Error {
    const { code, message } = explain(error);
    if (!code.startsWith("LEVEL_") || code === "LEVEL_DATABASE_NOT_OPEN") return error as Error;
    const kind = /no space left/i.test(message) ? "full" : syncing ? "syncFailed" : "io";
    return new DiskError(kind, this.#name, message);
  }
}

const levelOf = (folder: string): Level => new LevelDb(folder, { keyEncoding: "view", valueEncoding: "view" });

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
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const existed = await isThere(join(folder, "CURRENT"));
    const damage = existed && !openHere.has(folder) ? await damageFound(folder) : undefined;
    if (damage !== undefined) return { kind: "corrupt", message: damage };
    const level = levelOf(folder);
    try {
      await level.open();
      openHere.add(folder);
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
    return { kind: "opened", store: new LevelStore(folder, name, level) };
  }

  async destroy(name: string): Promise<void> {
    await rm(this.#folder(name), { recursive: true, force: true });
  }
}

/** Folders of stores that this process has open. */
const openHere = new Set<string>();

/**
 * Finds damage in a store that nobody has open; LevelDB would drop some of it without a word. A process that has the
 * store open may be writing, so damage counts only if it is still there while the store's lock is held.
 */
async function damageFound(folder: string): Promise<string | undefined> {
  if ((await damageIn(folder)) === undefined) return undefined;
  const probe = await mkdtemp(join(folder, "probe-"));
  try {
    // An empty LevelDB whose lock is that of the store: it holds the lock without reading the store. The link comes first: a LevelDB
    // begins to open, and makes its own lock, as soon as it is constructed.
    await symlink("../LOCK", join(probe, "LOCK"));
    const level = levelOf(probe);
    try {
      await level.open();
      return await damageIn(folder);
    } finally {
      await level.close();
    }
  } catch (error) {
    if (explain(error).code === "LEVEL_LOCKED") return undefined;
    throw error;
  } finally {
    await rm(probe, { recursive: true, force: true });
  }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
