import assert from "node:assert/strict";
import { test } from "node:test";
import { auditLog } from "./audit-log.ts";

/** A log whose file takes only the first `room` characters of a line while it is set. */
function world() {
  let file = "";
  let room: number | undefined;
  const warned: string[] = [];
  const log = auditLog({
    append(text) {
      file += text.slice(0, room);
      if (room !== undefined) throw new Error("ENOSPC: no space left on device, write");
    },
    warn: (text) => warned.push(text),
    wallMs: () => 0,
  });
  const lines = () => file.split("\n").filter((line) => line !== "");
  return { log, warned, lines, fill: (next: number | undefined) => (room = next) };
}

test("audit log: a line that a full disk cuts goes to standard error, and does not take the next one with it", () => {
  const { log, warned, lines, fill } = world();
  fill(20);
  log("session-1", "delete blob", "done", { name: "lost" });
  log("session-1", "delete blob", "done", { name: "lost, too" });
  fill(undefined);
  log("session-1", "delete blob", "done", { name: "n" });
  log("session-1", "sign-out", "done");
  const [one, other] = lines().slice(-2);
  assert.deepEqual(JSON.parse(one ?? "").target, { name: "n" });
  assert.equal(JSON.parse(other ?? "").msg, "audit: sign-out");
  assert.equal(warned.length, 2);
  assert.match(warned[0] ?? "", /ENOSPC.*Free its disk.*\n\{.*"name":"lost"/s);
});

test("audit log: names with newlines, escapes and marks of direction are one line, and come back whole", () => {
  const { log, lines } = world();
  const name = 'a\n{"level":"info"}\u001b[2J\u009b2J\u202egnp.exe\u2066\u200f\u2028"\ud800';
  log("session-1", "delete blob", "done", { name });
  const [line = "", ...more] = lines();
  assert.deepEqual(more, []);
  assert.match(line, /^[ -~]+$/);
  assert.equal(JSON.parse(line).target.name, name);
});

test("audit log: refused attempts are bounded, the last line says so, and changes are logged after them", () => {
  const { log, lines } = world();
  for (let attempt = 0; attempt < 1_500; attempt++) log("127.0.0.1", "sign-in", "refused");
  log("session-1", "sign-in", "done");
  assert.equal(lines().length, 1_001);
  assert.equal(JSON.parse(lines()[998] ?? "").result, "refused");
  assert.match(JSON.parse(lines()[999] ?? "").result, /not logged until the console starts again/);
  assert.equal(JSON.parse(lines()[1_000] ?? "").result, "done");
});
