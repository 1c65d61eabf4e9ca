/** The drill `histories` on real processes: what clients of the SDKs saw, while processes were killed and stopped, can be explained. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { historiesDrill, startOwn } from "@stamp/drills";

const target = await startOwn({ frontEnds: 2 }, false);
after(() => target.close());

test("drill histories: linearizable blobs, entities and transactions; no message lost, doubled or back", { timeout: 400_000 }, async () => {
  const { runHistoriesDrill } = await historiesDrill();
  const report = await runHistoriesDrill(target, { onEntry: ({ atMs, what }) => console.log(`${atMs} ms: ${what}`) });
  console.log(JSON.stringify(report.counts));
  assert.deepEqual(report.broken, []);
  assert.equal(report.faults, 9);
  for (const [kind, counts] of Object.entries(report.counts)) {
    const done = Object.entries(counts).filter(([what]) => /^(put|get|take) ok$/.test(what));
    assert.ok(done.length === 2 && done.every(([, count]) => count > 0), `${kind}: ${JSON.stringify(counts)}`);
  }
});
