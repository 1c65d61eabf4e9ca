/**
 * Accounts that should move (docs/design/geo.md "Placement"): asks the stamps that are too full, or drain, for the sizes of their
 * accounts, and plans by them.
 *
 * Invariant: an account of unknown size, with a second stamp, or with an operation under way is never proposed.
 */
import type { AccountRecord, MovableAccount, ProposedMove } from "@stamp/geo";
import { givesAway, proposeMoves } from "@stamp/geo";
import { fromWire } from "@stamp/wire";
import type { Registry } from "./registry.ts";
import { hasDoors } from "./stamp-checks.ts";
import type { Stamps } from "./stamps.ts";

export interface Proposal {
  readonly moves: readonly ProposedMove[];
  /** Accounts that can't move now, and why. */
  readonly staying: readonly string[];
}

const stayingMax = 100;
/** Bound of a stamp's accounts whose sizes are asked for; a later plan sees the others. */
const askedMax = 1_000;
const askedAtOnce = 8;
/** An extent has three replicas. Coded ones take half of that, so that a plan may move a little more than it has to. */
const bytesOnDisks = 3;

export async function rebalancePlan(registry: Registry, stamps: Stamps, nowMs: number): Promise<Proposal> {
  const staying: string[] = [];
  const movable: MovableAccount[] = [];
  const giving = stamps.placed.filter((stamp) => givesAway(stamp, nowMs, stamps.limits));
  const sizes = async ({ name }: { readonly name: string }): Promise<void> => {
    const accounts = registry.accounts.filter(({ primary }) => primary === name);
    const free = accounts.filter((account) => {
      const why = whyStays(account);
      if (why !== undefined) staying.push(`${account.name}: ${why}`);
      return why === undefined;
    });
    let silent = "";
    const rest = free.slice(0, askedMax)[Symbol.iterator]();
    const worker = async (): Promise<void> => {
      for (const account of rest) {
        // Each further question to a silent stamp would wait for its deadline.
        const bytes = silent === "" ? ((await queuesOf(registry, stamps, account)) ?? (await sizeOf(registry, stamps, account))) : silent;
        if (typeof bytes === "string" && stamps.isSilent(name)) silent = bytes;
        if (typeof bytes === "string") staying.push(`${account.name}: ${bytes}`);
        else movable.push({ name: account.name, stamp: name, bytes: bytes * bytesOnDisks, requestsPerSecond: 0 });
      }
    };
    await Promise.all(Array.from({ length: askedAtOnce }, worker));
  };
  await Promise.all(giving.map(sizes));
  // A stamp to which no other one can ship is no target.
  const targets = stamps.placed.map((stamp) =>
    stamp.state === "open" && !hasDoors(registry.stamp(stamp.name)) ? { ...stamp, state: "closed" as const } : stamp,
  );
  return { moves: proposeMoves(targets, movable, nowMs, stamps.limits), staying: staying.sort().slice(0, stayingMax) };
}

function whyStays({ running, secondary }: AccountRecord): string | undefined {
  if (running !== undefined) return `an operation is under way (${running.kind})`;
  return secondary === undefined ? undefined : `it has a copy at stamp ${secondary}: fail over to it, or give it up first`;
}

/** Returns why an account stays for its queues, or because its stamp does not tell them; undefined: it has none. */
async function queuesOf(registry: Registry, stamps: Stamps, { name, primary }: AccountRecord): Promise<string | undefined> {
  const stamp = registry.stamp(primary);
  const queues = stamp === undefined ? undefined : await stamps.onStamp(stamp, (link) => link.queues(name));
  if (queues === undefined) return `stamp ${primary} is not known`;
  if (!queues.ok) return queues.failure.message;
  if (queues.value.length === 0) return undefined;
  return `it has queues (${queues.value.join(", ")}): stamp account migrate ${name} --to STAMP --with-queues moves them, --drop-queues deletes them`;
}

/** Returns the bytes of the account's rows and blobs, estimated; a text: why that is not known. */
async function sizeOf(registry: Registry, stamps: Stamps, { name, primary }: AccountRecord): Promise<number | string> {
  const stamp = registry.stamp(primary);
  if (stamp === undefined) return `stamp ${primary} is not known`;
  const asked = await stamps.onStamp(stamp, (link) => link.shipping(name));
  if (!asked.ok) return asked.failure.message;
  return asked.value.nowMs === 0n ? `stamp ${primary} does not say how large it is` : fromWire(asked.value.seedBytes);
}
