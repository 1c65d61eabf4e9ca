/**
 * Versions of extents in commands of the stream manager. A node that obeyed one far beyond what was given would refuse later seals, copies
 * and deletions of that extent. The stream manager records a version before it sends a command with it, so it can vouch for it.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { fromWire, StreamManager, toWire } from "@stamp/wire";
import type { LocalExtent } from "./disk/local-extent.ts";

/**
 * Distance above the version of an unsealed replica, or above 0 for an extent that is not here, up to which a version is obeyed without
 * asking: the one of its seal, or of its making. A sealed replica has no such distance, or it could be raised step by step.
 */
export const unvouchedVersionsMax = 1;
const askTimeoutMs = 1_000;

export class VouchedVersions {
  readonly #world: World;
  readonly #leader: LeaderCalls;

  constructor(world: World, lockService: string) {
    this.#world = world;
    this.#leader = new LeaderCalls(world, { lockService, leaseName: "stream-manager" });
  }

  /** True if the stream manager must be asked before a command with this version is obeyed (rule versionsVouched). */
  isFar(extent: LocalExtent | undefined, version: number): boolean {
    const known = extent?.replica.version ?? 0;
    const most = extent?.replica.state === "sealed" ? known : known + unvouchedVersionsMax;
    return version > most && this.#world.rules.on("versionsVouched");
  }

  /** Asks the stream manager that leads, and refuses a version above the recorded one; with notReady if nobody answers. */
  async vouchFor(id: number, version: number): Promise<Outcome<void>> {
    const recorded = await this.#leader.call(
      askTimeoutMs,
      (address, timeoutMs) =>
        this.#world.transport.client(address, StreamManager).locateExtents({ extentIds: [toWire(id)] }, { timeoutMs }),
      { idempotent: true },
    );
    if (!recorded.ok) {
      const { message } = recorded.failure;
      return refused("unavailable", "notReady", `version ${version} of extent ${id} can't be checked: ${message}`);
    }
    const known = recorded.value.extents.find(({ extentId }) => extentId === toWire(id));
    const last = known === undefined ? 0 : fromWire(known.version);
    if (version <= last) return ok();
    this.#world.logger.error("a command has an extent version that was never given", { extent: id, version, lastGiven: last });
    return refused("invalidArgument", "badRequest", `version ${version} of extent ${id} was never given: the last one is ${last}`);
  }
}
