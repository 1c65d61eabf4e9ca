/**
 * The folder of a stamp: one folder per role, and `being-made` while a stamp is being made there.
 *
 * Invariants:
 * - A folder has one stamp of this process. Stores of the roles have locks against other processes.
 * - `being-made` is there from before the first role has a folder, or before a reset removes the first, until the stamp has served. What a
 *   process that ended meanwhile has left is removed, because nothing in it was ever served.
 * - Nothing but folders of roles is removed.
 */
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folderOfRole = /^(?:lock-service|extent-node|stream-manager|partition-manager|partition-server|front-end)-\d+$/;
const marker = "being-made";
/** Files by which the folder of a cluster of `stamp up` is known. */
const ofCluster = ["cluster.json", "stamp.json"];

/** Folders that stamps of this process have. */
const taken = new Set<string>();

export class DataFolder {
  readonly path: string;
  readonly #real: string;

  /** Makes the folder if it is absent. Throws if the folder may belong to something else. */
  constructor(path: string) {
    if (path === "") throw new Error('"dataDir" is empty: name a folder, or leave it out to keep the data in memory');
    this.path = path;
    mkdirSync(path, { recursive: true });
    this.#real = realpathSync(path);
    if (taken.has(this.#real)) throw new Error(`another stamp of this process uses ${path}: stop it first, or name another folder`);
    const found = ofCluster.find((name) => existsSync(join(path, name)));
    if (found !== undefined) throw new Error(`${path} is the folder of a cluster of "stamp up" (it has ${found}): name another folder`);
    if (existsSync(join(path, marker))) this.#removeRoles();
    const roles = this.#roles();
    // The others make the folder of one of three anew.
    if (roles.length > 0 && !roles.some((name) => name.startsWith("lock-service-")))
      throw new Error(`${path} has no lock-service-1, but ${roles.join(", ")}: put it back, or name another folder`);
    taken.add(this.#real);
  }

  /** True before the first start of a stamp in the folder. */
  get isNew(): boolean {
    return this.#roles().length === 0;
  }

  /** Number of copies of all data; 0 in a new folder. */
  get replicas(): number {
    return this.#roles().filter((name) => name.startsWith("extent-node-")).length;
  }

  /** Number of lock services; 0 in a new folder. The folder of one of three may be lost. */
  get lockServices(): number {
    const names = this.#roles().filter((name) => name.startsWith("lock-service-"));
    return names.length === 1 && names[0] === "lock-service-1" ? 1 : Math.min(names.length, 1) * 3;
  }

  /** Begins to make a new stamp: what is there goes. No role may run. */
  empty(): void {
    writeFileSync(join(this.path, marker), "");
    this.#removeRoles();
  }

  /** Says that the new stamp has served. */
  made(): void {
    rmSync(join(this.path, marker), { force: true });
  }

  giveBack(): void {
    taken.delete(this.#real);
  }

  #roles(): string[] {
    return readdirSync(this.path).filter((name) => folderOfRole.test(name));
  }

  #removeRoles(): void {
    for (const role of this.#roles()) rmSync(join(this.path, role), { recursive: true, force: true });
  }
}
