import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "@stamp/console-page";
import { all, type Change, down, healthy, paused, withNode, withProcess } from "../health/testing/healthy.ts";
import { eventsBetween } from "./events.ts";
import { snapshotOf } from "./snapshot.ts";

const seen = (...changes: readonly Change[]): Snapshot => snapshotOf(all(...changes)(healthy), undefined).snapshot;
const told = (before: Snapshot | undefined, now: Snapshot): string[] =>
  eventsBetween(before, now).map(({ kind, subject, text }) => `${kind} ${subject}: ${text}`);

test("events: the first look tells how the stamp was found, and one without a change tells nothing", () => {
  assert.match(told(undefined, seen())[0] ?? "", /^change : the console began to watch: healthy/);
  assert.deepEqual(told(seen(), seen()), []);
});

test("events: a process that ends, and one that is back", () => {
  const away = told(seen(), seen(down("extent-node-2")));
  assert.ok(
    away.some((each) => each.startsWith("bad extent-node-2: is not ready")),
    away.join("\n"),
  );
  const back = told(seen(down("extent-node-2")), seen());
  assert.ok(back.includes("good extent-node-2: is ready: serving"), back.join("\n"));
});

test("events: a process that was started again between two looks is told, though it is ready at both", () => {
  const again = seen(withProcess("extent-node-2", { restarts: 1, lastExit: "signal SIGKILL" }));
  assert.deepEqual(told(seen(), again), [
    "bad extent-node-2: ended with signal SIGKILL; the supervisor starts it again",
    "good extent-node-2: has started again: serving",
  ]);
});

test("events: a finding comes and goes once, whatever its numbers do meanwhile", () => {
  const before = seen();
  const finding = { severity: "warning", code: "few-free-bytes", subject: "extent-node-1", cause: "9 % are free", help: "" } as const;
  const found: Snapshot = { ...before, findings: [finding] };
  assert.deepEqual(told(before, found), ["bad extent-node-1: 9 % are free"]);
  assert.deepEqual(told(found, { ...found, findings: [{ ...finding, cause: "8 % are free" }] }), []);
  assert.deepEqual(told(found, before), ["good extent-node-1: over: 9 % are free"]);
});

test("events: a stamp that can't be asked, and no process of it, is told", () => {
  const absent: Snapshot = { ...seen(), state: "absent", sentence: "no cluster runs on /data", processes: [], nodes: [], findings: [] };
  assert.deepEqual(told(seen(), absent), ["bad : the stamp can't be asked: no cluster runs on /data"]);
  assert.deepEqual(told(absent, absent), []);
  assert.match(told(absent, seen()).join(), /^good : the stamp answers: healthy[^,]*/);
});

test("events: a list of nodes that nobody told is no loss of nodes", () => {
  const untold: Snapshot = { ...seen(), nodes: [] };
  assert.deepEqual(told(seen(), untold), []);
  assert.deepEqual(told(untold, seen()), []);
  const lost = told(seen(), seen(withNode(1, { up: false })));
  assert.ok(lost.includes("bad extent-node-1: is taken for down by the stream manager"), lost.join("\n"));
  assert.ok(told(seen(), seen(paused("extent-node-1"))).some((each) => /is not ready: unknown/.test(each)));
});
