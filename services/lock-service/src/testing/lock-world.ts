/** A lock service on simulated time, disk and network, with holders of leases beside it. */
import { type RuleName, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { LeaseKeeper } from "@stamp/metadata-store";
import { Simulation } from "@stamp/virtual-time";
import { LockService } from "@stamp/wire";
import { lockServiceSchema } from "../config.ts";
import { LockServiceRole } from "../lock-service.ts";

export function simOf(options: { seed?: number; init?: boolean; without?: RuleName[] } = {}): Simulation {
  const sim = new Simulation({ seed: options.seed ?? 11, rules: rulesWithout(...(options.without ?? [])) });
  const config = lockServiceSchema.parse({ name: "lock", listen: "lock", init: options.init ?? true });
  sim.addProcess("lock", (world) => new LockServiceRole(world, config));
  return sim;
}

export interface Folder {
  readonly id: string;
  stampId?: string;
}

export const keeperOf = (
  sim: Simulation,
  holder: string,
  lost: string[] = [],
  incarnation = 1,
  folder: Folder = { id: holder },
  heldQuestionMs = 0,
): LeaseKeeper =>
  new LeaseKeeper(sim.world(holder), {
    lockService: "lock",
    leaseName: "leader",
    holder,
    identity: {
      id: folder.id,
      incarnation,
      instance: `${folder.id}, start ${incarnation}`,
      get stampId() {
        return folder.stampId;
      },
      bindStamp: async (stampId) => {
        folder.stampId = stampId;
      },
    },
    address: `${holder}-address`,
    heldQuestionMs,
    onLost: (why) => lost.push(why),
  });

export const lockOf = (sim: Simulation, name = "tester") => sim.world(name).transport.client("lock", LockService);
export const write = (key: string, text: string) => ({ key, value: utf8(text) });

export async function restartLock(sim: Simulation): Promise<void> {
  sim.crash("lock", { unsynced: "lost", silent: false, stayDown: true });
  sim.restart("lock");
  await sim.sleep(20);
}

/** Acquires by hand, so that nothing renews; gives the epoch. */
export async function grant(sim: Simulation, termMs = 1_000): Promise<bigint> {
  const request = { name: "ps/x", holder: "x", identity: "x", incarnation: 1n, address: "x", termMs };
  return unwrap(await lockOf(sim).acquireLease(request, { timeoutMs: 500 })).leaseEpoch;
}
