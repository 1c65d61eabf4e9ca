/**
 * An upgrade of a stamp on three hosts, host by host, with the commands of docs/guides/upgrade.md, under clients of the real SDK:
 *
 *   the release before on all hosts → each host to this release → each host back → each host to this release → finalize
 *
 * Every step stops and starts each host in turn. Histories are linearizable, and nothing is lost. That the release before refuses to start
 * afterwards is shown by packages/cli/src/upgrade/upgrade.slow.ts. Skipped with a reason where there are no namespaces, no etcd or no history of
 * the repository.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { featureLevel } from "@stamp/base";
import { releaseBefore } from "@stamp/cli";
import { historiesDrill, type MovingClients } from "@stamp/drills";
import { findEtcd } from "../etcd/etcd-server.ts";
import { root } from "../tools/commands.ts";
import { whyNoNamespaces } from "./network.ts";
import { hosts, StampHosts } from "./stamp-hosts.ts";

const found = await findEtcd();
const { whyNoReleaseBefore, writeReleaseBefore } = await releaseBefore();
const skip = (await whyNoNamespaces()) ?? ("skip" in found ? found.skip : undefined) ?? whyNoReleaseBefore(root);
const folder = mkdtempSync(join(tmpdir(), "stamp-hosts-upgrade-"));
const before = join(folder, "before");
let stamp: StampHosts | undefined;
let clients: MovingClients | undefined;
after(async () => {
  await clients?.stop();
  await stamp?.close();
  rmSync(folder, { recursive: true, force: true });
});
// Whoever ends the test leaves no namespaces, and nothing that runs in them.
process.once("SIGTERM", () => void stamp?.close().finally(() => process.exit(1)));

interface UpgradeStatus {
  readonly level: number;
  readonly possible: number;
  readonly inTheWay: readonly unknown[];
}

test(
  "three hosts are upgraded host by host, go back, are upgraded and finalized: histories are linearizable, nothing is lost",
  skip === undefined ? { timeout: 600_000 } : { skip },
  async () => {
    writeReleaseBefore(root, before);
    const started = await StampHosts.start((found as { readonly program: string }).program, {}, false, before);
    stamp = started;
    const drill = await historiesDrill();
    const shared = Array.from({ length: 8 }, (_, i) => `shared-${i}`);
    const working = await drill.MovingClients.start(
      hosts.map((host) => started.connectionString(host)),
      shared,
    );
    clients = working;
    const changeAll = async (to: string, what: string): Promise<void> => {
      for (const host of hosts) {
        working.takeLongest();
        await started.change(host, to);
        await started.untilReady();
        // A client whose attempt began during the change has its answer after this.
        await sleep(1_000);
        console.log(JSON.stringify({ host, what, ...working.takeLongest(), acknowledged: working.acknowledged }));
      }
    };
    const status = async (): Promise<UpgradeStatus> =>
      JSON.parse(await started.stamp("a", ["upgrade", "status", "--json"])) as UpgradeStatus;

    await changeAll(root, "this release");
    assert.equal((await status()).level, 0, "nothing closes the way back");
    await changeAll(before, "the release before");
    await changeAll(root, "this release again");
    const said = await started.stamp("b", ["upgrade", "finalize", "--timeout", "60", "--json"]);
    assert.deepEqual(JSON.parse(said), { level: featureLevel, before: 0 });
    const { level, inTheWay } = await status();
    assert.deepEqual([level, inTheWay], [featureLevel, []]);

    const wrong = await working.finish();
    console.log(JSON.stringify({ acknowledged: working.acknowledged, ...working.counts }));
    assert.deepEqual(wrong, []);
    assert.ok(working.acknowledged > 100, "too few writes to judge by");
  },
);
