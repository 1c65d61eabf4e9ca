/** Lines of a long command while it works, and when it is left. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { type ProgressDoor, withProgress } from "./progress.ts";

class Door implements ProgressDoor {
  readonly lines: string[] = [];
  readonly exits: number[] = [];
  now = 0;
  tick: (() => void) | undefined;
  interrupt: (() => void) | undefined;
  readonly nowMs = (): number => this.now;
  readonly say = (line: string): void => void this.lines.push(line);
  readonly exit = (code: number): void => void this.exits.push(code);
  readonly every = (_ms: number, work: () => void): (() => void) => {
    this.tick = work;
    return () => {
      this.tick = undefined;
    };
  };
  readonly onInterrupt = (work: () => void): (() => void) => {
    this.interrupt = work;
    return () => {
      this.interrupt = undefined;
    };
  };

  pass(ms: number): void {
    for (const endMs = this.now + ms; this.now < endMs; ) {
      this.now += 500;
      this.tick?.();
    }
  }
}

const about = { what: "collecting blob-1", afterwards: "The server goes on collecting." };

test("progress: nothing is said of what ends soon; the answer is given", async () => {
  const door = new Door();
  const answer = await withProgress(
    about,
    async (tell) => {
      tell("10 rows");
      door.pass(1_500);
      return 7;
    },
    door,
  );
  assert.deepEqual([answer, door.lines, door.tick, door.interrupt], [7, [], undefined, undefined]);
});

test("progress: what changes is said every 2 s at most, what does not every 10 s, always with the time", async () => {
  const door = new Door();
  const failing = withProgress(
    about,
    async (tell) => {
      door.pass(2_000);
      for (let rows = 1; rows <= 8; rows++) {
        tell(`${rows} rows`);
        door.pass(500);
      }
      door.pass(20_000);
      throw new Error("the work failed");
    },
    door,
  );
  await assert.rejects(failing, /the work failed/);
  assert.deepEqual(door.lines, [
    "2 s: collecting blob-1 (Ctrl-C leaves this)",
    "4 s: 4 rows",
    "6 s: 8 rows",
    "16 s: 8 rows",
    "26 s: 8 rows",
  ]);
  assert.deepEqual([door.tick, door.interrupt], [undefined, undefined]);
});

test("progress: Ctrl-C ends the command with a code of its own and says what goes on", async () => {
  const door = new Door();
  void withProgress(about, async () => door.interrupt?.(), door);
  assert.deepEqual([door.lines, door.exits], [["\nleft. The server goes on collecting."], [130]]);
});

test("progress: a process that is interrupted ends at once, with the words on standard error", async () => {
  const script = `
    import { withProgress } from ${JSON.stringify(join(import.meta.dirname, "progress.ts"))};
    await withProgress(${JSON.stringify(about)}, () => new Promise(() => { setInterval(() => {}, 1000); console.log("begun"); }));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child.stdout.once("data", () => child.kill("SIGINT"));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.deepEqual([code, said.trim()], [130, "left. The server goes on collecting."]);
});

test("progress: a command that was left tells neither the result nor the failure of work that ends just then", async () => {
  for (const fails of [false, true]) {
    const door = new Door();
    let isTold = false;
    const told = withProgress(
      about,
      async () => {
        door.interrupt?.();
        if (fails) throw new Error("too late");
      },
      door,
    );
    void told.finally(() => {
      isTold = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([isTold, door.exits], [false, [130]]);
  }
});
