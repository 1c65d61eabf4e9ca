import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { CountedClock, settled } from "../testing/clock.ts";
import { OtherHosts } from "./other-hosts.ts";

const [second, minute, hour] = [1_000, 60_000, 3_600_000];
const stepMs = 100;

/** "refused": the process is of an older release. Undefined: it does not answer. */
type Ahead = Readonly<Record<string, number | "refused" | undefined>>;

/** A front-end on host a; `aheadMs` of each process's clock by its address. */
class Scene {
  aheadMs: Ahead;
  ownAheadMs: number;
  readonly logged: string[] = [];
  readonly asked: string[] = [];
  readonly #clock = new CountedClock();
  readonly hosts: OtherHosts;

  constructor(aheadMs: Ahead, ownAheadMs = 0) {
    this.aheadMs = aheadMs;
    this.ownAheadMs = ownAheadMs;
    const counted = this.#clock;
    const trueMs = (): number => 1_700_000_000_000 + counted.monotonicMs();
    const clock = {
      monotonicMs: () => counted.monotonicMs(),
      suspendedMs: () => 0,
      wallMs: () => trueMs() + this.ownAheadMs,
      after: (delayMs: number, callback: () => void) => counted.after(delayMs, callback),
    };
    const getStatus = async (address: string) => {
      this.asked.push(address);
      const ahead = this.aheadMs[address];
      if (ahead === "refused") return refused("permissionDenied", "unauthorized", "a front-end may not ask");
      return ahead === undefined ? refused("unavailable", "timeout", "no answer") : ok({ wallMs: BigInt(trueMs() + ahead) });
    };
    const transport = { client: (address: string) => ({ getStatus: () => getStatus(address) }) };
    const log = (text: string): number => this.logged.push(text);
    const world = { clock, transport, logger: { warn: log, info: log } } as unknown as World;
    this.hosts = new OtherHosts(world, { processes: () => Object.keys(this.aheadMs), own: () => "10.0.0.1:10000" });
    this.hosts.start();
  }

  /** In steps, so that answers arrive between them. */
  async pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      await settled();
      await this.#clock.pass(stepMs);
    }
    await settled();
  }
}

const three = { "10.0.0.1:1": 0, "10.0.0.2:1": 0, "10.0.0.3:1": 0 };

test("a front-end whose clock is set by an hour is not ready until it is set back", async () => {
  const scene = new Scene(three);
  await scene.pass(second);
  assert.deepEqual(scene.hosts.waitingFor, []);
  scene.hosts.accepted();
  scene.ownAheadMs = hour;
  await scene.pass(6 * second);
  assert.deepEqual(
    scene.hosts.waitingFor,
    ["a clock like most hosts have: theirs are 3600 s behind, so signed requests are refused here"],
    "the request that it accepted was before",
  );
  assert.deepEqual(scene.logged, ["clients should ask another front-end"]);
  scene.ownAheadMs = 0;
  await scene.pass(6 * second);
  assert.deepEqual(scene.hosts.waitingFor, []);
});

test("a front-end that starts with a clock that is an hour off is not ready", async () => {
  const scene = new Scene(three, -hour);
  await scene.pass(second);
  assert.match(scene.hosts.waitingFor.join(), /3600 s ahead/);
});

test("processes of the own host have no vote, and each other host has one", async () => {
  const scene = new Scene({ "10.0.0.1:1": hour, "10.0.0.1:2": hour, "10.0.0.2:1": hour, "10.0.0.2:2": hour, "10.0.0.3:1": 0 });
  await scene.pass(second);
  assert.deepEqual(scene.hosts.waitingFor, []);
  await scene.pass(2 * second);
  assert.deepEqual([...new Set(scene.asked)].sort(), ["10.0.0.2:1", "10.0.0.2:2", "10.0.0.3:1"]);
});

test("a host counts if one of its processes answers, for a minute", async () => {
  const scene = new Scene({ "10.0.0.2:1": undefined, "10.0.0.2:2": hour, "10.0.0.3:1": hour });
  await scene.pass(3 * second);
  assert.match(scene.hosts.waitingFor.join(), /3600 s ahead/);
  scene.aheadMs = { ...scene.aheadMs, "10.0.0.2:2": undefined };
  await scene.pass(30 * second);
  assert.match(scene.hosts.waitingFor.join(), /3600 s ahead/);
  await scene.pass(35 * second);
  assert.deepEqual(scene.hosts.waitingFor, [], "nobody knows its clock any more");
});

test("a host whose others do not answer is cut off within three seconds, until one answers", async () => {
  const scene = new Scene(three);
  await scene.pass(2 * second);
  assert.equal(scene.hosts.cutOff, false);
  scene.aheadMs = { "10.0.0.1:1": 0, "10.0.0.2:1": undefined, "10.0.0.3:1": 0 };
  await scene.pass(10 * second);
  assert.equal(scene.hosts.cutOff, false, "one of two answers");
  scene.aheadMs = { "10.0.0.1:1": 0, "10.0.0.2:1": undefined, "10.0.0.3:1": undefined };
  await scene.pass(3 * second);
  assert.equal(scene.hosts.cutOff, true);
  assert.deepEqual(scene.hosts.waitingFor, ["an answer of another host: none of 10.0.0.2, 10.0.0.3 answers"]);
  assert.deepEqual([scene.hosts.isHere("10.0.0.1:7"), scene.hosts.isHere("10.0.0.11:7")], [true, false]);
  scene.aheadMs = { "10.0.0.2:1": 0, "10.0.0.3:1": undefined };
  await scene.pass(second);
  assert.equal(scene.hosts.cutOff, false);
  assert.deepEqual(scene.logged, ["clients should ask another front-end", "clients can ask this front-end again"]);
});

test("a host whose only other host is silent goes on alone", async () => {
  const scene = new Scene({ "10.0.0.1:1": 0, "10.0.0.2:1": undefined, "10.0.0.2:2": undefined });
  await scene.pass(10 * second);
  assert.deepEqual([scene.hosts.cutOff, scene.hosts.waitingFor, scene.logged], [false, [], []]);
});

test("a host is not cut off because one process of each other host is dead", async () => {
  const scene = new Scene({ "10.0.0.2:1": undefined, "10.0.0.2:2": 0, "10.0.0.3:1": undefined, "10.0.0.3:2": 0 });
  for (let i = 0; i < 100; i++) {
    await scene.pass(100);
    assert.equal(scene.hosts.cutOff, false);
  }
});

test("processes of an older release refuse the question, which is an answer, and no vote", async () => {
  const scene = new Scene({ "10.0.0.1:1": 0, "10.0.0.2:1": "refused", "10.0.0.3:1": "refused" }, hour);
  await scene.pass(10 * second);
  assert.deepEqual([scene.hosts.cutOff, scene.hosts.waitingFor], [false, []]);
});

test("a stamp on one host asks nobody", async () => {
  const scene = new Scene({ "10.0.0.1:1": 0, "10.0.0.1:2": 0 });
  await scene.pass(10 * second);
  assert.deepEqual([scene.asked, scene.hosts.cutOff, scene.hosts.waitingFor], [[], false, []]);
});

test("if the clocks of most hosts are wrong, a front-end with the clock of its clients stays ready", async () => {
  const scene = new Scene(three);
  await scene.pass(second);
  scene.hosts.accepted();
  scene.aheadMs = { "10.0.0.2:1": hour, "10.0.0.3:1": hour };
  await scene.pass(10 * minute);
  assert.deepEqual(scene.hosts.waitingFor, []);
  assert.deepEqual(scene.logged, []);
});
