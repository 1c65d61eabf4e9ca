/**
 * Faults of the folders of lock services that replicate the metadata store. One fault at a time: the next waits until every member has its
 * standing (docs/design/consensus.md, "Not covered").
 */
import type { Prng } from "@stamp/base";
import { memberStoreName } from "@stamp/lock-service";
import type { Simulation } from "@stamp/virtual-time";

interface Facts {
  readonly full: boolean;
  readonly store: number;
}

export class MemberFolders {
  readonly #sim: Simulation;
  readonly #prng: Prng;
  readonly #members: readonly string[];
  /** Puts back the folder of a member as it was at an earlier time, and its number. */
  #older: { readonly name: string; readonly store: number; readonly putBack: () => void } | undefined;
  /** True if a member is down for a fault of its folder. */
  #striking = false;

  constructor(sim: Simulation, prng: Prng, members: readonly string[]) {
    this.#sim = sim;
    this.#prng = prng;
    this.#members = members;
  }

  /** Returns false if a folder has been struck, and not every member has its standing again. */
  strike(lastsMs: number): boolean {
    const sim = this.#sim;
    const standing = this.#members.every((name) => sim.isUp(name) && !sim.isPaused(name) && this.#facts(name)?.full === true);
    if (this.#striking || !standing) return false;
    const older = this.#older;
    const name = older?.name ?? this.#prng.pick(this.#members);
    const { store } = this.#facts(name) as Facts;
    this.#striking = true;
    sim.crash(name, { unsynced: "lost", stayDown: true });
    const kind = older !== undefined && older.store === store ? "older" : this.#prng.pick(["keep", "lost", "forgets", "corrupt"] as const);
    sim.note("member-folder", `${name} ${kind}`);
    this.#older = undefined;
    const state = sim.keyValue(name);
    if (kind === "older") older?.putBack();
    else if (kind === "keep") this.#older = { name, store, putBack: state.saved(memberStoreName(store)) };
    else if (kind === "forgets") state.forget(memberStoreName(store));
    else if (kind === "corrupt") state.corrupt(memberStoreName(store));
    else {
      sim.disk(name).wipe();
      state.wipe();
    }
    void sim.sleep(this.#prng.float() * lastsMs).then(() => {
      this.#striking = false;
      sim.restart(name);
    });
    return true;
  }

  #facts(name: string): Facts | undefined {
    return this.#sim.role(name)?.status.facts.consensus as Facts | undefined;
  }
}
