/**
 * Several clients want the leases of two blobs and a container, keep them, write under them and without, release and break them, while
 * faults come, most of all such that ranges change servers. What is promised of leases (lease-judge.ts) must hold; after the faults every lease can
 * be had again.
 */
import type { Prng } from "@stamp/base";
import { until } from "@stamp/histories";
import { routeOf } from "@stamp/objects";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { HttpClient, type Received } from "./clients/http-client.ts";
import { simulatedCluster } from "./cluster.ts";
import { Faults } from "./faults/faults.ts";
import { type LeaseCall, LeaseJudge } from "./judges/lease-judge.ts";
import { stageOf } from "./run/stage.ts";
import type { Workload } from "./run/workload.ts";

const clientCount = 3;
const operationsPerClient = 60;
const pauseMaxMs = 1_500;
const workMs = (operationsPerClient * pauseMaxMs) / 2;
const readyWithinMs = 60_000;
const healedWithinMs = 120_000;
/** Whatever was asked and not answered has happened by then, or never will: the front-end and the servers keep to deadlines of at most 30 s. */
const lateMs = 90_000;
const container = "leased";
const blobs = ["a", "b"] as const;
const incarnationsMax = 6;

export const leaseWorkload: Workload = async (sim, tally, focus) => {
  const cluster = simulatedCluster(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const stage = stageOf(sim, tally);
  const key = (prng: Prng): Uint8Array => {
    const name = { account: cluster.account, container, containerIncarnation: 1 + prng.below(incarnationsMax), blob: prng.pick(blobs) };
    return routeOf(sim.rules, { case: "getBlob", value: { name } }).key;
  };
  const reshapes = { cluster, table: "Blob", key, weight: 3 } as const;
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs, reshapes });
  tally.faults = faults.counts;
  const judge = new LeaseJudge();
  const clients = Array.from({ length: clientCount }, (_, i) => {
    const name = `client-${i + 1}`;
    return new LeaseClient(sim, new HttpClient(sim, sim.world(name), name, cluster, "blob"), judge, stage.count);
  });
  const first = clients[0] as LeaseClient;
  const bound = { withinMs: healedWithinMs, pauseMs: 500 };
  await until(stage, "the container and the blobs are made", bound, () => first.prepare());
  faults.start();
  await Promise.all(clients.map((client) => client.work()));
  await faults.heal();
  for (const of of targets) await until(stage, `the lease of ${of} can be had`, bound, () => first.takes(of));
  const wrong = judge.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
};

/** Paths behind the account. */
const targets: readonly string[] = [...blobs.map((blob) => `/${container}/${blob}`), `/${container}?restype=container`];
const isBlob = (of: string): boolean => !of.includes("?");
const actionPath = (of: string): string => `${of}${isBlob(of) ? "?" : "&"}comp=lease`;

interface Held {
  readonly id: string;
  readonly durationMs: number;
}

type Outcome = { readonly kind: "done" } | { readonly kind: "refused"; readonly code: string } | { readonly kind: "notDone" | "unknown" };

function outcomeOf(received: Received | undefined): Outcome {
  if (received === undefined) return { kind: "unknown" };
  if (received.status < 300) return { kind: "done" };
  const code = received.headers["x-ms-error-code"] ?? "";
  if (code.startsWith("Lease")) return { kind: "refused", code };
  return { kind: received.status === 500 ? "unknown" : "notDone" };
}

class LeaseClient {
  readonly #sim: Simulation;
  readonly #http: HttpClient;
  readonly #judge: LeaseJudge;
  readonly #count: (what: string) => void;
  readonly #prng: Prng;
  /** Leases that it believes to have. */
  readonly #held = new Map<string, Held>();

  constructor(sim: Simulation, http: HttpClient, judge: LeaseJudge, count: (what: string) => void) {
    this.#sim = sim;
    this.#http = http;
    this.#judge = judge;
    this.#count = count;
    this.#prng = sim.prng.fork();
  }

  async prepare(): Promise<boolean> {
    const made = await this.#http.request("PUT", `/${container}?restype=container`, {});
    if (made?.status !== 201 && made?.status !== 409) return false;
    for (const blob of blobs) if ((await this.#put(`/${container}/${blob}`, {})).outcome.kind !== "done") return false;
    return true;
  }

  async work(): Promise<void> {
    for (let operations = 0; operations < operationsPerClient; operations++) {
      await this.#sim.sleep(this.#prng.below(pauseMaxMs));
      await this.#step(this.#prng.pick(targets));
    }
  }

  /** After all faults: whoever has it loses it. */
  async takes(of: string): Promise<boolean> {
    await this.#break(of);
    return (await this.#acquire(of)).kind === "done";
  }

  async #step(of: string): Promise<void> {
    const held = this.#held.get(of);
    const dice = this.#prng.below(100);
    if (held === undefined) {
      if (dice < 65) await this.#acquire(of);
      else if (dice < 92 && isBlob(of)) await this.#writeWithout(of);
      else if (dice >= 97) await this.#break(of);
    } else if (dice < 45) await this.#renew(of, held);
    else if (dice < 75 && isBlob(of)) await this.#writeUnder(of, held);
    else if (dice < 85) await this.#release(of, held);
  }

  async #acquire(of: string): Promise<Outcome> {
    const id = guid(this.#prng);
    const seconds = this.#prng.pick([15, 20, 40, 60]);
    const headers = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": String(seconds), "x-ms-proposed-lease-id": id };
    const { asked, outcome } = await this.#act(of, headers);
    if (outcome.kind !== "done") return outcome;
    const held = { id, durationMs: seconds * 1_000 };
    this.#held.set(of, held);
    this.#judge.granted({ ...asked, ...held, by: "acquire" });
    return outcome;
  }

  async #renew(of: string, held: Held): Promise<void> {
    const { asked, outcome } = await this.#act(of, { "x-ms-lease-action": "renew", "x-ms-lease-id": held.id });
    if (outcome.kind === "done") this.#judge.granted({ ...asked, ...held, by: "renew" });
    if (outcome.kind === "refused") this.#lost(asked, held, outcome.code);
  }

  async #release(of: string, held: Held): Promise<void> {
    this.#held.delete(of);
    this.#judge.released(held.id, this.#sim.nowMs);
    await this.#act(of, { "x-ms-lease-action": "release", "x-ms-lease-id": held.id });
  }

  async #break(of: string): Promise<void> {
    const { asked, outcome } = await this.#act(of, { "x-ms-lease-action": "break", "x-ms-lease-break-period": "0" });
    const isOver = outcome.kind === "done" || outcome.kind === "refused";
    this.#judge.broken(of, asked.sentMs, isOver ? asked.answeredMs : asked.sentMs + lateMs);
  }

  async #writeUnder(of: string, held: Held): Promise<void> {
    const { asked, outcome } = await this.#put(of, { "x-ms-lease-id": held.id });
    if (outcome.kind === "refused") this.#lost(asked, held, outcome.code);
  }

  async #writeWithout(of: string): Promise<void> {
    const { asked, outcome } = await this.#put(of, {});
    if (outcome.kind === "done") this.#judge.wroteWithout(asked);
  }

  #lost(asked: LeaseCall, held: Held, code: string): void {
    this.#held.delete(asked.of);
    this.#judge.refused({ ...asked, id: held.id, code });
  }

  #act(of: string, headers: Readonly<Record<string, string>>): Promise<{ readonly asked: LeaseCall; readonly outcome: Outcome }> {
    return this.#ask(of, actionPath(of), headers, new Uint8Array(0), headers["x-ms-lease-action"] ?? "");
  }

  #put(of: string, headers: Readonly<Record<string, string>>): Promise<{ readonly asked: LeaseCall; readonly outcome: Outcome }> {
    return this.#ask(of, of, { "x-ms-blob-type": "BlockBlob", ...headers }, Uint8Array.of(this.#prng.below(256)), "write");
  }

  async #ask(
    of: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    what: string,
  ): Promise<{ readonly asked: LeaseCall; readonly outcome: Outcome }> {
    const sentMs = this.#sim.nowMs;
    const outcome = outcomeOf(await this.#http.request("PUT", path, headers, body));
    this.#count(`${what} ${outcome.kind}`);
    return { asked: { of, sentMs, answeredMs: this.#sim.nowMs }, outcome };
  }
}

function guid(prng: Prng): string {
  const hex = Array.from({ length: 32 }, () => prng.below(16).toString(16)).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
