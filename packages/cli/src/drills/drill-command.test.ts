import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { exitCodes } from "../exit.ts";
import { unlessStopped } from "./drill-command.ts";
import { exitCodeOf } from "./own-commands.ts";

test("drill, exit code, is that of the worst drill; --strict makes a missed aim an error", () => {
  assert.equal(exitCodeOf(["kept", "kept"], true), 0);
  assert.equal(exitCodeOf(["kept", "slow"], false), 8);
  assert.equal(exitCodeOf(["kept", "slow"], true), 5);
  assert.equal(exitCodeOf(["slow", "broken"], false), 5);
});

test("drill run --compose refuses a drill that needs seven extent nodes before it touches a container", () => {
  const main = join(import.meta.dirname, "../main.ts");
  const { status, stderr } = spawnSync(process.execPath, [main, "drill", "run", "power-loss", "slow-fragment", "--compose"], {
    encoding: "utf8",
  });
  assert.equal(status, 2, stderr);
  assert.match(stderr, /slow-fragment: it needs seven extent nodes, and docker-compose\.yml has four/);
});

test("drill geo-planned: a number of objects that is none is refused before a stamp is started", () => {
  const main = join(import.meta.dirname, "../main.ts");
  const { status, stderr } = spawnSync(process.execPath, [main, "drill", "geo-planned", "--objects", "many"], { encoding: "utf8" });
  assert.equal(status, 2, stderr);
  assert.match(stderr, /--objects: "many" is not allowed: a whole number/);
});

test("drill run: a cluster that Ctrl-C has stopped ends the drill at once, with exit code 130; before, the drill has its verdict", async () => {
  const never = new Promise<void>(() => {});
  assert.equal(await unlessStopped({ stopped: never }, Promise.resolve("kept")), "kept");
  assert.equal(await unlessStopped({}, Promise.resolve("kept")), "kept");
  await assert.rejects(unlessStopped({ stopped: Promise.resolve() }, never), { exitCode: exitCodes.left });
});

test("drill list --json lists what drill list lists", () => {
  const main = join(import.meta.dirname, "../main.ts");
  const list = (...flags: readonly string[]): string =>
    spawnSync(process.execPath, [main, "drill", "list", ...flags], { encoding: "utf8" }).stdout;
  const names = (JSON.parse(list("--json")) as { readonly name: string }[]).map(({ name }) => name);
  const shown = list()
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => line.split(" ")[0]);
  assert.deepEqual(names, shown);
  assert.ok(names.includes("slow-clients"));
});
