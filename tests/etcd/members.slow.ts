/**
 * A stamp over an etcd of three members, under a client that writes and reads: one dead member is not felt. With two dead ones the client goes on
 * until leases end; then everything is refused clearly, and it recovers by itself when one returns. Skipped with a reason where there is no etcd.
 */
import { strict as assert } from "node:assert";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { leaseDefaults } from "@stamp/metadata-store";
import { type Answer, BlobCalls, isOk } from "./blob-calls.ts";
import { EtcdServers, findEtcd } from "./etcd-server.ts";

const found = await findEtcd();
const options = "skip" in found ? { skip: found.skip } : { timeout: 400_000 };
let servers: EtcdServers | undefined;
let stamp: DrillTarget | undefined;
after(async () => {
  await stamp?.close();
  await servers?.stop();
});

test(
  "etcd with one, then two dead members, then two alive: nothing is felt, all is refused when leases end, all goes on",
  options,
  async () => {
    servers = await EtcdServers.start((found as { readonly program: string }).program, 3);
    const roles = { "lock-service": { metadataStore: "etcd", etcdEndpoints: servers.endpoints.join(",") } };
    const small = { extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1, lockServices: 2 };
    stamp = await startOwn({ ...small, roles, journalSegmentBytes: 16 * 1024 * 1024 }, false);
    const client = new BlobCalls(stamp.connectionString);
    await client.until("the first answers", 30_000, () => client.answers.filter(isOk).length > 10);
    const leader = await servers.led();
    const [first, second] = servers.names.filter((name) => name !== leader) as [string, string];

    const oneDeadMs = performance.now();
    await servers.kill(first);
    await sleep(leaseDefaults.termMs + 1_000);
    await client.until("answers with one dead member", 60_000, () => client.since(oneDeadMs).length > 10);
    const withOneDead = client.since(oneDeadMs);
    assert.deepEqual(
      withOneDead.filter((each) => !isOk(each)),
      [],
      "one dead member is not felt",
    );

    const twoDeadMs = performance.now();
    await servers.kill(second);
    await client.until("the first refusal", 60_000, () => client.since(twoDeadMs).some((each) => !isOk(each)));
    const refused = client.since(twoDeadMs).find((each) => !isOk(each)) as Answer;
    for (const kind of ["put", "get"] as const) {
      const before = client.since(twoDeadMs, kind).filter((each) => isOk(each));
      assert.ok(before.length > 0, `running ${kind}s went on: ${before.length}`);
    }
    await client.until("refusals of both", 90_000, () =>
      (["put", "get"] as const).every((kind) => client.since(refused.startedMs, kind).some((each) => !isOk(each))),
    );
    const refusals = client.since(refused.startedMs).filter((each) => !isOk(each));
    console.log(
      `# refused ${Math.round(refused.startedMs + refused.tookMs - twoDeadMs)} ms after the second member died: ${JSON.stringify(refusals)}`,
    );
    for (const { code, message, status } of refusals) {
      assert.deepEqual([status, code], [503, "ServerBusy"]);
      assert.match(message, /^The server is busy\. \(\w+: /, "it says why");
    }

    const backMs = performance.now();
    servers.startMember(second);
    await client.until("answers again", 90_000, () => (["put", "get"] as const).every((kind) => client.since(backMs, kind).some(isOk)));
    console.log(`# answered ${Math.round(performance.now() - backMs)} ms after a member returned`);
    assert.ok((await client.stop()) > 10);
  },
);
