/** The lock service's folder is put back from an older backup under a partition manager: it gives no epochs of it, and says what to do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, present, type Rules, rulesWithout } from "@stamp/base";
import { metadataStoreName } from "@stamp/lock-service";
import { markPath } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { cluster } from "./testing/moves-harness.ts";

const states = (sim: Simulation): string[] => ["pm-1", "pm-2"].map((name) => sim.role(name)?.status.state ?? "");

/** The states of both managers after a store from before the first owner epochs was put back. */
async function putBack(rules: Rules): Promise<{ readonly after: string[]; readonly waitingFor: string; readonly again: string[] }> {
  const { sim } = cluster(31, rules);
  const mark = (): Promise<Uint8Array | undefined> => sim.offline("lock").disk.readWhole(markPath(metadataStoreName));
  const put = async (from: string, content: Uint8Array | undefined): Promise<void> => {
    await sim.stop("lock");
    sim.keyValue("lock").copyFrom(sim.keyValue(from));
    await sim.offline("lock").disk.writeAtomically(markPath(metadataStoreName), present(content, "the mark of the store"));
    sim.restart("lock");
  };
  return sim.run(async () => {
    for (const name of ["older", "newer"]) sim.world(name);
    await sim.until(() => sim.role("lock")?.status.ready === true, 5_000, "the stamp is there");
    await sim.stop("lock");
    sim.keyValue("older").copyFrom(sim.keyValue("lock"));
    const older = await mark();
    sim.restart("lock");
    await sim.sleep(20_000);
    await sim.stop("lock");
    sim.keyValue("newer").copyFrom(sim.keyValue("lock"));
    const newer = await mark();
    await put("older", older);
    await sim.sleep(20_000);
    const after = states(sim);
    const waitingFor = sim.role("pm-1")?.status.waitingFor[0] ?? "";
    await put("newer", newer);
    await sim.sleep(30_000);
    return { after, waitingFor, again: states(sim) };
  });
}

test("store put back: every partition manager that knew the newer one refuses it, and goes on with the newer one", async () => {
  const { after, waitingFor, again } = await putBack(allRules);
  assert.deepEqual(after, ["damaged", "damaged"]);
  assert.match(waitingFor, /it was put back from an older backup.*`stamp metadata restore --replace FILE`/);
  assert.deepEqual(again.toSorted(), ["leader", "standby"]);
});

test("store put back: without the rule a partition manager leads by it, or ends because it gives an owner epoch a second time", async () => {
  const seen = await putBack(rulesWithout("storeNotOlder")).then(
    ({ after }) => after.join(),
    (error: unknown) => String(error),
  );
  assert.match(seen, /leader|an owner epoch is larger than every earlier one/);
});
