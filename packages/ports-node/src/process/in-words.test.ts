/** Refusals of the system in words: real refusals, one of each kind. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inWords } from "./in-words.ts";

const thrown = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  assert.fail("nothing was thrown");
};

test("system errors in words: what of the path is wrong, and the code to search for", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-words-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "file");
  writeFileSync(file, "x");
  const inside = join(folder, "inside");
  mkdirSync(inside);
  const cases: [() => unknown, string][] = [
    [() => renameSync(file, inside), `${inside} is a folder, not a file (EISDIR)`],
    [() => readFileSync(join(folder, "a")), `${folder}/a: there is no such file or folder (ENOENT)`],
    [() => writeFileSync(join(folder, "b/c"), ""), `${folder}/b/c: there is no folder ${folder}/b; make it, or name another one (ENOENT)`],
    [() => writeFileSync(join(file, "c/d"), ""), `${file}/c/d: ${file} is a file, not a folder (ENOTDIR)`],
    [() => writeFileSync(folder, ""), `${folder} is a folder, not a file (EISDIR)`],
    [() => mkdirSync(file), `${file} is there already (EEXIST)`],
    [() => rmSync("/proc/self/status"), "/proc/self/status: the user that runs this (0) has no permission (EPERM)"],
  ];
  for (const [work, said] of cases)
    assert.equal(
      inWords(thrown(work))
        .replace(/runs this \(\d+\)/, "runs this (0)")
        .replace("EACCES", "EPERM"),
      said,
    );
  assert.equal(
    inWords(
      thrown(() => readFileSync(folder)),
      folder,
    ),
    `${folder} is a folder, not a file (EISDIR)`,
  );
  assert.equal(
    inWords(
      thrown(() => JSON.parse("h\ni")),
      "f.json",
    ).replace(/JSON: .*$/, "JSON: …"),
    "f.json: not JSON: …",
  );
  assert.equal(inWords(new Error("as it was")), "as it was");
  assert.equal(
    inWords(Object.assign(new Error("?"), { code: "EMFILE", errno: -24, syscall: "open", path: "/x" })),
    "/x: too many open files, at open (EMFILE)",
  );
});

test("system errors in words: nobody listens, an address of another machine", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  const refused = await new Promise((resolve) => connect(port, "127.0.0.1").once("error", resolve));
  assert.equal(inWords(refused), `nothing listens at 127.0.0.1:${port} (ECONNREFUSED)`);
  const denied = { code: "EACCES", errno: -13, syscall: "connect", address: "/x.sock" };
  assert.match(inWords(Object.assign(new Error("?"), denied)), /^the user that runs this \(\d+\) may not connect to \/x\.sock \(EACCES\)$/);
  const elsewhere = await new Promise((resolve) => createServer().once("error", resolve).listen(0, "192.0.2.1"));
  assert.equal(inWords(elsewhere), "192.0.2.1 is no address of this machine (EADDRNOTAVAIL)");
});
