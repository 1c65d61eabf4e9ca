/**
 * A stamp over an etcd of three members whose disks become slow, under a client that writes and reads:
 *
 *   each sync of all members 100 ms longer   the stamp goes on
 *   each sync of one member 3 s longer       the stamp goes on
 *   each sync of all members 3 s longer      refusals are clear, and when the disks are fast again, it recovers by itself
 *
 * Nothing acknowledged is lost. Skipped with a reason where there is no etcd or no strace.
 */
import { strict as assert } from "node:assert";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { leaseDefaults } from "@stamp/metadata-store";
import { BlobCalls, isOk } from "./blob-calls.ts";
import { EtcdServers, findEtcd, findStrace } from "./etcd-server.ts";

const [etcd, strace] = [await findEtcd(), await findStrace()];
const missing = "skip" in etcd ? etcd.skip : "skip" in strace ? strace.skip : undefined;
const options = missing === undefined ? { timeout: 1_000_000 } : { skip: missing };
const [slowMs, verySlowMs] = [100, 3_000];
let servers: EtcdServers | undefined;
let stamp: DrillTarget | undefined;
after(async () => {
  await stamp?.close();
  await servers?.stop();
});

test("slow disks of etcd: the stamp goes on, refuses clearly while etcd answers too late, and recovers by itself", options, async () => {
  servers = await EtcdServers.start((etcd as { readonly program: string }).program, 3);
  const members = servers;
  /** Starts a member again, with a disk that is so much slower. */
  const restart = async (name: string, syncDelayMs?: number): Promise<void> => {
    await members.kill(name);
    members.startMember(
      name,
      syncDelayMs === undefined ? undefined : { strace: (strace as { readonly command: readonly string[] }).command, syncDelayMs },
    );
  };
  const roles = { "lock-service": { metadataStore: "etcd", etcdEndpoints: members.endpoints.join(",") } };
  const small = { extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1, lockServices: 2 };
  stamp = await startOwn({ ...small, roles, journalSegmentBytes: 16 * 1024 * 1024 }, false);
  const calls = new BlobCalls(stamp.connectionString);
  await calls.until("the first answers", 60_000, () => calls.answers.filter(isOk).length > 10);

  const tell = (what: string, sinceMs: number): void => {
    const answers = calls.since(sinceMs);
    const longest = Math.max(0, ...answers.map(({ tookMs }) => tookMs));
    console.log(`# ${what}: ${answers.filter(isOk).length} of ${answers.length} answers ok, the longest after ${Math.round(longest)} ms`);
    for (const { status, code, message } of answers.filter((each) => !isOk(each))) {
      assert.deepEqual([status, code], [503, "ServerBusy"]);
      assert.match(message, /^The server is busy\. \(\w+: /, "it says why");
    }
  };
  const goesOn = (sinceMs: number): boolean =>
    (["put", "get"] as const).every((kind) => calls.since(sinceMs, kind).filter(isOk).length > 20);

  for (const name of members.names) {
    await restart(name, slowMs);
    await members.led(60_000);
  }
  const slowSinceMs = performance.now();
  await sleep(2 * leaseDefaults.termMs);
  await calls.until("answers while all disks are slow", 240_000, () => goesOn(slowSinceMs));
  tell(`every sync ${slowMs} ms longer`, slowSinceMs);

  const leader = await members.led();
  // Another member is elected meanwhile.
  await restart(leader, verySlowMs);
  const leaderSinceMs = performance.now();
  await sleep(leaseDefaults.termMs);
  await calls.until("answers while one disk is very slow", 240_000, () => goesOn(leaderSinceMs));
  tell(`every sync of ${leader} ${verySlowMs} ms longer`, leaderSinceMs);

  // Nobody may be elected: each vote waits for a disk.
  for (const name of members.names.filter((each) => each !== leader)) await restart(name, verySlowMs);
  const allSinceMs = performance.now();
  await calls.until("refusals of both", 240_000, () =>
    (["put", "get"] as const).every((kind) => calls.since(allSinceMs, kind).some((each) => !isOk(each))),
  );
  tell(`every sync ${verySlowMs} ms longer`, allSinceMs);

  for (const name of members.names) await restart(name);
  const fastSinceMs = performance.now();
  await calls.until("answers with fast disks", 240_000, () => goesOn(fastSinceMs));
  tell("fast again", fastSinceMs);
  assert.ok((await calls.stop()) > 60);
});
