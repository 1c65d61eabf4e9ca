import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { LogFile } from "@stamp/cluster";
import { entryOf, isAudit, personText, toolText } from "./log-entry.ts";
import { type LogFolder, LogSource, realLooks } from "./log-source.ts";
import { sinceMsOf } from "./logs-command.ts";
import { inOrder, lastOf } from "./merge.ts";

const root = mkdtempSync(join(tmpdir(), "stamp-logs-"));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;
function newFolder(): string {
  const folder = join(root, String(++folders), "logs");
  mkdirSync(folder, { recursive: true });
  return folder;
}

const timeAt = (second: number): string => new Date(Date.UTC(2026, 10, 25, 18, 0, second)).toISOString();
const line = (second: number, msg: string, more: object = {}): string =>
  `${JSON.stringify({ level: "info", time: timeAt(second), name: "p-1", msg, ...more })}\n`;

/** Everything that is there now. */
const messages = (...sources: LogSource[]): string[] => [...inOrder(sources)].map(({ message }) => message);

describe("a log that is read while it is written", () => {
  it("gives each line once and in order, over many rotations between which it is read", () => {
    const folder = newFolder();
    const log = new LogFile(join(folder, "p-1.log"), 2_000);
    const source = new LogSource({ folder, name: "p-1" });
    const read: string[] = [];
    for (let at = 0; at < 400; at++) {
      log.write(Buffer.from(line(0, String(at))));
      // About 20 lines are in a file: sometimes none, sometimes two rotations lie between two reads.
      if (at % 37 === 0) read.push(...messages(source));
    }
    read.push(...messages(source));
    log.close();
    assert.deepEqual(
      read,
      Array.from({ length: 400 }, (_, at) => String(at)),
    );
    source.close();
  });

  it("gives each line once and in order when the log is rotated between any two looks at the folder", () => {
    let looked = 0;
    for (let rotatedAt = 0; rotatedAt <= looked; rotatedAt++) {
      const folder = newFolder();
      const path = join(folder, "p-1.log");
      let written = 0;
      looked = 0;
      const write = (): void => appendFileSync(path, line(0, String(written++)));
      const rotate = (): void => {
        renameSync(path, `${path}.1`);
        write();
      };
      const look = <T>(work: () => T): T => {
        if (looked++ === rotatedAt) rotate();
        return work();
      };
      const looks: LogFolder = { open: (name) => look(() => realLooks.open(name)), inodeOf: (name) => look(() => realLooks.inodeOf(name)) };
      write();
      const source = new LogSource({ folder, name: "p-1", looks });
      const read = messages(source);
      // Two rotations before the next read can't be told from three, so only then a warning is right though nothing is missing.
      const looksOfFirst = looked;
      // One rotation between two reads is usual; one more may come in the second read.
      for (let round = 0; round < 3; round++) {
        write();
        rotate();
        read.push(...messages(source));
      }
      assert.deepEqual(
        read,
        Array.from({ length: written }, (_, at) => String(at)),
        `rotated before look ${rotatedAt} of ${looked}`,
      );
      if (rotatedAt < looksOfFirst) assert.equal(source.mayHaveMissed, false);
      source.close();
    }
    assert.ok(looked > 15, `${looked} looks`);
  });

  it("says that lines may be missing when files came and went between two reads, and goes on", () => {
    const folder = newFolder();
    const log = new LogFile(join(folder, "p-1.log"), 2_000);
    const source = new LogSource({ folder, name: "p-1" });
    log.write(Buffer.from(line(0, "first")));
    assert.deepEqual(messages(source), ["first"]);
    for (let at = 0; at < 200; at++) log.write(Buffer.from(line(0, String(at))));
    log.close();
    const read = messages(source);
    assert.equal(read.at(-1), "199");
    assert.ok(read.length < 200, "some files are gone");
    assert.equal(source.mayHaveMissed, true);
    source.close();
  });

  it("does not say so when the older file is replaced while it is read", () => {
    const folder = newFolder();
    const path = join(folder, "p-1.log");
    writeFileSync(`${path}.1`, line(1, "a"));
    writeFileSync(path, line(2, "b"));
    const source = new LogSource({ folder, name: "p-1" });
    assert.equal(source.read()[0]?.message, "a");
    renameSync(path, `${path}.1`);
    writeFileSync(path, line(3, "c"));
    assert.deepEqual(messages(source), ["b", "c"]);
    assert.equal(source.mayHaveMissed, false);
    source.close();
  });

  it("waits for the end of a line, also in the middle of a character", () => {
    const folder = newFolder();
    const path = join(folder, "p-1.log");
    const bytes = Buffer.from(line(1, "größer"));
    const half = bytes.indexOf(0xc3) + 1;
    writeFileSync(path, bytes.subarray(0, half));
    const source = new LogSource({ folder, name: "p-1" });
    assert.deepEqual(messages(source), []);
    appendFileSync(path, bytes.subarray(half));
    assert.deepEqual(messages(source), ["größer"]);
    source.close();
  });

  it("gives text the time of the next line that has one, else that of the file", () => {
    const folder = newFolder();
    const path = join(folder, "p-1.log");
    writeFileSync(path, `${line(1, "a")}node: out of memory\n${line(9, "ended: signal SIGABRT")}one more\n`);
    utimesSync(path, Date.parse(timeAt(20)) / 1_000, Date.parse(timeAt(20)) / 1_000);
    const source = new LogSource({ folder, name: "p-1" });
    const seconds = [...inOrder([source])].map(({ atMs, message }) => [new Date(atMs).getUTCSeconds(), message]);
    assert.deepEqual(seconds, [
      [1, "a"],
      [9, "node: out of memory"],
      [9, "ended: signal SIGABRT"],
      [20, "one more"],
    ]);
    source.close();
  });

  it("leaves out what is older than asked for", () => {
    const folder = newFolder();
    writeFileSync(join(folder, "p-1.log"), `${line(1, "old")}text of then\n${line(2, "older")}${line(5, "new")}`);
    const source = new LogSource({ folder, name: "p-1", sinceMs: Date.parse(timeAt(5)) });
    assert.deepEqual(messages(source), ["new"]);
    source.close();
  });
});

describe("lines of several logs", () => {
  it("are in the order of time, and each log's own in the order of the file", () => {
    const folder = newFolder();
    // The clock of q-1 was set back.
    writeFileSync(join(folder, "p-1.log"), [1, 4, 6].map((second) => line(second, `p${second}`)).join(""));
    writeFileSync(join(folder, "q-1.log"), [2, 5, 3].map((second) => line(second, `q${second}`)).join(""));
    writeFileSync(join(folder, "r-1.log"), "");
    const sources = ["p-1", "q-1", "r-1"].map((name) => new LogSource({ folder, name }));
    assert.deepEqual(messages(...sources), ["p1", "q2", "p4", "q5", "q3", "p6"]);
    for (const source of sources) source.close();
  });

  it("keeps the last ones", () => {
    for (const [count, expected] of [
      [2, [4, 5]],
      [5, [1, 2, 3, 4, 5]],
      [9, [1, 2, 3, 4, 5]],
    ] as const)
      assert.deepEqual(lastOf([1, 2, 3, 4, 5], count), expected);
  });
});

describe("a line for a person", () => {
  it("is of the audit log only if the console wrote it, whatever clients sent to other processes", () => {
    const audit = line(0, "audit: delete blob");
    assert.equal(isAudit(entryOf("console", audit)), true);
    assert.equal(isAudit(entryOf("console", line(0, "began to watch"))), false);
    assert.equal(isAudit(entryOf("front-end-1", audit)), false);
  });

  const shown = (value: object): string => {
    const entry = entryOf("p-1", JSON.stringify({ time: timeAt(1), name: "p-1", ...value }));
    return personText({ ...entry, atMs: entry.atMs ?? 0 }, 5);
  };

  it("has time, process, level, message and fields", () => {
    assert.equal(
      shown({ level: "warn", msg: "slow call", server: "ps-1", elapsedMs: 1240, why: "a b", list: [1] }),
      '2026-11-25T18:00:01.000Z  p-1    warn   slow call  server=ps-1  elapsedMs=1240  why="a b"  list=[1]',
    );
  });

  it("names who wrote it when it was not the process, and has the stack of an error below", () => {
    assert.equal(
      shown({ name: "supervisor", msg: "ended: exit code 1" }),
      "2026-11-25T18:00:01.000Z  p-1    -      ended: exit code 1  by=supervisor",
    );
    const error = { type: "Error", message: "no room", stack: "Error: no room\n    at one (a.ts:1)\n    at two (b.ts:2)" };
    assert.equal(
      shown({ level: "error", msg: "a bug", error }),
      '2026-11-25T18:00:01.000Z  p-1    error  a bug  error="no room"\n    at one (a.ts:1)\n    at two (b.ts:2)',
    );
  });

  it("holds no character that a terminal obeys, whatever a client sent", () => {
    const text = shown({ level: "info", msg: "a\u001b[2Jb\nc", target: "/x\u009b1m\u202e" });
    assert.match(text, /a\\u001b\[2Jb\\u000ac/);
    assert.match(text, /\\u009b1m\\u202e/);
    for (const each of ["\u001b", "\u009b", "\u202e", "\n"]) assert.ok(!text.includes(each));
  });

  it("is the line of the file for a tool, with the process; text becomes an object", () => {
    const json = '{"time":"2026-11-25T18:00:01.000Z","n":12345678901234567890}';
    assert.equal(toolText({ ...entryOf("p-1", json), atMs: 0 }), `{"process":"p-1",${json.slice(1)}`);
    assert.deepEqual(JSON.parse(toolText({ ...entryOf("p-1", "{}"), atMs: 0 })), { process: "p-1" });
    assert.deepEqual(JSON.parse(toolText({ ...entryOf("p-1", '{"half'), atMs: 0 })), {
      process: "p-1",
      time: "1970-01-01T00:00:00.000Z",
      text: '{"half',
    });
  });
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const main = join(import.meta.dirname, "../main.ts");

const stamp = (...args: string[]): Promise<Ran> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [main, "logs", ...args], (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    );
  });

describe("stamp logs", () => {
  const folder = newFolder();
  const data = join(folder, "..");
  writeFileSync(
    join(folder, "extent-node-1.log"),
    line(1, "one") + line(3, "three", { level: "warn" }) + line(5, "five", { level: "debug" }),
  );
  writeFileSync(join(folder, "extent-node-2.log"), line(2, "two") + line(4, "four", { level: "error" }));
  writeFileSync(join(folder, "front-end-1.log"), line(6, "six"));
  const said = ({ out }: Ran): string[] => out.split("\n").flatMap((each) => /Z {2}\S+ +\S+ +(\w+)/.exec(each)?.[1] ?? []);

  it("chooses by role, process, level, time and number", async () => {
    const [all, role, process, level, since, tail] = await Promise.all([
      stamp("--data", data),
      stamp("--data", data, "--role", "extent-node"),
      stamp("--data", data, "--role", "extent-node-2", "front-end"),
      stamp("--data", data, "--level", "warn"),
      stamp("--data", data, "--since", timeAt(4)),
      stamp("--data", data, "--tail", "2"),
    ]);
    assert.deepEqual(said(all), ["one", "two", "three", "four", "five", "six"]);
    assert.deepEqual(said(role), ["one", "two", "three", "four", "five"]);
    assert.deepEqual(said(process), ["two", "four", "six"]);
    assert.deepEqual(said(level), ["three", "four"]);
    assert.deepEqual(said(since), ["four", "five", "six"]);
    assert.deepEqual(said(tail), ["five", "six"]);
  });

  it("says what to do when there are no logs, and what there is when none is of that name", async () => {
    const [none, other, empty, wrong] = await Promise.all([
      stamp("--data", join(root, "nothing")),
      stamp("--data", data, "--role", "extent-nodes"),
      stamp("--data", data, "--since", "1s"),
      stamp("--data", data, "--since", "yesterday"),
    ]);
    assert.equal(none.code, 1);
    assert.match(none.err, /there are no logs in .*no cluster was started on this folder\. Start one: \.\/stamp up -d/);
    assert.equal(other.code, 1);
    assert.match(other.err, /no log of extent-nodes is in .*; there are: extent-node-1, extent-node-2, front-end-1/);
    assert.equal(empty.code, 0);
    assert.match(empty.err, /no line in .* is as asked for \(3 logs were read\)/);
    assert.equal(wrong.code, 2);
  });

  it("follows over a rotation and to a log that appears later, as JSON for tools", { timeout: 60_000 }, async (t) => {
    const logs = newFolder();
    const log = new LogFile(join(logs, "p-1.log"), 2_000);
    log.write(Buffer.from(line(1, "before")));
    const child = spawn(process.execPath, [main, "logs", "--follow", "--json", "--data", join(logs, "..")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(() => child.kill("SIGKILL"));
    const seen = linesOf(child);
    assert.equal((await seen.next()).value, "p-1 before");
    for (let at = 0; at < 30; at++) log.write(Buffer.from(line(2, String(at))));
    for (let at = 0; at < 30; at++) assert.equal((await seen.next()).value, `p-1 ${at}`);
    assert.match(readFileSync(join(logs, "p-1.log.1"), "utf8"), /"msg":"0"/, "it was rotated");
    writeFileSync(join(logs, "q-1.log"), "Error: no memory\n");
    assert.equal((await seen.next()).value, "q-1 Error: no memory");
    log.close();
  });

  it("begins to follow with the last 100 lines, and with all or some if it is told so", { timeout: 60_000 }, async (t) => {
    const logs = newFolder();
    writeFileSync(join(logs, "p-1.log"), Array.from({ length: 150 }, (_, at) => line(1, String(at))).join(""));
    const first = async (...more: readonly string[]): Promise<unknown> => {
      const child = spawn(process.execPath, [main, "logs", "--follow", "--json", "--data", join(logs, ".."), ...more], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      t.after(() => child.kill("SIGKILL"));
      return (await linesOf(child).next()).value;
    };
    const begun = await Promise.all([first(), first("--tail", "all"), first("--tail", "3"), first("--since", timeAt(0))]);
    assert.deepEqual(begun, ["p-1 50", "p-1 0", "p-1 147", "p-1 0"]);
  });

  it("ends without a word when its reader goes", { timeout: 60_000 }, async () => {
    const logs = newFolder();
    writeFileSync(join(logs, "p-1.log"), line(1, "x").repeat(20_000));
    const script = `"${process.execPath}" "${main}" logs --data "${join(logs, "..")}" | head -n 1`;
    const { code, err } = await new Promise<Ran>((resolve) => {
      const child = execFile("bash", ["-o", "pipefail", "-c", script], (_error, out, err) =>
        resolve({ code: child.exitCode ?? -1, out, err }),
      );
    });
    assert.equal(err, "");
    assert.equal(code, 0);
  });
});

async function* linesOf(child: ChildProcess): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of child.stdout?.setEncoding("utf8") ?? []) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const each of lines) {
      const { process, msg, text } = JSON.parse(each) as { process: string; msg?: string; text?: string };
      yield `${process} ${msg ?? text}`;
    }
  }
}

it("--since takes a time that has passed, or a moment", () => {
  const nowMs = Date.parse(timeAt(0));
  assert.equal(sinceMsOf("90s", nowMs), nowMs - 90_000);
  assert.equal(sinceMsOf("2h", nowMs), nowMs - 7_200_000);
  assert.equal(sinceMsOf("1d", nowMs), nowMs - 86_400_000);
  assert.equal(sinceMsOf(timeAt(3), nowMs), nowMs + 3_000);
  for (const wrong of ["", "5", "5w", "-5m", "soon", "5"]) assert.throws(() => sinceMsOf(wrong, nowMs), /90s, 10m, 2h, 1d, or a time/);
});
