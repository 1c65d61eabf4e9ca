/** Rows of the Account table, read and changed at the partition servers of its ranges. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { defaultServiceProperties, encodeServiceProperties } from "@stamp/azure-rest";
import { type FailureReason, type Outcome, ok, refused } from "@stamp/base";
import { type Routable, routeOf } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { type CallContext, type CallOptions, jittered, sleep, type World } from "@stamp/ports";
import { type Account, executeFields, type OperationResult, type OperationSchema, PartitionServer, toWire } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";

export type AccountOperation = Extract<
  NonNullable<MessageInitShape<typeof OperationSchema>["kind"]>,
  { case: "getAccount" | "putAccount" | "listAccounts" | "changeAccount" }
>;
export type AccountResult = Exclude<OperationResult["kind"], { case: undefined }>;

/** Blob service properties of a new account with a hierarchical namespace. */
export const hierarchicalProperties: string = encodeServiceProperties({ ...defaultServiceProperties, hierarchicalNamespace: true });

/** Failures that stay until a person acts. */
const forAPerson: ReadonlySet<FailureReason> = new Set(["masterKeyMissing", "newerFormat", "damaged"]);

const attemptTimeoutMs = 2_000;
const retryMs = 100;
const mapWaitMs = 1_000;
/** Deadline of a listing of one range, in milliseconds. */
const listTimeoutMs = 5_000;

export class AccountRows {
  readonly #world: World;
  readonly #map: MapState;

  constructor(world: World, map: MapState) {
    this.#world = world;
    this.#map = map;
  }

  /** Asks the range of the operation, or the range that has `key`, once. */
  async once(
    operation: AccountOperation,
    options: CallOptions,
    key?: Uint8Array,
  ): Promise<Outcome<{ result: AccountResult; range: Range }>> {
    const route = routeOf(this.#world.rules, operation as Routable);
    const range = this.#map.current.find(route.table, key ?? route.key);
    if (!range || range.server === "" || !range.loaded)
      return refused("unavailable", "partitionLoading", "the range of accounts is not served yet");
    const client = this.#world.transport.client(range.serverAddress, PartitionServer);
    const request = { rangeId: range.rangeId, rangeVersion: toWire(range.rangeVersion), ...executeFields({ kind: operation }) };
    const answer = await client.execute(request, options);
    if (!answer.ok) return answer;
    const result = answer.value.result?.kind;
    if (result?.case === undefined) return refused("internal", "bug", "a partition server answered without a result");
    return ok({ result, range });
  }

  /** Accounts in the order of their names, over ranges until the page is full; those that have gone to another stamp, too. */
  async page(
    marker: string,
    size: number,
    { signal }: Pick<CallContext, "signal">,
  ): Promise<Outcome<{ readonly accounts: readonly Account[]; readonly nextMarker: string }>> {
    const accounts: Account[] = [];
    for (let key: Uint8Array | undefined; ; ) {
      const operation = { case: "listAccounts", value: { marker, maxResults: size - accounts.length } } as const;
      const outcome = await this.once(operation, { timeoutMs: listTimeoutMs, signal }, key);
      if (!outcome.ok) return outcome;
      const { result, range } = outcome.value;
      if (result.case !== "accounts") return refused("internal", "bug", `a list of accounts was answered by ${result.case}`);
      accounts.push(...result.value.accounts);
      const { nextMarker, rangeEnded } = result.value;
      if (nextMarker !== "" || !rangeEnded || range.high.length === 0) return ok({ accounts, nextMarker });
      if (accounts.length === size) return ok({ accounts, nextMarker: `${accounts.at(-1)?.name ?? ""}0` });
      key = range.high;
    }
  }

  /**
   * Until it is answered, the time is up or the signal says to stop. What may have happened is asked again: every operation here, made
   * twice, is as if made once, but for a condition that its own first time has made false.
   */
  async execute(
    operation: AccountOperation,
    options: { readonly deadlineMs: number; readonly signal?: AbortSignal },
  ): Promise<Outcome<AccountResult>> {
    const { clock, random, logger } = this.#world;
    for (;;) {
      const leftMs = options.deadlineMs - clock.monotonicMs();
      const outcome = await this.once(operation, { timeoutMs: Math.max(1, Math.min(leftMs, attemptTimeoutMs)) });
      if (outcome.ok) return ok(outcome.value.result);
      if (leftMs <= attemptTimeoutMs || options.signal?.aborted || forAPerson.has(outcome.failure.reason)) return outcome;
      logger.debug("an account's row is not reached yet", { operation: operation.case, reason: outcome.failure.reason });
      if (outcome.failure.reason === "partitionLoading") await this.#map.newerThan(this.#map.current.version, mapWaitMs);
      else await sleep(clock, jittered(random, retryMs), options.signal);
    }
  }
}
