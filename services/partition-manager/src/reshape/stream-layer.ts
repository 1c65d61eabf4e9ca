/** Calls to the stream manager: about the streams of an abandoned split or merge, and whether there is room. */
import { ownerEpoch as epochOf, ok } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { StreamClient } from "@stamp/stream-client";
import { StreamManager, toWire } from "@stamp/wire";
import type { StreamLayer } from "./reshaper.ts";

const namesPerPage = 1_000;

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
    async names(prefix, timeoutMs) {
      const names = new Set<string>();
      for (let [after, more] = ["", true]; more; ) {
        const page = await manager.call(
          timeoutMs,
          (address, leftMs) =>
            world.transport.client(address, StreamManager).listStreams({ prefix, after, limit: namesPerPage }, { timeoutMs: leftMs }),
          { idempotent: true },
        );
        if (!page.ok) return page;
        for (const { name } of page.value.streams) names.add(name);
        after = page.value.streams.at(-1)?.name ?? after;
        more = page.value.more;
      }
      return ok(names);
    },
    async prepend(stream, sources, ownerEpoch, timeoutMs) {
      const fenced = await Promise.all(sources.map((source) => this.fence(source, ownerEpoch, timeoutMs)));
      const failed = fenced.find((one) => !one.ok);
      if (failed?.ok === false) return failed;
      const own = await this.fence(stream, ownerEpoch, timeoutMs);
      if (!own.ok) return own;
      const isThere = own.value === "fenced";
      if (isThere && sources.length === 0) return ok();
      const epoch = toWire(ownerEpoch);
      const left = sources.filter((_, i) => fenced[i]?.ok && fenced[i].value === "fenced");
      const edit = (name: string, lists: readonly string[], before: bigint) => ({
        name,
        ownerEpoch: before,
        content: { ownerEpoch: epoch, extents: lists.map((list) => ({ stream: list })) },
      });
      const edits = [
        ...left.map((name) => edit(name, [name], epoch)),
        edit(stream, isThere ? [...left, stream] : left, isThere ? epoch : toWire(0)),
      ];
      const changed = await streams.multiModify(edits, { timeoutMs });
      return changed.ok ? ok() : changed;
    },
    async remove(stream, ownerEpoch, timeoutMs) {
      const fenced = await this.fence(stream, ownerEpoch, timeoutMs);
      if (!fenced.ok || fenced.value === "gone") return fenced.ok ? ok() : fenced;
      return streams.deleteStream(stream, epochOf(ownerEpoch), { timeoutMs });
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
