import assert from "node:assert/strict";
import { test } from "node:test";
import { inContainers } from "@stamp/cluster";
import type { ProcessFacts, StampFacts } from "../health/facts.ts";
import { statusOf } from "./status.ts";

const seenLast = { state: "serving", ready: true, waitingFor: [], restarts: 2, lastExit: "signal SIGKILL" };
const processOf = (name: string, more: Partial<ProcessFacts>): ProcessFacts => ({
  ...seenLast,
  role: "extent-node",
  name,
  pid: 7,
  grpc: "127.0.0.1:1",
  http: "127.0.0.1:2",
  answer: undefined,
  silence: "no answer in time",
  absence: undefined,
  ...more,
});

const answer = { release: "0.1.0", uptimeMs: 1, wallAheadMs: 0, wallSetMs: 0, facts: {} };

const factsOf = (...processes: readonly ProcessFacts[]): StampFacts => ({
  nowMs: 0,
  supervisor: "answers",
  supervisorPid: 1,
  cluster: { dataDir: "/data", endpoints: { blob: "", queue: "", table: "" }, connectionString: "", lockService: "" },
  processes,
  streamLayer: undefined,
  partitionLayer: undefined,
  setUp: undefined,
  copies: [],
  asker: { secretFile: "", problem: "", isMute: false },
  place: { dataDir: "/data", host: undefined, hostDirs: {}, compose: "", container: "", services: {}, location: "" },
});

test("status: a process that does not answer is not shown as serving, whatever the supervisor saw last", () => {
  const { processes, ready } = statusOf(
    factsOf(
      processOf("paused", { absence: "late" }),
      processOf("unproven", { absence: "refused" }),
      processOf("elsewhere", { pid: null, state: "not answering", absence: "gone" }),
      processOf("down", { pid: null, state: "restarting", ready: false, absence: "gone" }),
      processOf("waits", { answer: { ...answer, state: "starting", ready: false, waitingFor: ["its disk"] } }),
      processOf("up", { answer: { ...answer, state: "serving", ready: true, waitingFor: [] } }),
    ),
  );
  const told = processes.map(({ name, state, ready, waitingFor, restarts }) => [name, state, ready, waitingFor, restarts]);
  assert.deepEqual(told, [
    ["paused", "unknown: no answer", false, [], 2],
    ["unproven", "unknown: refuses our secret", false, [], 2],
    ["elsewhere", "down", false, [], 2],
    ["down", "restarting", false, [], 2],
    ["waits", "starting", false, ["its disk"], 2],
    ["up", "serving", true, [], 2],
  ]);
  assert.equal(ready, false);
});

test("status: everything is ready if every process says so", () => {
  assert.ok(statusOf(factsOf(processOf("up", { answer: { ...answer, state: "serving", ready: true, waitingFor: [] } }))).ready);
});

test("status of containers: a process that is down says how to start it, with compose file and project; a silent one does not", () => {
  const facts = factsOf(
    processOf("extent-node-1", { pid: null, state: "not answering", absence: "gone" }),
    processOf("extent-node-2", { pid: null, state: "not answering", absence: "late" }),
  );
  const place = { ...facts.place, dataDir: inContainers, compose: "docker compose -f compose.ha.yml -p two" };
  const statesIn = (where: StampFacts["place"]) => statusOf({ ...facts, place: where }).processes.map(({ state }) => state);
  assert.deepEqual(statesIn(place), ["down; start it: docker compose -f compose.ha.yml -p two up -d extent-node-1", "unknown: no answer"]);
  assert.deepEqual(statesIn({ ...place, compose: "kubectl" }), [
    "down; see why it does not run: kubectl describe pod extent-node-1",
    "unknown: no answer",
  ]);
});
