/** Wire calls of a partition manager. */
import { type Outcome, ok, refused } from "@stamp/base";
import { heldCounts } from "@stamp/partition-map";
import type { Clock, Handlers } from "@stamp/ports";
import { type PartitionManager, type ServerLoad, toWire } from "@stamp/wire";
import { rangesToWire, rangeToWire } from "./map/range-to-wire.ts";
import type { ReshapeResult, Reshaper } from "./reshape/reshaper.ts";
import type { Term } from "./term/term.ts";

const waitMaxMs = 60_000;
const loadFor = (load: ServerLoad | undefined) => (load ? { load } : {});

export function partitionManagerHandlers(clock: Clock, leading: () => Outcome<Term>): Handlers<typeof PartitionManager> {
  const reshaped = async (work: (reshaper: Reshaper) => Promise<Outcome<ReshapeResult>>) => {
    const term = leading();
    if (!term.ok) return term;
    const { reshaper, map } = term.value;
    if (!reshaper || !map) return refused("unavailable", "notReady", "the partition map is not open yet");
    const changed = await work(reshaper);
    if (!changed.ok) return changed;
    const { ranges, times } = changed.value;
    const told = times ? { heldMs: times.heldMs, times } : {};
    return ok({ ranges: ranges.map(rangeToWire), ...told, mapVersion: toWire(map.current.version) });
  };
  return {
    splitPartition: ({ rangeId, atKey }) => reshaped((reshaper) => reshaper.split(rangeId, atKey && Uint8Array.from(atKey))),
    mergePartition: ({ rangeId }) => reshaped((reshaper) => reshaper.merge(rangeId)),
    movePartition: ({ rangeId, server }) => reshaped((reshaper) => reshaper.move(rangeId, server)),
    checkpointRange: async ({ rangeId }) => {
      const term = leading();
      if (!term.ok) return term;
      const written = await term.value.reshaper?.checkpoint(rangeId);
      if (!written) return refused("unavailable", "notReady", "the partition map is not open yet");
      return written.ok ? ok({}) : written;
    },
    collectRange: async ({ rangeId }) => {
      const term = leading();
      if (!term.ok) return term;
      const collected = await term.value.reshaper?.collect(rangeId);
      if (!collected) return refused("unavailable", "notReady", "the partition map is not open yet");
      if (!collected.ok) return collected;
      const { rows, rowsDeleted, extents, extentsDropped, extentsRewritten, bytesRewritten } = collected.value;
      return ok({ rows, rowsDeleted, extents, extentsDropped, extentsRewritten, bytesRewritten });
    },
    getRebalancePlan: async () => {
      const term = leading();
      if (!term.ok) return term;
      const { balancer, map } = term.value;
      if (!balancer || !map) return refused("unavailable", "notReady", "the partition map is not open yet");
      const nowMs = term.value.nowMs;
      return ok({
        automatic: term.value.balances,
        waitsFor: [...term.value.waitsForRoom],
        steps: balancer.plan().map((step) => ({ ...step, to: step.kind === "move" ? step.to : "" })),
        done: balancer.done.map(({ step, failure, atMs }) => ({
          ...step,
          to: step.kind === "move" ? step.to : "",
          failure,
          msAgo: toWire(Math.round(nowMs - atMs)),
        })),
        ranges: map.current.ranges.flatMap(({ rangeId, server }) => {
          const figures = balancer.figuresOf(rangeId);
          return figures ? [{ ...figures, server, bytes: toWire(Math.round(figures.bytes)) }] : [];
        }),
      });
    },
    getMap: async (request) => {
      const term = leading();
      if (!term.ok) return term;
      const map = term.value.map;
      if (!map) return refused("unavailable", "notReady", "the partition map is not open yet");
      const known = Number(request.knownVersion);
      const newer = await map.newerThan(known, Math.min(request.waitMs, waitMaxMs));
      if (!newer.ok) return newer;
      const { current } = map;
      const changes = request.changes && known > 0 ? map.changesSince(known) : undefined;
      const ranges = await rangesToWire(clock, changes?.changed ?? current.ranges);
      const still = leading();
      if (!still.ok) return still;
      const version = toWire(current.version);
      if (changes === undefined) return ok({ version, ranges });
      return ok({ version, ranges, baseVersion: request.knownVersion, gone: [...changes.gone] });
    },
    listServers: async () => {
      const term = leading();
      if (!term.ok) return term;
      const { servers, map, pmTerm, balancer } = term.value;
      const leases = servers?.leases ?? [];
      const held = heldCounts(map?.current.ranges ?? [], leases);
      return ok({
        pmTerm: toWire(pmTerm),
        servers: leases.map((lease) => ({
          server: lease.server,
          address: lease.address,
          leaseEpoch: toWire(lease.leaseEpoch),
          up: !lease.ended,
          rangeCount: held.get(lease.server) ?? 0,
          ...loadFor(balancer?.loadOf(lease.server)),
        })),
      });
    },
  };
}
