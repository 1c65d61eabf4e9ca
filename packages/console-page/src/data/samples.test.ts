import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { samplesOf } from "./samples.ts";

test("samples: a shell takes the URL of a blob as one word, whatever its name is", () => {
  const url = "http://127.0.0.1:1/a/c/it's(e.reboot.)'*'!~?sv=1&sig=x%3D";
  const [curl] = samplesOf("blob", url);
  const script = `curl() { printf '%s\\n' "$@"; }; ${curl?.text}`;
  assert.equal(execFileSync("bash", ["-c", script], { encoding: "utf8" }), `${url}\n`);
});
