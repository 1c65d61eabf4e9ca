/**
 * `kill -9` of the supervisor of a real cluster while a client writes. No command takes the folder for that of a stopped cluster, the
 * processes serve on, the next `up` takes over, and `down` stops what is left. Of two `up` at one moment one has the cluster and the other
 * says who has it. Every acknowledged blob is there after each step.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { reservePorts } from "@stamp/cluster";
import { BlobClient } from "@stamp/drills";

const root = resolve(import.meta.dirname, "../..");
const dataDir = mkdtempSync(join(tmpdir(), "stamp-killed-"));
const container = "kept";
/** A write may wait for a take-over. */
const writtenWithinMs = 120_000;

interface Said {
  readonly code: number;
  readonly text: string;
}

const stamp = (...args: readonly string[]): Promise<Said> =>
  new Promise((done) => {
    const child = execFile(process.execPath, [join(root, "stamp.mjs"), ...args, "--data", dataDir], (_error, stdout, stderr) =>
      done({ code: child.exitCode ?? -1, text: stdout + stderr }),
    );
  });

/** Starts the cluster on ports of its own, and returns their base. */
async function started(): Promise<number> {
  const { portBase } = await reservePorts();
  const up = await stamp("up", "-d", "--ready-timeout-s", "180", "--port-base", String(portBase));
  assert.equal(up.code, 0, up.text);
  return portBase;
}

const inRun = <T>(name: string): T => JSON.parse(readFileSync(join(dataDir, "run", name), "utf8")) as T;

const supervisorPid = (): number => inRun<{ readonly pid: number }>("supervisor.json").pid;

/** Pids of the processes that the supervisor has noted and that run. */
const running = (): number[] =>
  inRun<readonly { readonly pid: number }[]>("processes.json")
    .map(({ pid }) => pid)
    .filter(isAlive);

async function killSupervisor(): Promise<void> {
  const pid = supervisorPid();
  process.kill(pid, "SIGKILL");
  while (isAlive(pid)) await pause(20);
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Writes small blobs one after another, each under a new name, and remembers what was acknowledged. */
class Writer {
  readonly acknowledged: number[] = [];
  readonly #client: BlobClient;
  #next = 0;
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(connectionString: string) {
    this.#client = BlobClient.fromConnectionString(connectionString, { timeoutMs: 20_000 });
  }

  async start(): Promise<void> {
    const made = await this.#client.createContainer(container);
    assert.ok(made.kind === "answer" && made.status === 201, JSON.stringify(made));
    this.#running = this.#write();
  }

  async #write(): Promise<void> {
    while (!this.#stopped) {
      const number = this.#next++;
      const put = await this.#client.put(container, `b${number}`, Buffer.from(`blob ${number}`));
      if (put.kind === "answer" && put.status === 201) this.acknowledged.push(number);
      else await pause(100);
    }
  }

  /** Waits until blobs that were begun after this call are acknowledged. */
  async writesOn(when: string): Promise<void> {
    const from = this.#next;
    const endMs = performance.now() + writtenWithinMs;
    while (!(this.acknowledged.at(-1) !== undefined && (this.acknowledged.at(-1) as number) >= from)) {
      assert.ok(performance.now() < endMs, `nothing is written within ${writtenWithinMs} ms: ${when}`);
      await pause(50);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async allThere(when: string): Promise<void> {
    assert.ok(this.acknowledged.length > 0);
    for (const number of this.acknowledged) {
      const got = await this.#client.get(container, `b${number}`);
      assert.ok(got.kind === "answer" && got.status === 200 && got.body.equals(Buffer.from(`blob ${number}`)), `b${number} ${when}`);
    }
  }

  close(): void {
    this.#client.close();
  }
}

after(async () => {
  await stamp("down");
  rmSync(dataDir, { recursive: true, force: true });
});

test("supervisor killed under load: nobody takes the stamp for a stopped one, and nothing acknowledged is lost", {
  timeout: 900_000,
}, async (t) => {
  const portBase = await started();
  const up = (): Promise<Said> => stamp("up", "-d", "--ready-timeout-s", "180", "--port-base", String(portBase));
  const shown = JSON.parse((await stamp("status", "--json")).text) as { readonly connectionString: string };
  const writer = new Writer(shown.connectionString);
  t.after(() => writer.close());
  await writer.start();
  await writer.writesOn("before the first kill");

  await killSupervisor();
  const orphans = running();
  assert.ok(orphans.length > 0);
  const copy = join(dataDir, "stamp.json");
  for (const command of [["status"], ["reset", "--yes"], ["metadata", "restore", copy, "--replace"]]) {
    const { code, text } = await stamp(...command);
    assert.notEqual(code, 0, text);
    assert.match(text, new RegExp(`the supervisor of ${dataDir} is gone, but ${orphans.length} of its processes still run \\(pid `), text);
    assert.match(text, /\.\/stamp down --data .*\.\/stamp up --data/, text);
  }
  assert.deepEqual(running(), orphans, "every process still runs");
  await writer.writesOn("while no supervisor runs");

  const again = await up();
  assert.equal(again.code, 0, again.text);
  assert.ok(isAlive(supervisorPid()));
  assert.deepEqual(orphans.filter(isAlive), [], "the next cluster does not run beside the orphans");
  await writer.writesOn("after the next up");
  await writer.allThere("after the next up");

  await killSupervisor();
  const left = running();
  await writer.stop();
  const down = await stamp("down");
  assert.equal(down.code, 0, down.text);
  for (const pid of left) assert.ok(down.text.includes(String(pid)) && !isAlive(pid), `pid ${pid}: ${down.text}`);
  const stopped = await stamp("status");
  assert.ok(stopped.code !== 0 && stopped.text.includes(`no cluster runs on ${dataDir}`), stopped.text);

  const both = await Promise.all([up(), up()]);
  const [won, lost] = both.toSorted((a, b) => a.code - b.code) as [Said, Said];
  assert.equal(won.code, 0, won.text);
  assert.notEqual(lost.code, 0, lost.text);
  assert.match(lost.text, new RegExp(`a cluster already runs on ${dataDir} \\(supervisor pid ${supervisorPid()}`), lost.text);
  await writer.allThere("after two up at one moment");

  assert.equal((await stamp("down")).code, 0);
  assert.equal((await stamp("reset", "--yes")).code, 0);
});

/** True if a process with this pid runs; one that ended and was not waited for does not count. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
