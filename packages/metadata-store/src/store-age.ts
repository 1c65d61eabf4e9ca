/**
 * Knows the highest transaction that a manager's own stamp is known to have reached, and refuses a metadata store that is below it: the
 * folder of the lock service (store and mark) was put back from an older backup. A restore raises versions by 2^36, so a restored store is
 * always above.
 *
 * Invariants:
 *   - A version of the store is learned only when the store has proven, in the same start, that it is this stamp's.
 *   - A version that a node reports counts when a second node reports it or a higher one: one faulty node stops nobody.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { MetadataClient, type StorePosition } from "./metadata-client.ts";

export class StoreAge {
  readonly #rules: World["rules"];
  readonly #logger: World["logger"];
  readonly #lockService: string;
  readonly #metadata: MetadataClient;
  readonly #stampId: () => string | undefined;
  readonly #timeoutMs: number;
  readonly #reported = new Map<string, number>();
  #learned = 0;
  /** Start of the store that has proven its stamp. */
  #proven = "";
  #damage: string | undefined;

  /** `stampId`: of the caller's own stamp; while it is undefined nothing is learned and nothing refused. */
  constructor(world: World, lockService: string, timeoutMs: number, stampId: () => string | undefined) {
    this.#rules = world.rules;
    this.#logger = world.logger;
    this.#lockService = lockService;
    this.#metadata = new MetadataClient(world, lockService);
    this.#timeoutMs = timeoutMs;
    this.#stampId = stampId;
  }

  /** For people: why the store is refused, and what to do. Undefined while it is not. */
  get damage(): string | undefined {
    return this.#damage;
  }

  /** Number of the highest transaction that is known; 0: none. */
  get highest(): number {
    const [, second = 0] = [...this.#reported.values()].sort((a, b) => b - a);
    return Math.max(this.#learned, second);
  }

  /** Number of the last transaction that the store itself was seen at; 0: none. */
  get learned(): number {
    return this.#learned;
  }

  /** Notes the version of the newest copy on a node of this stamp. The caller bounds the nodes: only recorded ones. */
  reported(nodeId: string, version: number): void {
    this.#reported.set(nodeId, version);
  }

  /** Asks the store where it is. Refused with `damaged` if that is below what is known. */
  async look(): Promise<Outcome<void>> {
    const { highest } = this;
    const position = await this.#metadata.position(this.#timeoutMs);
    return position.ok ? this.check(position.value, highest) : position;
  }

  /**
   * Refused with `damaged` if the store is this stamp's and below what was known (rule `storeNotOlder`). `highest` is what was known before
   * the store was asked for `position`: what another answer or a node has told since may be newer than this one.
   */
  async check(position: StorePosition, highest: number): Promise<Outcome<void>> {
    const proven = await this.#isOwn(position.instance);
    if (!proven.ok) return proven;
    if (!proven.value) return ok();
    if (position.version >= highest || !this.#rules.on("storeNotOlder")) {
      if (this.#damage !== undefined) this.#logger.info("the metadata store is not behind any more", { version: position.version });
      this.#damage = undefined;
      this.#learned = Math.max(this.#learned, position.version);
      return ok();
    }
    const message =
      `the metadata store of the lock service ${this.#lockService} is at transaction ${position.version}, but ${highest} was seen: it was put ` +
      "back from an older backup. Nothing is changed or served from it until it is restored: stop the stamp, then `stamp metadata restore " +
      "--replace FILE` with the newest file of <extent node>/files/metadata-copies (docs/guides/metadata.md)";
    if (this.#damage === undefined) this.#logger.error("the metadata store is refused", { why: message });
    this.#damage = message;
    return refused("dataLoss", "damaged", message);
  }

  /** Asks for the stamp between two answers of one start, so that all are of that start. */
  async #isOwn(instance: string): Promise<Outcome<boolean>> {
    const own = this.#stampId();
    if (own === undefined) return ok(false);
    if (this.#proven === instance) return ok(true);
    const stampId = await this.#metadata.stampId(this.#timeoutMs);
    if (!stampId.ok) return stampId;
    if (stampId.value !== own) return ok(false);
    const after = await this.#metadata.position(this.#timeoutMs);
    if (!after.ok) return after;
    if (after.value.instance !== instance) return refused("unavailable", "notReady", "the metadata store has started again meanwhile");
    this.#proven = instance;
    return ok(true);
  }
}
