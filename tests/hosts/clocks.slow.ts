/**
 * The wall clock of a host is set by an hour, forth and back, under clients of the real SDK: of the host that serves the blobs, and of the one
 * with the active lock service. Nobody loses its place, leases of blobs end when they should, `stamp health` tells of the clock, histories are
 * linearizable, and nothing is lost. Skipped with a reason where there are no namespaces, no etcd or no libfaketime.
 */
import assert from "node:assert/strict";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { BlobServiceClient, type BlockBlobClient, type RestError } from "@azure/storage-blob";
import { HostClocks, noticedWithinMs, whyNoClocks } from "./clocks.ts";
import { hostsTest } from "./hosts-test.ts";
import { type Host, hosts, type StampHosts } from "./stamp-hosts.ts";

const clocks = new HostClocks(hosts);
after(() => clocks.close());

const hour = 3_600;
/** Shortest lease of a blob, in seconds. */
const leaseSeconds = 15;
/** Time that clients go on after each set of a clock, in ms. */
const lastsMs = 3_000;

/** "ok", or the code of the service's refusal. */
const told = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "ok",
    (error: RestError & { readonly code?: string }) => error.code ?? String(error),
  );

/** Who leads, is active, and serves the blobs. */
async function places(of: StampHosts): Promise<Record<string, Host>> {
  return {
    lockService: await of.hostOf("lock-service"),
    streamManager: await of.hostOf("stream-manager"),
    partitionManager: await of.hostOf("partition-manager"),
    blobs: await of.servingHost(),
  };
}

await hostsTest(
  "the clock of a host is set by an hour, forth and back: no place is lost, leases last, histories are linearizable",
  { timeoutMs: 400_000, skip: whyNoClocks },
  async (running) => {
    const environments = Object.fromEntries(hosts.map((host) => [host, clocks.environment(host)]));
    const started = await running.start({ environments });
    const before = await places(started);
    const { blobs, lockService } = before as { blobs: Host; lockService: Host };
    const working = await running.startClients(hosts);

    // A front-end with a clock that is an hour off refuses signed requests: their date is too far from its own.
    const other = hosts.find((host) => host !== blobs) as Host;
    const container = BlobServiceClient.fromConnectionString(started.connectionString(other), {
      retryOptions: { maxTries: 1 },
    }).getContainerClient("leased");
    await container.create();
    const leased = async (name: string): Promise<BlockBlobClient> => {
      const blob = container.getBlockBlobClient(name);
      await blob.upload("x", 1);
      return blob;
    };
    const taken = (blob: BlockBlobClient): Promise<string> => told(blob.getBlobLeaseClient().acquireLease(leaseSeconds));

    const set = async (host: Host, seconds: number, between: () => Promise<void> = async () => {}): Promise<void> => {
      working.takeLongest();
      const acknowledged = working.acknowledged;
      clocks.set(host, seconds);
      await sleep(noticedWithinMs);
      await between();
      await sleep(lastsMs);
      const pause = working.takeLongest();
      console.log(JSON.stringify({ host, seconds, ...pause, acknowledged: working.acknowledged - acknowledged }));
      assert.ok(working.acknowledged > acknowledged, "clients go on");
    };
    const untilReadyIs = async (status: number, text: RegExp): Promise<void> => {
      let answer = await started.frontEndReady(blobs);
      for (let tries = 0; tries < 50 && answer.status !== status; tries++) {
        await sleep(200);
        answer = await started.frontEndReady(blobs);
      }
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.text, text);
    };
    const [early, late] = [await leased("early"), await leased("late")];
    assert.equal(await taken(early), "ok");
    await set(blobs, hour, async () => {
      const there = BlobServiceClient.fromConnectionString(started.connectionString(blobs), { retryOptions: { maxTries: 1 } });
      // On a busy machine a process looks at its clock late.
      let answer = await told(there.getProperties());
      for (let tries = 0; tries < 50 && answer === "ok"; tries++) {
        await sleep(200);
        answer = await told(there.getProperties());
      }
      assert.equal(answer, "AuthenticationFailed");
      assert.equal(await taken(early), "LeaseAlreadyPresent", "an hour later by its clock, a moment later for its holder");
      await untilReadyIs(503, /a clock like most hosts have: theirs are 3[56]\d\d s behind/);
      assert.equal((await started.frontEndReady(other)).status, 200);
      const health = JSON.parse(await started.stamp(other, ["health", "--json"], [4, 5, 6, 7])) as {
        readonly findings: readonly { readonly code: string }[];
      };
      const codes = new Set(health.findings.map(({ code }) => code));
      assert.ok(codes.has("clock-set") && codes.has("clock-apart"), [...codes].join());
    });
    assert.equal(await taken(late), "ok");
    const takenMs = performance.now();
    await set(blobs, -hour, async () => {
      assert.equal(await taken(late), "LeaseAlreadyPresent");
      await sleep(leaseSeconds * 1_000 - (performance.now() - takenMs) + 500);
      assert.equal(await taken(late), "ok", "it does not last two hours longer");
    });
    await set(blobs, 0);
    await untilReadyIs(200, /./);
    if (lockService !== blobs) {
      await set(lockService, hour);
      await set(lockService, -hour);
      await set(lockService, 0);
    }
    assert.deepEqual(await places(started), before, "nobody took a clock for the end of a lease");
    const wrong = await working.finish();
    console.log(JSON.stringify({ acknowledged: working.acknowledged, ...working.counts }));
    assert.deepEqual(wrong, []);
    assert.ok(working.acknowledged > 100, "too few writes to judge by");
  },
);
