/** Faults of fragments: bytes of the file rot, or the file is gone when the machine comes back. */
import type { Prng } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";

const backWithinMs = 3_000;

/** Damages one fragment on a machine. False: it holds none. */
export function damageFragment(sim: Simulation, prng: Prng, name: string): boolean {
  const disk = sim.disk(name);
  const fragments = disk.paths().filter((path) => path.endsWith(".fragment"));
  if (fragments.length === 0) return false;
  const path = prng.pick(fragments);
  const sizeBytes = disk.sizeOf(path) ?? 0;
  // Without rule `fragmentSynced` a fragment may be empty after a power loss.
  if (prng.chance(0.6) && sizeBytes > 0) {
    const at = prng.below(sizeBytes);
    sim.note("fragment rots", `${name} ${path} at ${at}`);
    disk.corrupt(path, at, 1 << prng.below(8));
    return true;
  }
  sim.note("fragment is lost", `${name} ${path}`);
  sim.crash(name, { unsynced: "kept", stayDown: true });
  disk.lose(path);
  void sim.sleep(prng.float() * backWithinMs).then(() => sim.restart(name));
  return true;
}
