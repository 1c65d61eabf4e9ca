/** Short runs of the measuring programs: what they count must be right; how long it took says nothing here. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { election } from "./measure/election.ts";
import { endpoints } from "./measure/endpoints.ts";
import { ids } from "./measure/ids.ts";

let stamp: DrillTarget;

before(async () => {
  stamp = await startOwn({ extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1, frontEnds: 2 }, false);
  process.env.STAMP = stamp.connectionString;
});
after(() => stamp?.close());

test("numbers from four processes, while processes and an extent node are killed: none twice, none backwards", async () => {
  const kill = async (): Promise<void> => {
    const node = (await stamp.status()).processes.find(({ role }) => role === "extent-node");
    process.kill(node?.pid ?? 0, "SIGKILL");
  };
  const { numbers, twice, backwards, killed } = await ids(2_000, 100, 3_000, kill, 4);
  assert.deepEqual(
    { twice, backwards, whole: numbers >= 8_000, killed: killed > 0 },
    { twice: 0, backwards: 0, whole: true, killed: true },
  );
});

test("a leader is paused past its lease: another one leads, and nothing the first one wrote then is accepted", async () => {
  const { twoLeaders, notRisen, elections } = await election(0, 2, ["paused"]);
  assert.deepEqual({ twoLeaders, notRisen, again: elections >= 2 }, { twoLeaders: 0, notRisen: 0, again: true });
});

test("a front-end says no, another one is killed: no call is lost", async () => {
  assert.equal(await endpoints(stamp, 500, 4), 0);
});
