/** Dialogues of whole protocols, to be read: `testdata/*.txt` (after etcd-io/raft). */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Dialogue } from "./testing/dialogue.ts";

const folder = new URL("./testdata/", import.meta.url);

for (const name of readdirSync(folder).filter((each) => each.endsWith(".txt"))) {
  test(`raft dialogue: ${name.replace(".txt", "").replaceAll("-", " ")}`, () => {
    const url = new URL(name, folder);
    const written = readFileSync(url, "utf8");
    const dialogue = new Dialogue();
    const said = written
      .split("\n")
      .filter((line) => /^(>|#|$)/.test(line))
      .flatMap((line) => (line.startsWith(">") ? [line, ...dialogue.run(line.slice(1))] : [line]))
      .join("\n");
    if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(url, said);
    assert.equal(said, written, `${name}: STAMP_WRITE_GOLDEN=1 writes what is said now`);
  });
}
