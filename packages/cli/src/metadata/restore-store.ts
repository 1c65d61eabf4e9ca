/**
 * `stamp metadata restore`: puts a copy, or what a surviving lock service holds, in the place of the metadata store of stopped lock services.
 *
 *   <lock service>/restoring/               the new store, while it is written
 *   <lock service>/files/metadata-restore   note: the new store is whole; written before anything of before is touched, removed at the end
 *   <lock service>/replaced-<time>/         what was there, of each lock service in its own folder
 *
 * Invariants:
 *   - No lock service of these folders can run meanwhile: their identities are held.
 *   - Nothing of before is touched until the new store is whole. Then it is moved, never deleted.
 *   - A restore that was interrupted after that is finished by the next one, whatever that one was to restore. No lock service serves in between.
 *   - Each step may be done again.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ok, utf8 } from "@stamp/base";
import { metadataStoreName, restoreMetadata, restoreNotePath, whileHeld, whileStopped } from "@stamp/lock-service";
import { markPath, silentLogger } from "@stamp/ports";
import { inWords, nodeWorld } from "@stamp/ports-node";
import { CommandError } from "../exit.ts";
import type { TellProgress } from "../progress.ts";
import {
  answeredFailure,
  chosenSource,
  type LockServiceFolder,
  type RestoreSource,
  type SourceFacts,
  type SurvivingFolder,
  sourceAt,
  survivedIn,
} from "./restore-source.ts";

export interface RestorePlan {
  /** Lock services whose folders are here. */
  readonly places: readonly LockServiceFolder[];
  /** Name of the lock service that begins with the restored store. It may be on another host, or in another container. */
  readonly first: string;
  /** Number of the lock services that replicate the metadata; 0: they do not. */
  readonly members: number;
  /** Path of a copy, or of a lock service's folder; undefined: what lock services still hold. */
  readonly file: string | undefined;
  /** True if lock services may hold something, which is moved aside. */
  readonly replace: boolean;
}

export interface RestoreResult extends SourceFacts {
  /** Name of the lock service whose store was newer than any copy; undefined: a copy was restored. */
  readonly member?: string;
  /** Folder of the store; undefined: it is not among these folders. */
  readonly restoredTo?: string;
  readonly keys?: number;
  /** Folders that have what was there. */
  readonly aside: readonly string[];
  /** True if this finished a restore that was begun before. */
  readonly wentOn: boolean;
}

type Note = Omit<RestoreResult, "wentOn" | "aside"> & { readonly asideName: string };

/** Restores a store; `step` is called with a text before each change. */
export async function restoreStore(
  plan: RestorePlan,
  tellProgress: TellProgress = () => {},
  step: (what: string) => void = () => {},
): Promise<RestoreResult> {
  const held = async (left: readonly LockServiceFolder[]): Promise<RestoreResult> => {
    const [next, ...others] = left;
    if (next === undefined) return new Restore(plan, tellProgress, step).run();
    const hold = plan.members > 0 ? whileHeld : whileStopped;
    return answeredFailure(await hold(worldOf(next.folder), async () => ok(await held(others))));
  };
  try {
    return await held(plan.places);
  } catch (error) {
    throw error instanceof CommandError ? error : new CommandError(inWords(error as Error));
  }
}

class Restore {
  readonly #plan: RestorePlan;
  readonly #tellProgress: TellProgress;
  readonly #step: (what: string) => void;

  constructor(plan: RestorePlan, tellProgress: TellProgress, step: (what: string) => void) {
    this.#plan = plan;
    this.#tellProgress = tellProgress;
    this.#step = step;
  }

  async run(): Promise<RestoreResult> {
    const first = this.#plan.places.find(({ name }) => name === this.#plan.first);
    const begun = first && noteIn(first.folder);
    if (begun !== undefined) return this.#finish(begun, true);
    for (const { folder } of this.#plan.places) this.#mayReplace(folder);
    const note = await this.#prepared(first);
    return this.#finish(note, false);
  }

  #mayReplace(folder: string): void {
    const [there] = [...replacedIn(folder)];
    if (there !== undefined && !this.#plan.replace)
      throw new CommandError(`${join(folder, there)} is there: give --replace to move it aside`);
  }

  /** Chooses the source of the restore, and makes the new store from it. */
  async #prepared(first: LockServiceFolder | undefined): Promise<Note> {
    const { file, places, members } = this.#plan;
    const given = file === undefined ? undefined : await sourceAt(file, this.#tellProgress);
    const survived: SurvivingFolder[] = [];
    try {
      for (const place of members > 0 ? places : []) {
        const found = await survivedIn(place);
        if (found !== undefined) survived.push(found);
      }
      const source = chosenSource(given, survived, { first: this.#plan.first, isFirstHere: first !== undefined, members });
      const { about, member } = source;
      const asideName = `replaced-${Date.now()}`;
      if (first === undefined) return { ...about, asideName };
      const keys = await this.#build(first.folder, source);
      const note = { ...about, ...(member === undefined ? {} : { member }), keys, asideName };
      this.#step("note");
      await worldOf(first.folder).disk.writeAtomically(restoreNotePath, utf8(JSON.stringify(note)));
      return note;
    } finally {
      await given?.close();
      for (const { survivor } of survived) await survivor.close();
    }
  }

  async #build(folder: string, source: RestoreSource): Promise<number> {
    this.#step("build");
    const building = join(folder, "restoring");
    await rm(building, { recursive: true, force: true });
    const world = worldOf(building);
    // It is read twice: once for what can't be read, once to be written.
    const tell = (how: string): void => this.#tellProgress(`writing the store: ${how} of the snapshot, in two rounds`);
    const keys = answeredFailure(await source.withSnapshot((snapshot) => restoreMetadata(world, snapshot), tell));
    for (const part of ["stores", "files", "."]) await syncFolder(join(building, part));
    await syncFolder(folder);
    return keys;
  }

  /** Moves, renames and removes. Each step may have been done before. */
  async #finish({ asideName, ...note }: Note, wentOn: boolean): Promise<RestoreResult> {
    const { places, first: firstName } = this.#plan;
    const aside: string[] = [];
    let restoredTo: string | undefined;
    // The first one is last: until its note is gone, it does not serve.
    for (const { name, folder } of places.toSorted((one, other) => Number(one.name === firstName) - Number(other.name === firstName))) {
      const building = join(folder, "restoring");
      for (const path of replacedIn(folder))
        if (name !== firstName || !newPaths.includes(path) || existsSync(join(building, path))) await this.#move(folder, path, asideName);
      if (existsSync(join(folder, asideName))) aside.push(join(folder, asideName));
      if (name !== firstName) continue;
      for (const path of newPaths) if (existsSync(join(building, path))) await this.#rename(join(building, path), join(folder, path));
      this.#step("remove restoring");
      await rm(building, { recursive: true, force: true });
      this.#step("remove note");
      const { disk } = worldOf(folder);
      await disk.remove(restoreNotePath);
      await disk.syncFolder("");
      restoredTo = join(folder, newPaths[0]);
    }
    return { ...note, ...(restoredTo === undefined ? {} : { restoredTo }), aside, wentOn };
  }

  async #move(folder: string, path: string, asideName: string): Promise<void> {
    // A lock service may have made another one between two restores, of which the first was interrupted.
    let target = join(folder, asideName, path);
    for (let number = 2; existsSync(target); number++) target = join(folder, asideName, `${path}-${number}`);
    await mkdir(join(target, ".."), { recursive: true, mode: 0o700 });
    await this.#rename(join(folder, path), target);
  }

  async #rename(from: string, to: string): Promise<void> {
    this.#step(`${from} to ${to}`);
    await rename(from, to);
    for (const path of [from, to]) await syncFolder(join(path, ".."));
  }
}

/** Store and mark of the restored store, below the folder of the first lock service. */
const newPaths = [join("stores", metadataStoreName), join("files", markPath(metadataStoreName))] as const;

/** Returns the paths that a restore replaces in the folder of a lock service. */
function replacedIn(folder: string): string[] {
  const named = (part: string, isReplaced: (name: string) => boolean): string[] =>
    existsSync(join(folder, part))
      ? readdirSync(join(folder, part))
          .filter(isReplaced)
          .map((name) => join(part, name))
      : [];
  return [
    ...named("stores", (name) => name === metadataStoreName || name.startsWith("consensus-")),
    ...named("files", (name) => name === markPath(metadataStoreName) || name === "consensus-store"),
  ];
}

function noteIn(folder: string): Note | undefined {
  const path = join(folder, "files", restoreNotePath);
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Note;
  } catch {
    throw new CommandError(`${path} can't be read: it notes a restore that was begun, whose new store is in ${join(folder, "restoring")}`);
  }
}

const worldOf = (folder: string) => nodeWorld({ dataDir: folder, name: "metadata-restore", logger: silentLogger });

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
