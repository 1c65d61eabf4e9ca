import assert from "node:assert/strict";
import { test } from "node:test";
import { LastError } from "./last-error.ts";

const line = (value: unknown): Buffer => Buffer.from(`${JSON.stringify(value)}\n`);

test("last error: the reason, else the error's message, else the line's, of the last line of that level", () => {
  const said = new LastError();
  assert.equal(said.text, "");
  said.take(line({ level: "error", error: { message: "port is taken" }, msg: "the process could not start" }));
  said.take(line({ level: "info", msg: "going on" }));
  assert.equal(said.text, "port is taken");
  said.take(line({ level: "error", msg: "a bug" }));
  assert.equal(said.text, "a bug");
  said.take(Buffer.from("not JSON\nnull\n"));
  assert.equal(said.text, "a bug");
  const whole = line({ level: "error", reason: "the disk\nis full", msg: "the process ends" });
  said.take(whole.subarray(0, 9));
  said.take(whole.subarray(9));
  assert.equal(said.text, "the disk is full", "in pieces, and on one line");
});

test("last error: of an error that nobody caught, the line in which Node names it", () => {
  const said = new LastError();
  said.take(
    Buffer.from("file:///stamp/a.mjs:5\nvar a = b(;\n          ^\n\nSyntaxError: Unexpected token ';'\n    at compile\n\nNode.js v26\n"),
  );
  assert.equal(said.text, "SyntaxError: Unexpected token ';'");
  said.take(Buffer.from("Error [ERR_MODULE_NOT_FOUND]: Cannot find module\n    at run\n"));
  assert.equal(said.text, "Error [ERR_MODULE_NOT_FOUND]: Cannot find module");
});

test("last error, a process that writes without end: little is held, little is told", () => {
  const said = new LastError();
  for (let at = 0; at < 1_000; at++) said.take(Buffer.from("x".repeat(1_000)));
  assert.equal(said.text, "");
  said.take(Buffer.from("\n"));
  said.take(line({ level: "error", reason: "y".repeat(5_000) }));
  assert.equal(said.text, `${"y".repeat(300)}…`);
});
