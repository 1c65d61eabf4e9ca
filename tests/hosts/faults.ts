/** What is done to hosts, one fault after another, and the longest pause of a client during each. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { MovingClients, Pause } from "@stamp/drills";
import type { Host, StampHosts } from "./stamp-hosts.ts";

export interface HostFault {
  readonly name: string;
  /** Time that clients go on after the fault is there, in ms. */
  readonly lastsMs: number;
  /** Longest pause that the design allows, in ms; undefined if requests are refused by design. */
  readonly aimMs: number | undefined;
  readonly begin: (stamp: StampHosts) => Promise<Host>;
  /** Looks at what must be so at the end of the fault, before it is mended. */
  readonly during?: (stamp: StampHosts, host: Host) => Promise<void>;
  readonly end: (stamp: StampHosts, host: Host) => Promise<void>;
}

export interface Measured extends Pause {
  readonly fault: string;
  readonly host: Host;
  readonly aimMs: number | undefined;
}

/** Lease term (6 s) and two seconds (issue 30). */
const aimMs = 8_000;

const killed = (name: string, whom: (stamp: StampHosts) => Promise<Host>): HostFault => ({
  name,
  lastsMs: 12_000,
  aimMs,
  begin: async (stamp) => {
    const host = await whom(stamp);
    await stamp.kill(host);
    return host;
  },
  end: (stamp, host) => stamp.restart(host),
});

/** `refuses`: the host's front-end is not ready at the end of the fault. */
const cut = (
  name: string,
  how: (stamp: StampHosts, host: Host) => Promise<unknown>,
  whom: (stamp: StampHosts) => Promise<Host>,
  refuses = true,
): HostFault => ({
  name,
  lastsMs: 12_000,
  aimMs,
  begin: async (stamp) => {
    const host = await whom(stamp);
    await how(stamp, host);
    return host;
  },
  // A load balancer sends nobody there.
  during: async (stamp, host) => {
    const { status, text } = await stamp.frontEndReady(host);
    assert.equal(status, refuses ? 503 : 200, text);
    if (refuses) assert.match(text, /an answer of another host: none of/);
  },
  end: (stamp, host) => stamp.network.heal(host),
});

export const killLockService = killed("host of the active lock service killed", (stamp) => stamp.hostOf("lock-service"));
export const cutStreamManager = cut(
  "host of the leading stream manager cut off from the others",
  (stamp, host) => stamp.network.cut(host),
  (stamp) => stamp.hostOf("stream-manager"),
);
/** The one that leads hears no other, or is not heard: another one has to lead, and the old one must answer nobody. */
export const deafLockService = cut(
  "host of the active lock service hears nobody",
  (stamp, host) => stamp.network.cutOneWay(host, "hears nobody"),
  (stamp) => stamp.hostOf("lock-service"),
);
export const unheardLockService = cut(
  "host of the active lock service is heard by nobody",
  (stamp, host) => stamp.network.cutOneWay(host, "is heard by nobody"),
  (stamp) => stamp.hostOf("lock-service"),
);
export const killEtcdLeader: HostFault = {
  name: "etcd's leader killed",
  lastsMs: 8_000,
  aimMs,
  begin: async (stamp) => {
    const host = await stamp.etcdLeader();
    await stamp.killEtcd(host);
    return host;
  },
  end: async (stamp, host) => stamp.startEtcd(host),
};

export const allFaults: readonly HostFault[] = [
  killLockService,
  killed("host of the leading stream manager killed", (stamp) => stamp.hostOf("stream-manager")),
  killed("host of the leading partition manager killed", (stamp) => stamp.hostOf("partition-manager")),
  killed("host that serves the blobs killed", (stamp) => stamp.servingHost()),
  cutStreamManager,
  cut(
    "host of the active lock service cut off from the others",
    (stamp, host) => stamp.network.cut(host),
    (stamp) => stamp.hostOf("lock-service"),
  ),
  cut(
    "host that serves the blobs cut off from the others",
    (stamp, host) => stamp.network.cut(host),
    (stamp) => stamp.servingHost(),
  ),
  cut(
    "host that serves the blobs hears nobody",
    (stamp, host) => stamp.network.cutOneWay(host, "hears nobody"),
    (stamp) => stamp.servingHost(),
  ),
  cut(
    "host that serves the blobs is heard by nobody",
    (stamp, host) => stamp.network.cutOneWay(host, "is heard by nobody"),
    (stamp) => stamp.servingHost(),
  ),
  cut(
    "host that serves the blobs sends with 100 ms and 2% loss",
    (stamp, host) => stamp.network.slow(host),
    (stamp) => stamp.servingHost(),
    false,
  ),
  cut(
    "host of the active lock service sends with 100 ms and 2% loss",
    (stamp, host) => stamp.network.slow(host),
    (stamp) => stamp.hostOf("lock-service"),
    false,
  ),
  deafLockService,
  unheardLockService,
];

/** Faults of an etcd below the lock services. */
export const etcdFaults: readonly HostFault[] = [
  killEtcdLeader,
  {
    name: "two of three etcd members killed, one returns after 20 s",
    lastsMs: 20_000,
    aimMs: undefined,
    begin: async (stamp) => {
      for (const host of ["b", "c"] as const) await stamp.killEtcd(host);
      return "b";
    },
    end: async (stamp) => {
      stamp.startEtcd("b");
      await stamp.untilReady();
      stamp.startEtcd("c");
    },
  },
];

/** Does one fault under the clients' work, waits until all is well again, and tells the longest pause. */
export async function measured(stamp: StampHosts, clients: MovingClients, fault: HostFault): Promise<Measured> {
  clients.takeLongest();
  const host = await fault.begin(stamp);
  await sleep(fault.lastsMs);
  await fault.during?.(stamp, host);
  await fault.end(stamp, host);
  await stamp.untilReady();
  // A client whose attempt began during the fault has its answer after this.
  await sleep(3_500);
  return { fault: fault.name, host, aimMs: fault.aimMs, ...clients.takeLongest() };
}
