/**
 * Several clients put blobs under legal holds, each its own blobs, while others, and they themselves, do what would take these blobs away:
 * overwrite and delete them, let them expire, delete their containers at any time. What a hold that was acknowledged protects is there, as it
 * was, until its owner asks to lift it; at the end every blob that is still held is read.
 */
import { type Prng, utf8 } from "@stamp/base";
import { until } from "@stamp/histories";
import { routeOf } from "@stamp/objects";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { HttpClient, type Received } from "./clients/http-client.ts";
import { simulatedCluster } from "./cluster.ts";
import { Faults } from "./faults/faults.ts";
import { collectingOf } from "./faults/garbage.ts";
import { stageOf } from "./run/stage.ts";
import type { Workload } from "./run/workload.ts";

const clientCount = 3;
const roundsPerClient = 12;
const pauseMaxMs = 150;
const workMs = clientCount * roundsPerClient * pauseMaxMs;
const readyWithinMs = 60_000;
const healedWithinMs = 120_000;
const containers = ["one", "two", "three", "four", "five"] as const;
const attacksMax = 3;
/** Longest pause between two deletions of containers by one who does nothing else. */
const deletionPauseMaxMs = 20;
const incarnationsMax = 40;

export const holdWorkload: Workload = async (sim, tally, focus) => {
  const cluster = simulatedCluster(sim, collectingOf(sim).options);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const stage = stageOf(sim, tally);
  const key = (prng: Prng): Uint8Array => {
    const container = { account: cluster.account, container: prng.pick(containers), containerIncarnation: 1 + prng.below(incarnationsMax) };
    return routeOf(sim.rules, { case: "getBlob", value: { name: { ...container, blob: `${prng.below(clientCount)}` } } }).key;
  };
  const reshapes = { cluster, table: "Blob", key, weight: 3 } as const;
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs, reshapes });
  tally.faults = faults.counts;
  const clients = Array.from({ length: clientCount }, (_, i) => {
    const name = `client-${i + 1}`;
    return new Holder(sim, new HttpClient(sim, sim.world(name), name, cluster, "blob"), `${i}`, stage.count);
  });
  const http = new HttpClient(sim, sim.world("deleter"), "deleter", cluster, "blob");
  const deleter = new Holder(sim, http, "none", stage.count);
  faults.start();
  let working = clients.length;
  const work = async (client: Holder): Promise<void> => {
    await client.work();
    working--;
  };
  await Promise.all([...clients.map(work), deleter.deletesContainers(() => working > 0)]);
  await faults.heal();
  const bound = { withinMs: healedWithinMs, pauseMs: 500 };
  // During the faults the deletions may win every race; without them a hold must be granted.
  for (const client of clients) {
    await until(stage, "a blob is put under a hold", bound, () => client.holdsOne());
    await until(stage, "a blob that is held is read", bound, () => client.readsHeld());
  }
};

interface Held {
  readonly path: string;
  readonly content: string;
}

class Holder {
  readonly #sim: Simulation;
  readonly #http: HttpClient;
  readonly #blob: string;
  readonly #count: (what: string) => void;
  readonly #prng: Prng;
  /** State that its acknowledged hold protects. */
  #held: Held | undefined;
  #contents = 0;

  constructor(sim: Simulation, http: HttpClient, blob: string, count: (what: string) => void) {
    this.#sim = sim;
    this.#http = http;
    this.#blob = blob;
    this.#count = count;
    this.#prng = sim.prng.fork();
  }

  async work(): Promise<void> {
    for (let round = 0; round < roundsPerClient; round++) {
      await this.#hold(this.#prng.pick(containers));
      const attacks = this.#prng.below(attacksMax);
      for (let i = 0; i < attacks; i++) {
        await this.#sim.sleep(this.#prng.below(pauseMaxMs));
        await this.#attack();
        await this.readsHeld();
      }
      if (round < roundsPerClient - 1) await this.#lift();
    }
  }

  /** Its deletions meet holds at any moment. */
  async deletesContainers(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await this.#sim.sleep(this.#prng.below(deletionPauseMaxMs));
      await this.#deleteContainer();
    }
  }

  /** Puts a blob that it has not under a hold yet; with the same request, or one that follows. */
  async #hold(container: string): Promise<void> {
    await this.#ask("create container", "PUT", `/${container}?restype=container`);
    const path = `/${container}/${this.#blob}`;
    const content = `${this.#blob} ${++this.#contents}`;
    const withHold: Record<string, string> = this.#prng.chance(0.5) ? { "x-ms-legal-hold": "true" } : {};
    const put = await this.#ask("put", "PUT", path, { "x-ms-blob-type": "BlockBlob", ...withHold }, content);
    if (put?.status !== 201) return;
    if (this.#prng.chance(0.5)) {
      const expiry = { "x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": String(1 + this.#prng.below(2_000)) };
      await this.#ask("expiry", "PUT", `${path}?comp=expiry`, expiry);
    }
    const held = withHold["x-ms-legal-hold"]
      ? put
      : await this.#ask("hold", "PUT", `${path}?comp=legalhold`, { "x-ms-legal-hold": "true" });
    if (!held || held.status >= 300) return;
    this.#held = { path, content };
  }

  /** True if it holds a blob; otherwise tries once to put one under a hold. */
  async holdsOne(): Promise<boolean> {
    if (this.#held === undefined) await this.#hold(this.#prng.pick(containers));
    return this.#held !== undefined;
  }

  async #lift(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    for (let tries = 0; held && tries < 20; tries++) {
      const lifted = await this.#ask("lift", "PUT", `${held.path}?comp=legalhold`, { "x-ms-legal-hold": "false" });
      if (lifted && lifted.status < 500) return;
    }
  }

  /** Tries to take a held blob away, most of all by the deletion of its container. */
  async #attack(): Promise<void> {
    const path = `/${this.#prng.pick(containers)}/${this.#blob}`;
    const dice = this.#prng.below(10);
    if (dice < 4) await this.#deleteContainer();
    else if (dice < 6) await this.#ask("delete", "DELETE", path);
    else if (dice < 8) await this.#ask("overwrite", "PUT", path, { "x-ms-blob-type": "BlockBlob" }, "other");
    else if (dice < 9) await this.#ask("metadata", "PUT", `${path}?comp=metadata`, { "x-ms-meta-a": "b" });
    else await this.#ask("append", "PUT", path, { "x-ms-blob-type": "AppendBlob" });
  }

  async #deleteContainer(): Promise<void> {
    await this.#ask("delete container", "DELETE", `/${this.#prng.pick(containers)}?restype=container`);
  }

  /** True if nothing is held, or what is held was read; a stamp that can't answer now is asked again later. */
  async readsHeld(): Promise<boolean> {
    const held = this.#held;
    if (held === undefined) return true;
    const read = await this.#ask("read", "GET", held.path);
    if (read === undefined || read.status >= 500 || read.short) return false;
    const found = read.status === 200 ? new TextDecoder().decode(read.body) : `${read.status} ${read.headers["x-ms-error-code"]}`;
    if (found !== held.content) throw new BrokenPromise(`${held.path} is under a hold with "${held.content}", and is read as "${found}"`);
    return true;
  }

  async #ask(
    what: string,
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    content = "",
  ): Promise<Received | undefined> {
    const received = await this.#http.request(method, path, headers, utf8(content));
    this.#count(`${what} ${received === undefined ? "unknown" : received.status}`);
    return received;
  }
}
