/**
 * An upgrade of a stamp on three hosts, host by host, with the commands of docs/guides/upgrade.md, under clients of the real SDK:
 *
 *   the release before on all hosts → two hosts to this release → both back → each host to this release → finalize
 *
 * Every step stops and starts hosts in turn. The first two hosts have all managers, so this release leads, the one before does again, and then
 * this one. Histories are linearizable, and nothing is lost. packages/cli/src/upgrade/upgrade.slow.ts shows that every process can go back before
 * the end, and that the release before refuses to start after it. Skipped with a reason where there are no namespaces, no etcd or no history of the
 * repository.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { featureLevel } from "@stamp/base";
import { releaseBefore } from "@stamp/cli";
import { root } from "../tools/commands.ts";
import { hostsTest } from "./hosts-test.ts";
import { type Host, hosts } from "./stamp-hosts.ts";

const { whyNoReleaseBefore, writeReleaseBefore } = await releaseBefore();
const folder = mkdtempSync(join(tmpdir(), "stamp-hosts-upgrade-"));
const before = join(folder, "before");
after(() => rmSync(folder, { recursive: true, force: true }));

interface UpgradeStatus {
  readonly level: number;
  readonly possible: number;
  readonly inTheWay: readonly unknown[];
}

await hostsTest(
  "three hosts are upgraded host by host, two go back, all are upgraded and finalized: histories are linearizable, nothing is lost",
  { timeoutMs: 600_000, skip: whyNoReleaseBefore(root) },
  async (running) => {
    writeReleaseBefore(root, before);
    const started = await running.start({ programs: before });
    const shared = Array.from({ length: 8 }, (_, i) => `shared-${i}`);
    const working = await running.startClients(hosts, shared);
    const change = async (which: readonly Host[], to: string, what: string): Promise<void> => {
      for (const host of which) {
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

    const managers = ["a", "b"] as const;
    await change(managers, root, "this release");
    const now = await status();
    const said = ["feature level", "metadata is loaded", "this stream manager leads", "release"].flatMap((text) => started.linesWith(text));
    assert.equal(now.level, 0, `something closes the way back: ${JSON.stringify(now)}\n${said.join("\n")}`);
    await change(managers, before, "the release before");
    await change(hosts, root, "this release again");
    const finalized = await started.stamp("b", ["upgrade", "finalize", "--timeout", "60", "--json"]);
    assert.deepEqual(JSON.parse(finalized), { level: featureLevel, before: 0 });
    const { level, inTheWay } = await status();
    assert.deepEqual([level, inTheWay], [featureLevel, []]);

    const wrong = await working.finish();
    console.log(JSON.stringify({ acknowledged: working.acknowledged, ...working.counts }));
    assert.deepEqual(wrong, []);
    assert.ok(working.acknowledged > 100, "too few writes to judge by");
  },
);
