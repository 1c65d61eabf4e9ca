/** Calls to the stream manager: about the streams of an abandoned split or merge, and whether there is room. */
import { ownerEpoch as epochOf, ok } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { StreamClient } from "@stamp/stream-client";
import { StreamManager } from "@stamp/wire";
import type { StreamLayer } from "./reshaper.ts";

export function streamLayer(world: World, config: { readonly lockService: string }): StreamLayer {
  const streams = new StreamClient(world, { lockService: config.lockService });
  const manager = new LeaderCalls(world, { lockService: config.lockService, leaseName: "stream-manager" });
  return {
    async fence(stream, ownerEpoch, timeoutMs) {
      const opened = await streams.openForOwner(stream, epochOf(ownerEpoch), { create: false, timeoutMs });
      if (opened.ok) await opened.value.close();
      if (opened.ok) return ok("fenced" as const);
      return opened.failure.reason === "streamNotFound" ? ok("gone" as const) : opened;
    },
    async exists(stream, timeoutMs) {
      const found = await streams.stat(stream, { timeoutMs });
      if (found.ok) return ok(true);
      return found.failure.reason === "streamNotFound" ? ok(false) : found;
    },
    async lacks(timeoutMs) {
      const answer = await manager.call(
        timeoutMs,
        (address, leftMs) => world.transport.client(address, StreamManager).getRoom({}, { timeoutMs: leftMs }),
        { mayLackMethod: true },
      );
      if (answer.ok) return ok(answer.value.lacks);
      // A stream manager of an earlier version lacks the method, while the stamp is upgraded.
      return answer.failure.reason === "unknownMethod" ? ok([]) : answer;
    },
  };
}
