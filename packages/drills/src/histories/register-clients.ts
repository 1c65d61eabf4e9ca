/**
 * Beside a drill's writers: a few clients that put, update under If-Match, get, delete and list the same blobs. Their recorded history must
 * be linearizable.
 */
import { randomBytes } from "node:crypto";
import { Prng } from "@stamp/base";
import { HttpBlobDoor, ObjectClients } from "@stamp/histories";
import type { BlobClient } from "../blob-client.ts";
import { judgedInto, judgeHistory, stageInto } from "./real-stage.ts";

const clientCount = 3;
const pauseMaxMs = 60;
const healedWithinMs = 60_000;
/** Names before and after the writers' names, so that they are in different ranges when those are split. */
const places = ["drill-0", "drill-z"];
const names = ["a", "m", "z"];

export class RegisterClients {
  readonly #counts: Record<string, number> = {};
  readonly #prng = new Prng(randomBytes(4).readUInt32LE(0));
  readonly #door: HttpBlobDoor;
  readonly #containers: ReadonlyMap<string, readonly string[]>;
  readonly #clients: ObjectClients;
  readonly #broken: string[] = [];
  #running = false;
  #work: Promise<void> = Promise.resolve();

  constructor(client: BlobClient) {
    const unique = randomBytes(4).toString("hex");
    this.#door = new HttpBlobDoor(async (...request) => {
      const answer = await client.call(...request);
      if (answer.kind === "answer") return answer;
      return answer.kind === "unsent" ? { kind: "notSent" } : undefined;
    });
    this.#containers = new Map(places.map((place) => [`${place}-${unique}`, names]));
    this.#clients = new ObjectClients(stageInto(this.#counts), this.#containers, { pauseMaxMs, recreateOneIn: 0 });
  }

  get operations(): number {
    return Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
  }

  async start(): Promise<void> {
    for (const container of this.#containers.keys()) await this.#clients.createContainer(this.#door, container);
    this.#running = true;
    const clients = Array.from({ length: clientCount }, () => this.#clients.work(this.#door, this.#prng.fork(), () => this.#running));
    this.#work = judgedInto(this.#broken, Promise.all(clients));
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#work;
  }

  /** Reads every register once more, and returns what is wrong with all observations. */
  async judge(): Promise<readonly string[]> {
    await judgedInto(this.#broken, this.#clients.readBack(this.#door, this.#prng, healedWithinMs));
    return [...this.#broken, ...judgeHistory(this.#clients)];
  }
}
