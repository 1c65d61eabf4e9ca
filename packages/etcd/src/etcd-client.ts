/**
 * Calls to the members of an etcd. One member is called until it fails, then the next one. A call is one attempt: whoever calls decides what is
 * tried again.
 *
 * Invariants:
 *   - A transaction has `applied: "no"` only if etcd refused it before it was proposed, or no connection was there. Everything else is unknown.
 *   - Reads are linearizable: no request is `serializable`.
 */
import { type Failure, type Outcome, ok } from "@stamp/base";
import { type Client, type ForeignServer, jittered, sleep, type World } from "@stamp/ports";
import { etcd } from "@stamp/wire";
import { attemptTimeoutMs, type EtcdOptions } from "./options.ts";

type EtcdWorld = Pick<World, "clock" | "random" | "foreign" | "logger">;

export interface Member {
  readonly address: string;
  readonly kv: Client<typeof etcd.KV>;
  readonly lease: Client<typeof etcd.Lease>;
  readonly watch: Client<typeof etcd.Watch>;
  readonly auth: Client<typeof etcd.Auth>;
  readonly maintenance: Client<typeof etcd.Maintenance>;
}

type Metadata = Readonly<Record<string, string>>;

const pauseMinMs = 20;
const pauseMaxMs = 250;
/** Time without a successful call after which a log line says so, in milliseconds; a change of the leader takes less. */
const toldAfterMs = 3_000;
const toldEveryMs = 60_000;

export class EtcdClient {
  readonly world: EtcdWorld;
  readonly #options: EtcdOptions;
  readonly #members: readonly Member[];
  #at = 0;
  /** Token for calls of etcd; empty: etcd asks for none. */
  #token: string | undefined;
  #trouble: Failure | undefined;
  /** Time of the first failure since a call succeeded, and of the last log line about it, by the monotonic clock. */
  #troubleSinceMs = 0;
  #toldMs: number | undefined;

  constructor(world: EtcdWorld, options: EtcdOptions) {
    this.world = world;
    this.#options = options;
    this.#members = options.endpoints.map((address) => {
      const server: ForeignServer = { address, tls: options.tls };
      return {
        address,
        kv: world.foreign.client(server, etcd.KV),
        lease: world.foreign.client(server, etcd.Lease),
        watch: world.foreign.client(server, etcd.Watch),
        auth: world.foreign.client(server, etcd.Auth),
        maintenance: world.foreign.client(server, etcd.Maintenance),
      };
    });
  }

  /** Returns why the last call failed; undefined if it did not. */
  get trouble(): Failure | undefined {
    return this.#trouble;
  }

  /** One attempt at the current member; after a failure that another member may not have, the next call goes to the next member. */
  async once<T>(
    work: (member: Member, options: { readonly timeoutMs: number; readonly metadata: Metadata }) => Promise<Outcome<T>>,
    timeoutMs: number = attemptTimeoutMs,
  ): Promise<Outcome<T>> {
    const at = this.#at;
    const metadata = await this.metadata(timeoutMs);
    const answer = metadata.ok ? await work(this.member, { timeoutMs, metadata: metadata.value }) : metadata;
    if (answer.ok) {
      this.#answered();
      return answer;
    }
    const failure = inOurTerms(answer.failure);
    this.#failed(failure);
    if (failure.reason === "unauthorized") this.#token = undefined;
    else if (!isOfTheRequest(failure) && this.#at === at) this.nextMember();
    return { ok: false, failure };
  }

  /** Tries what may be repeated until it succeeds, is refused for what it is, or `stop` says so after a failure. */
  async repeat<T>(
    work: (member: Member, options: { readonly timeoutMs: number; readonly metadata: Metadata }) => Promise<Outcome<T>>,
    stop: (failure: Failure) => boolean,
  ): Promise<Outcome<T>> {
    for (let tries = 0; ; tries++) {
      const answer = await this.once(work);
      if (answer.ok || isOfTheRequest(answer.failure) || stop(answer.failure)) return answer;
      await this.pause(tries);
    }
  }

  /** Waits before the next attempt of a call; longer after each one. */
  async pause(tries: number, signal?: AbortSignal): Promise<void> {
    const { clock, random } = this.world;
    await sleep(clock, jittered(random, Math.min(pauseMinMs * 2 ** Math.min(tries, 8), pauseMaxMs)), signal);
  }

  get members(): readonly Member[] {
    return this.#members;
  }

  get member(): Member {
    return this.#members[this.#at] as Member;
  }

  nextMember(): void {
    this.#at = (this.#at + 1) % this.#members.length;
  }

  /** Returns the metadata of every call: the token of the configured user. */
  async metadata(timeoutMs: number): Promise<Outcome<Metadata>> {
    const { user } = this.#options;
    if (user === undefined) return ok({});
    if (this.#token === undefined) {
      const answer = await this.member.auth.authenticate(user, { timeoutMs });
      // Users may be switched on later: etcd then asks for one, and this asks again.
      const asksForNone = !answer.ok && /authentication is not enabled/.test(answer.failure.message);
      if (!answer.ok && !asksForNone) return { ok: false, failure: { ...answer.failure, applied: "no" } };
      this.#token = answer.ok ? answer.value.token : "";
    }
    return ok(this.#token === "" ? {} : { token: this.#token });
  }

  #answered(): void {
    this.#trouble = undefined;
    if (this.#toldMs !== undefined) this.world.logger.info("etcd answers again", { troubleMs: this.#nowMs() - this.#troubleSinceMs });
    this.#toldMs = undefined;
  }

  #failed(failure: Failure): void {
    const nowMs = this.#nowMs();
    if (this.#trouble === undefined) this.#troubleSinceMs = nowMs;
    this.#trouble = failure;
    if (nowMs - this.#troubleSinceMs < toldAfterMs || (this.#toldMs !== undefined && nowMs - this.#toldMs < toldEveryMs)) return;
    this.#toldMs = nowMs;
    this.world.logger.warn("no call to etcd succeeds", { forMs: nowMs - this.#troubleSinceMs, why: failure.message });
  }

  #nowMs(): number {
    return Math.round(this.world.clock.monotonicMs());
  }
}

/** Returns a failure in this project's terms; etcd gives the reason in words only (api/v3rpc/rpctypes of etcd). */
function inOurTerms(failure: Failure): Failure {
  const { message } = failure;
  if (/database space exceeded/.test(message)) return { ...failure, reason: "diskFull" };
  if (/has been compacted/.test(message)) return { ...failure, reason: "outOfRange", applied: "no" };
  if (/requested lease not found/.test(message)) return { ...failure, reason: "leaseEnded", applied: "no" };
  if (/invalid auth token/.test(message) || failure.code === "unauthenticated")
    return { ...failure, reason: "unauthorized", applied: "no" };
  // A user or role of etcd was changed after the token was made, or users were switched on: another token is good.
  if (/revision of auth store is old|user name is empty/.test(message))
    return { ...failure, code: "unauthenticated", reason: "unauthorized", applied: "no" };
  if (failure.code === "invalidArgument") return { ...failure, reason: "badRequest", applied: "no" };
  if (failure.code === "permissionDenied") return { ...failure, reason: "unauthorized", applied: "no" };
  return failure;
}

/** True if every member refuses this request, now and later. */
export const isOfTheRequest = ({ code, reason }: Failure): boolean =>
  code === "invalidArgument" || code === "permissionDenied" || reason === "outOfRange" || reason === "leaseEnded" || reason === "diskFull";
