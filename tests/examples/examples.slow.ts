/** The programs of `examples/`, as a user runs them, against a real cluster. Each checks its own result and says so by its exit code. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { type DrillTarget, startOwn } from "@stamp/drills";

const examples = join(import.meta.dirname, "../../examples");
let stamp: DrillTarget;
let env: Record<string, string | undefined>;

before(async () => {
  stamp = await startOwn({ extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1 }, false);
  const signals = (await stamp.status()).processes.filter(({ role }) => role === "front-end").map(({ grpc }) => grpc);
  env = { ...process.env, STAMP: stamp.connectionString, SIGNALS: signals.join(",") };
});
after(() => stamp?.close());

const start = (name: string, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [join(examples, `${name}.ts`), ...args], { env, stdio: ["ignore", "pipe", "inherit"] });

/** Runs an example to its end and returns what it printed. */
async function run(name: string, ...args: string[]): Promise<string> {
  const child = start(name, args);
  let printed = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  const [code] = await once(child, "close");
  assert.equal(code, 0, `${name} ended with ${code}:\n${printed}`);
  return printed;
}

test("order numbers: four processes, no number twice", async () => {
  assert.match(await run("order-numbers", "--processes", "4", "--ids", "3000", "--range", "100"), /given twice: 0; backwards: 0/);
});

test("leader election: the leader is killed, another one leads with a higher token", async () => {
  assert.match(await run("leader-election", "--candidates", "3", "--kills", "1"), /tokens that did not rise: 0/);
});

test("a hundred waiting workers are unleashed in three ways", async () => {
  const printed = await run("unleash");
  assert.match(printed, /the signal reached 100 listeners/);
  assert.equal(printed.match(/100 workers run/g)?.length, 3);
});

test("the wiki page of two editors", async () => {
  assert.match(await run("wiki"), /10 visits counted/);
});

test("a queue with crashing workers: every order is done", async () => {
  assert.match(await run("queue-workers", "--messages", "100", "--crashes", "2"), /100 of 100 orders done.*set aside: 1/);
});

test("private endpoints: the page's node is disabled, another one serves", async () => {
  const child = start("private-endpoints", ["--port", "0", "--seconds", "120"]);
  try {
    const lines = createInterface({ input: child.stdout ?? process.stdin });
    const [line] = (await once(lines, "line")) as [string];
    const address = /open (\S+) in/.exec(line)?.[1];
    assert.ok(address !== undefined, line);
    const served = async (): Promise<string> => /served by the work of (node \d)/.exec(await (await fetch(address)).text())?.[1] ?? "";
    assert.equal(await served(), "node 1");
    await fetch(address, { method: "POST" });
    // Its last yes is good for a second more.
    for (let tries = 0; (await served()) === "node 1"; tries++) {
      assert.ok(tries < 200, "the disabled node serves on");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.match(await served(), /node [02]/);
  } finally {
    child.kill();
  }
});

test("without a connection string an example says what to do", async () => {
  const child = spawn(process.execPath, [join(examples, "wiki.ts")], {
    env: { ...process.env, STAMP: "" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const [code] = await once(child, "close");
  assert.deepEqual([code, /Set STAMP to the connection string/.test(said)], [2, true]);
});
