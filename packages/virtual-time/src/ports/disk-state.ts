/**
 * The disk of one simulated machine. It outlives the incarnations of its process.
 *
 * Which faults it may suffer, and when: a crash with loss of power keeps any part of what was not synced (content: see FileState;
 * names: each create, rename and remove that no `syncFolder` covered is kept or lost, a rename as a whole); an I/O error, a failed
 * fsync or a full disk come when a test or a fault schedule asks for them; a flipped bit comes by `corrupt`. A failed fsync makes
 * nothing durable, and neither does any while the disk lies.
 *
 * With `lanes` it does so many operations at once, and is not fair: what waits for the file that it served last goes first, so that a file
 * of which somebody always wants more keeps everybody else waiting.
 */
import type { Prng } from "@stamp/base";
import type { DiskErrorKind } from "@stamp/ports";
import { FileState } from "./disk-file-state.ts";

export interface DiskOptions {
  /** Typical latencies in microseconds; each operation takes between a half and twice of it, rarely (`slowChance`) 50 times. */
  readonly readUs: number;
  readonly writeUs: number;
  readonly syncUs: number;
  readonly slowChance: number;
  /** Operations done at once; 0: as many as are asked for. */
  readonly lanes: number;
  readonly totalBytes: number;
  /** Number of files that there is room for; undefined: no fixed number. */
  readonly totalFiles?: number;
  /** Chance that a changed page is torn at a crash. */
  readonly tornChance: number;
}

export const defaultDiskOptions: DiskOptions = {
  readUs: 60,
  writeUs: 30,
  syncUs: 500,
  slowChance: 0,
  lanes: 0,
  totalBytes: 2 ** 34,
  tornChance: 0.2,
};

export type DiskOperation = "read" | "write" | "sync" | "open" | "name";

type NameChange =
  | { readonly kind: "set"; readonly path: string; readonly file: FileState }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "rename"; readonly from: string; readonly to: string; readonly file: FileState };

interface Waiting {
  readonly path: string;
  readonly begin: () => void;
}

export class SimDiskState {
  options: DiskOptions;
  /** Multiplies every latency: a dying disk. */
  slowFactor = 1;
  /** True if the disk says that it synced and has not: a loss of power takes what came since it began to lie. */
  lying = false;
  /** Time until which new reads hang in their lane, in microseconds. */
  readsHangUntilUs = 0;
  #waiting: Waiting[] = [];
  #inLanes = 0;
  /** Number of crashes: work that was in a lane before one does not leave it. */
  #crashes = 0;
  #lastPath = "";
  readonly #prng: Prng;
  #names = new Map<string, FileState>();
  #durableNames = new Map<string, FileState>();
  #changes: NameChange[] = [];
  /** Folders, which stay when the last name in them is gone. */
  readonly #folders = new Set<string>();
  readonly #pendingAtomic = new Map<FileState, string>();
  readonly #planned: { operation: DiskOperation; kind: DiskErrorKind; pathPart: string }[] = [];

  constructor(options: DiskOptions, prng: Prng) {
    this.options = options;
    this.#prng = prng;
  }

  // ---- what a test or a fault schedule does

  /** Flips bits of one byte of a file, durably. */
  corrupt(path: string, offsetBytes: number, mask = 0x01): void {
    const file = this.#names.get(path);
    if (!file) throw new Error(`no file ${path}`);
    file.flip(offsetBytes, mask);
  }

  /** Makes the next operation of this kind on a path with `pathPart` fail. A failed write may have written a first part. */
  failNext(operation: DiskOperation, kind: DiskErrorKind = operation === "sync" ? "syncFailed" : "io", pathPart = ""): void {
    this.#planned.push({ operation, kind, pathPart });
  }

  /** Failures that were asked for and did not come yet, never come. */
  forgetPlans(): void {
    this.#planned.length = 0;
  }

  /** Loses a file, durably. */
  lose(path: string): void {
    this.#names.delete(path);
    this.#durableNames.delete(path);
    this.#changes = this.#changes.filter((change) =>
      change.kind === "rename" ? change.from !== path && change.to !== path : change.path !== path,
    );
  }

  /** Returns the first bytes of a file with the writes that are not synced. */
  headOf(path: string, lengthBytes: number): Uint8Array {
    return this.#names.get(path)?.read(0, lengthBytes) ?? new Uint8Array(0);
  }

  /** Returns a function that durably puts the file back into its present state. */
  saved(path: string): () => void {
    const content = this.#names.get(path)?.read(0, this.sizeOf(path) ?? 0);
    return () => {
      this.lose(path);
      if (content !== undefined) this.endAtomic(path, this.beginAtomic(path, content.slice()));
    };
  }

  /** Makes the disk new and empty. */
  wipe(): void {
    this.#names = new Map();
    this.#durableNames = new Map();
    this.#changes = [];
    this.#folders.clear();
    this.#pendingAtomic.clear();
  }

  paths(): string[] {
    return [...this.#names.keys()].sort();
  }

  sizeOf(path: string): number | undefined {
    return this.#names.get(path)?.sizeBytes;
  }

  // ---- what the port uses

  latencyUs(kind: "readUs" | "writeUs" | "syncUs"): number {
    const slow = this.options.slowChance > 0 && this.#prng.chance(this.options.slowChance) ? 50 : 1;
    return Math.ceil(this.options[kind] * (0.5 + 1.5 * this.#prng.float()) * slow * this.slowFactor);
  }

  /** Runs `work` when a lane of the disk is free. */
  inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
    if (this.options.lanes === 0) return work();
    return new Promise<T>((resolve, reject) => {
      const crashes = this.#crashes;
      const begin = (): void => {
        const done = (): void => {
          if (crashes !== this.#crashes) return;
          this.#inLanes -= 1;
          this.#lastPath = path;
          this.#fillLanes();
        };
        work().then(resolve, reject).finally(done);
      };
      this.#waiting.push({ path, begin });
      this.#fillLanes();
    });
  }

  #fillLanes(): void {
    while (this.#waiting.length > 0 && this.#inLanes < Math.max(1, this.options.lanes)) {
      const near = this.#waiting.findIndex(({ path }) => path === this.#lastPath);
      const [next] = this.#waiting.splice(Math.max(0, near), 1);
      this.#inLanes += 1;
      next?.begin();
    }
  }

  plannedFailure(operation: DiskOperation, path: string): DiskErrorKind | undefined {
    const at = this.#planned.findIndex((plan) => plan.operation === operation && path.includes(plan.pathPart));
    return at < 0 ? undefined : this.#planned.splice(at, 1)[0]?.kind;
  }

  /** Returns how much of a write that fails was done. */
  partOf(length: number): number {
    return this.#prng.below(length + 1);
  }

  get fileCount(): number {
    return this.#names.size;
  }

  usedBytes(): number {
    let used = 0;
    for (const file of new Set(this.#names.values())) used += file.sizeBytes;
    return used;
  }

  get(path: string): FileState | undefined {
    return this.#names.get(path);
  }

  create(path: string): FileState {
    const file = new FileState();
    this.#setName(path, file);
    this.#changes.push({ kind: "set", path, file });
    return file;
  }

  remove(path: string): boolean {
    if (!this.#names.delete(path)) return false;
    this.#changes.push({ kind: "remove", path });
    return true;
  }

  rename(from: string, to: string): boolean {
    const file = this.#names.get(from);
    if (!file) return false;
    if (from === to) return true;
    this.#names.delete(from);
    this.#setName(to, file);
    this.#changes.push({ kind: "rename", from, to, file });
    return true;
  }

  list(folder: string): string[] {
    const prefix = folder === "" || folder === "." ? "" : `${folder}/`;
    const names = new Set<string>();
    for (const path of [...this.#names.keys(), ...this.#folders]) {
      if (path.startsWith(prefix)) names.add(path.slice(prefix.length).split("/", 1)[0] as string);
    }
    return [...names].sort();
  }

  #setName(path: string, file: FileState): void {
    this.#names.set(path, file);
    for (let folder = folderOf(path); folder !== "" && !this.#folders.has(folder); folder = folderOf(folder)) this.#folders.add(folder);
  }

  /** Makes the names of `folder` among the first `count` changes durable. Returns the number of changes taken out before that point. */
  syncNames(folder: string, changes: readonly NameChange[]): void {
    if (this.lying) return;
    const taken = new Set<NameChange>();
    for (const change of changes) {
      const folders = change.kind === "rename" ? [folderOf(change.from), folderOf(change.to)] : [folderOf(change.path)];
      if (!folders.includes(normal(folder))) continue;
      this.#makeNameDurable(change);
      taken.add(change);
    }
    if (taken.size > 0) this.#changes = this.#changes.filter((change) => !taken.has(change));
  }

  pendingNames(): readonly NameChange[] {
    return [...this.#changes];
  }

  beginAtomic(path: string, content: Uint8Array): FileState {
    const file = new FileState();
    file.write(0, content);
    file.makeDurable(file.order);
    this.#pendingAtomic.set(file, path);
    return file;
  }

  endAtomic(path: string, file: FileState): void {
    this.#pendingAtomic.delete(file);
    this.#setName(path, file);
    if (this.lying) {
      this.#changes.push({ kind: "set", path, file });
      return;
    }
    this.#durableNames.set(path, file);
    // Whatever was under way for this name came before.
    this.#changes = this.#changes.filter((change) => change.kind === "rename" || change.path !== path);
  }

  /** Loses power; `lose` false: only the process died and the machine kept its page cache. */
  crash(lose: boolean): number {
    let lost = 0;
    for (const [file, path] of this.#pendingAtomic) if (this.#prng.chance(0.5)) this.endAtomic(path, file);
    this.#pendingAtomic.clear();
    this.#planned.length = 0;
    this.lying = false;
    this.#waiting = [];
    this.#inLanes = 0;
    this.#crashes += 1;
    if (!lose) return 0;
    for (const change of this.#changes) {
      if (this.#prng.chance(0.5)) this.#makeNameDurable(change);
      else lost += 1;
    }
    this.#changes = [];
    this.#names = new Map(this.#durableNames);
    for (const file of new Set(this.#names.values())) if (file.dirty) lost += file.crash(this.#prng, this.options.tornChance);
    return lost;
  }

  #makeNameDurable(change: NameChange): void {
    switch (change.kind) {
      case "set":
        this.#durableNames.set(change.path, change.file);
        break;
      case "remove":
        this.#durableNames.delete(change.path);
        break;
      case "rename":
        if (this.#durableNames.get(change.from) === change.file) this.#durableNames.delete(change.from);
        this.#durableNames.set(change.to, change.file);
        break;
    }
  }
}

const normal = (folder: string): string => (folder === "." ? "" : folder);
const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
