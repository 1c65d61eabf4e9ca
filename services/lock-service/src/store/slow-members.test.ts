/** Lock services that replicate the metadata store, one of which is behind while others write. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { emptied, followers, inScene, scene, settled, writing } from "../testing/replicated-run.ts";

test("a member that takes a snapshot while clients write gets the entries behind it, not one snapshot after another", async () => {
  await inScene(
    3,
    () =>
      writing(async (writer) => {
        await writer.write(150, 100_000);
        await settled();
        const [gone] = followers() as [string];
        emptied([gone]);
        await writer.write(1);
        scene.sim.restart(gone);
        const lack = (): number => (scene.facts(scene.active() ?? "")?.applied ?? 0) - (scene.facts(gone)?.applied ?? 0);
        let writes = 0;
        for (; writes < 2_000 && lack() > 10; writes++) await writer.write(1);
        console.log("WRITES", writes);
        assert.ok(writes < 2_000, `lacks ${lack()} entries after ${writes} more`);
        assert.ok(writes > 20, `${writes} transactions while it took the snapshot`);
      }),
    { settings: { logEntriesMax: 16 } },
  );
});
