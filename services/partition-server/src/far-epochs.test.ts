/** Owner epochs that no owner was given, sent to every stream of a whole stamp on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { StreamManager } from "@stamp/wire";
import { Client, container, container1, stamp } from "./testing/stack-harness.ts";

const timeoutMs = 5_000;
const everybody = ["lock", "sm", "en-1", "en-2", "en-3", "en-4", "ps-1", "ps-2", "pm"];

test("far epochs: at their maximum they are refused for every stream; one a little ahead costs a range one assignment, not its life", async () => {
  const sim = stamp(11);
  await sim.run(async () => {
    const client = new Client(sim);
    await container1(client);
    const manager = sim.world("stranger").transport.client("sm", StreamManager);
    const metadata = new MetadataClient(sim.world("stranger"), "lock");
    const lastEpoch = async (): Promise<number> => {
      const [entry] = unwrap(await metadata.get(["partition-manager/owner-epoch"], timeoutMs));
      return Number(fromUtf8(entry?.value ?? new Uint8Array(0)));
    };
    let made = 0;
    /** A write, so that the range's owner has to be one. */
    const serves = async (): Promise<void> => {
      const value = { ...container, container: `made-${++made}` };
      // An error says that an earlier attempt made it.
      await client.execute({ case: "createContainer", value });
      assert.equal((await client.execute({ case: "getContainer", value })).case, "container");
    };

    const { streams } = unwrap(await manager.listStreams({}, { timeoutMs }));
    assert.ok(streams.length > 10 && streams.some(({ name }) => name.startsWith("/pm/")), `${streams.length} streams`);
    const open = (name: string, ownerEpoch: number) => manager.openStream({ name, ownerEpoch: BigInt(ownerEpoch) }, { timeoutMs });
    for (const { name } of streams) {
      for (const epoch of [Number.MAX_SAFE_INTEGER, 2_000]) {
        const opened = await open(name, epoch);
        assert.ok(!opened.ok && opened.failure.reason === "badRequest", `${name} is opened with owner epoch ${epoch}`);
      }
    }
    for (const name of ["/ps/none/log", "/none"]) {
      const request = { name, ownerEpoch: BigInt(Number.MAX_SAFE_INTEGER), extentId: 0n };
      const ahead = await manager.allocateAhead(request, { timeoutMs });
      assert.ok(!ahead.ok && ahead.failure.reason === "badRequest", `an extent is made for ${name}, which nobody owns`);
    }
    await serves();

    const before = await lastEpoch();
    for (const { name } of streams) if (!name.startsWith("/pm/")) unwrap(await open(name, before + 200));
    await serves();
    const after = await lastEpoch();
    assert.ok(after > before + 200 && after < before + 300, `minted from ${before} to ${after}`);

    for (const name of everybody) sim.crash(name, { unsynced: "lost" });
    await serves();
  });
});
