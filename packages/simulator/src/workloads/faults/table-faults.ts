/** Faults of the tables of extent nodes: LevelDB that can't be read, or that opens without its end. Both are caches of what is durable. */
import type { Prng } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { historyMax } from "@stamp/virtual-time";

const table = "extents";

/** The table of an extent node can't be read at its next start. */
export function loseTable(sim: Simulation, name: string): void {
  sim.note("lost-table", name);
  sim.crash(name, { unsynced: "kept" });
  sim.keyValue(name).corrupt(table, "the fault schedule broke it");
}

/** Tables lose their last synced batches and open. Half of the time those of all nodes: a node that notices it loses nothing. */
export function forgetTables(sim: Simulation, prng: Prng, names: readonly string[]): boolean {
  const up = prng.shuffle(names.filter((name) => sim.isUp(name)));
  const hit = prng.chance(0.5) ? up : up.slice(0, 1);
  for (const name of hit) {
    sim.note("forgetful-table", name);
    sim.crash(name, { unsynced: "kept", stayDown: true });
    sim.keyValue(name).forgetEnd(table, 1 + prng.below(historyMax));
    sim.restart(name);
  }
  return hit.length > 0;
}
