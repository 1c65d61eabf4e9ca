import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProcessRow } from "../../model.ts";
import { boxHeight, boxWidth, layoutOf } from "./layout.ts";

const processOf = (role: string, number: number, more: Partial<ProcessRow> = {}): ProcessRow => ({
  name: `${role}-${number}`,
  role,
  host: "",
  pid: 1,
  grpc: "",
  state: "serving",
  ready: true,
  waitingFor: [],
  restarts: 0,
  lastExit: "",
  uptimeMs: 1,
  release: "",
  workPerSecond: 12,
  ...more,
});

const several = (role: string, count: number, more: Partial<ProcessRow> = {}): ProcessRow[] =>
  Array.from({ length: count }, (_, index) => processOf(role, index + 1, more));

const stamp = [
  ...several("front-end", 2),
  ...several("partition-manager", 2),
  ...several("partition-server", 3),
  ...several("stream-manager", 2),
  ...several("extent-node", 40),
  ...several("lock-service", 3),
];

test("topology: no two processes cover each other, and none is outside its host or the width, wide and narrow", () => {
  const hosts = ["a", "b", "c"].flatMap((host) => stamp.map((each) => ({ ...each, name: `${host}-${each.name}`, host })));
  for (const processes of [stamp, hosts]) {
    for (const width of [300, 400, 900, 2_500]) {
      const { boxes, frames, height } = layoutOf(processes, width);
      assert.equal(boxes.length, processes.length);
      for (const [index, { x, y, process }] of boxes.entries()) {
        const frame = frames.find(({ host }) => host === process.host);
        assert.ok(frame !== undefined && x >= frame.x && x + boxWidth <= frame.x + frame.width, `${process.name} at ${width}`);
        assert.ok(y >= frame.y && y + boxHeight <= frame.y + frame.height && frame.y + frame.height <= height);
        const covers = boxes.slice(index + 1).some((other) => Math.abs(other.x - x) < boxWidth && Math.abs(other.y - y) < boxHeight);
        assert.equal(covers, false, `${process.name} at ${width}`);
      }
    }
  }
});

test("topology: the work of a server comes along the lines of the front-ends that are ready; a cut line carries none", () => {
  const { lines } = layoutOf(
    [...several("front-end", 2), processOf("front-end", 3, { ready: false }), ...several("partition-server", 1)],
    900,
  );
  const between = lines.filter(({ key }) => key.endsWith("partition-server-1"));
  assert.deepEqual(
    between.map(({ perSecond, isCut }) => [perSecond, isCut]),
    [
      [6, false],
      [6, false],
      [null, true],
    ],
  );
});

test("topology: a process has a line to the one that it waits for, by name or by role", () => {
  const waiting = (...waitingFor: string[]) =>
    layoutOf([processOf("partition-server", 1, { waitingFor }), ...several("stream-manager", 2), ...several("lock-service", 1)], 900)
      .lines.filter(({ isWait }) => isWait)
      .map(({ key }) => key);
  assert.deepEqual(waiting("stream-manager-2"), ["wait partition-server-1 stream-manager-2"]);
  assert.deepEqual(waiting("the lock service"), ["wait partition-server-1 lock-service-1"]);
  assert.deepEqual(waiting("its disk"), []);
});

test("topology: between large layers each process has one line, with all of its work", () => {
  const { lines } = layoutOf([...several("partition-server", 30), ...several("extent-node", 30)], 900);
  assert.equal(lines.length, 30);
  assert.equal(lines[0]?.perSecond, 12);
});
