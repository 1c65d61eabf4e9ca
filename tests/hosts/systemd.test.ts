/** systemd understands the unit of deploy/systemd. Skipped with a reason where there is no systemd-analyze. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../tools/commands.ts";

const missing = spawnSync("systemd-analyze", ["--version"]).status === 0 ? false : "systemd-analyze is not here";

test("systemd: the unit is right, and its command exists in the repository", { skip: missing }, () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-systemd-"));
  try {
    const unit = readFileSync(join(root, "deploy/systemd/stamp@.service"), "utf8");
    // The user is made by the operator, and the repository is elsewhere here.
    const here = unit.replace(/^(User|Group)=stamp$/gm, "$1=root").replaceAll("/opt/stamp", root);
    const verify = (text: string): string => {
      writeFileSync(join(folder, "stamp@.service"), text);
      const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", join(folder, "stamp@a.service")], { encoding: "utf8" });
      return (stdout + stderr)
        .split("\n")
        .filter((line) => line.includes("stamp@"))
        .join("\n");
    };
    assert.equal(verify(here), "");
    assert.match(verify(here.replace("KillMode=mixed", "KillMode=mixd")), /kill mode/i);
    assert.match(verify(here.replace("/stamp up", "/stump up")), /not executable/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
