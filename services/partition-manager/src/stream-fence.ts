/** What the stream manager is asked about the streams of a split or merge that was left. */
import { ownerEpoch as epochOf, ok } from "@stamp/base";
import type { World } from "@stamp/ports";
import { StreamClient } from "@stamp/stream-client";
import type { StreamFence } from "./reshaper.ts";

export function streamFence(world: World, config: { readonly lockService: string }): StreamFence {
  const streams = new StreamClient(world, { lockService: config.lockService });
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
  };
}
