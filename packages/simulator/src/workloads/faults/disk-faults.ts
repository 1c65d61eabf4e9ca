/**
 * Faults of disks and of the stores on them. Those that destroy what was durable hit one machine of a run, the weak one; damage of a
 * fragment hits one more. The others must be enough.
 */
import type { Prng } from "@stamp/base";
import { decodeSegmentHeader, segmentRecordsOffset } from "@stamp/extent";
import type { Simulation } from "@stamp/virtual-time";
import { defaultDiskOptions, digest } from "@stamp/virtual-time";
import type { DiskFaultKind } from "./fault-kinds.ts";
import { damageFragment } from "./fragment-faults.ts";
import { MemberFolders } from "./member-folders.ts";
import { forgetTables, loseTable } from "./table-faults.ts";

/** Bits of a header are another fault: the whole file is not what it says. */
const firstBlockBytes = 4_096;

export interface Machines {
  /** The machine that may lose what was durable. */
  readonly weak: string;
  /** Machines that may lose a fragment that was durable. */
  readonly fragile: readonly string[];
  /** Processes that faults may hit. */
  readonly targets: readonly string[];
}

export class DiskFaults {
  readonly #sim: Simulation;
  readonly #prng: Prng;
  readonly #weak: string;
  readonly #fragile: readonly string[];
  readonly #targets: readonly string[];
  readonly #members: MemberFolders;
  #replacedTimes = 0;
  /** A store has forgotten something, until it is served nevertheless or all of it is put back. */
  #forgetful: Promise<void> | undefined;

  constructor(sim: Simulation, prng: Prng, { weak, fragile, targets }: Machines) {
    this.#sim = sim;
    this.#prng = prng;
    this.#weak = weak;
    this.#fragile = fragile;
    this.#targets = targets;
    this.#members = new MemberFolders(
      sim,
      prng,
      targets.filter((name) => name.startsWith("lock-service-")),
    );
  }

  /** Resolves when no store lacks what it has forgotten. */
  get remembered(): Promise<void> | undefined {
    return this.#forgetful;
  }

  /** Returns false if this fault can't strike now. */
  inflict(kind: DiskFaultKind, target: string, lastsMs: number): boolean {
    const sim = this.#sim;
    const prng = this.#prng;
    switch (kind) {
      case "slow-disk":
        sim.note("slow-disk", target);
        sim.disk(target).slowFactor = 20 + prng.below(600);
        void sim.sleep(lastsMs).then(() => {
          sim.disk(target).slowFactor = 1;
        });
        return true;
      case "failed-fsync":
        sim.note("failed-fsync", target);
        sim.disk(target).failNext("sync");
        return true;
      case "full-disk":
        sim.note("full-disk", target);
        this.#fill(target, lastsMs);
        return true;
      case "lost-table":
        loseTable(sim, prng.pick(this.#targets.filter((name) => name.startsWith("extent-node-"))));
        return true;
      case "bit-rot":
        return this.#rot();
      case "lost-file":
        return this.#loseFile();
      case "replaced-disk":
        return this.#replaceDisk();
      case "old-replica":
        return this.#oldReplica(lastsMs);
      case "fragment-damage":
        return damageFragment(sim, prng, prng.pick(this.#fragile));
      case "lying-disk":
        return this.#lie(lastsMs);
      case "forgetful-table":
        return forgetTables(
          sim,
          prng,
          this.#targets.filter((name) => name.startsWith("extent-node-")),
        );
      case "member-folder":
        return this.#members.strike(lastsMs);
      case "forgetful-store":
        return this.#forgetStore(this.#targets.find((name) => name.startsWith("lock-service-")) as string);
    }
  }

  #fill(name: string, lastsMs: number): void {
    const disk = this.#sim.disk(name);
    disk.options = { ...disk.options, totalBytes: disk.usedBytes() + this.#prng.below(40_000) };
    void this.#sim.sleep(lastsMs).then(() => {
      disk.options = { ...disk.options, totalBytes: defaultDiskOptions.totalBytes };
    });
  }

  #rot(): boolean {
    const disk = this.#sim.disk(this.#weak);
    const files = disk.paths().filter((path) => path.endsWith(".extent") && (disk.sizeOf(path) ?? 0) > firstBlockBytes);
    if (files.length === 0) return false;
    const path = this.#prng.pick(files);
    const at = firstBlockBytes + this.#prng.below((disk.sizeOf(path) as number) - firstBlockBytes);
    this.#sim.note("bit-rot", `${this.#weak} ${path} at ${at}`);
    disk.corrupt(path, at, 1 << this.#prng.below(8));
    return true;
  }

  /** Never the only segment that is left: without a journal a node waits for a person. */
  #loseFile(): boolean {
    const sim = this.#sim;
    const name = this.#weak;
    const disk = sim.disk(name);
    const paths = disk.paths();
    const [newest, other] = paths
      .filter((path) => path.endsWith(".segment"))
      .flatMap((path) => {
        const header = decodeSegmentHeader(digest.crc32c, disk.headOf(path, segmentRecordsOffset));
        return header.kind === "ok" ? [{ path, generation: header.value.generation }] : [];
      })
      .sort((a, b) => b.generation - a.generation);
    const extents = paths.filter((path) => path.endsWith(".extent"));
    const lost = this.#prng.chance(0.5) && other ? newest?.path : extents.length > 0 ? this.#prng.pick(extents) : undefined;
    if (lost === undefined) return false;
    sim.note("lost-file", `${name} ${lost}`);
    sim.crash(name, { unsynced: "kept", stayDown: true });
    disk.lose(lost);
    void sim.sleep(this.#prng.float() * 3_000).then(() => sim.restart(name));
    return true;
  }

  #forgetStore(name: string): boolean {
    const sim = this.#sim;
    if (this.#forgetful !== undefined || !sim.isUp(name)) return false;
    sim.crash(name, { unsynced: "kept", stayDown: true });
    const putBack = sim.keyValue(name).forget("metadata");
    sim.restart(name);
    if (putBack === undefined) return false;
    sim.note("forgetful-store", name);
    this.#forgetful = this.#untilPutBack(name, putBack).then(() => {
      this.#forgetful = undefined;
    });
    return true;
  }

  /** The lost part may never have been acknowledged: then the store is served. */
  async #untilPutBack(name: string, putBack: () => void): Promise<void> {
    const sim = this.#sim;
    for (;;) {
      await sim.sleep(50);
      const status = sim.role(name)?.status;
      if (status?.ready === true) return;
      if (status?.state !== "damaged") continue;
      sim.crash(name, { unsynced: "kept", stayDown: true });
      putBack();
      sim.restart(name);
      return;
    }
  }

  #replaceDisk(): boolean {
    if (this.#replacedTimes >= 2) return false;
    this.#replacedTimes += 1;
    this.empty(this.#weak, this.#prng.float() * 3_000);
    return true;
  }

  empty(name: string, backAfterMs: number): void {
    const sim = this.#sim;
    sim.note("replaced-disk", name);
    sim.crash(name, { unsynced: "lost", stayDown: true });
    sim.disk(name).wipe();
    sim.keyValue(name).wipe();
    void sim.sleep(backAfterMs).then(() => sim.restart(name));
  }

  #oldReplica(lastsMs: number): boolean {
    const sim = this.#sim;
    sim.note("old-replica", this.#weak);
    sim.crash(this.#weak, { unsynced: "lost", stayDown: true });
    void sim.sleep(lastsMs).then(() => sim.restart(this.#weak));
    return true;
  }

  #lie(lastsMs: number): boolean {
    const sim = this.#sim;
    const name = this.#weak;
    sim.note("lying-disk", name);
    sim.disk(name).lying = true;
    void sim.sleep(lastsMs).then(() => {
      if (sim.disk(name).lying) sim.crash(name, { unsynced: "lost" });
    });
    return true;
  }
}
