/**
 * Changes of accounts, by path: for sessions with the role "operate". The partition manager makes them, as for `stamp account`.
 *
 * Invariants:
 * - A key leaves the console only in the answer to "show keys", which is in the audit log as every change is.
 * - An answer says whether the change is in force at every front-end. A change that is not yet stays made.
 * - Settings that the page does not name stay as they are: another operator may have set them since it was opened.
 */
import { FailureError, type Outcome, unknownOutcome } from "@stamp/base";
import type { Client } from "@stamp/ports";
import { inWords } from "@stamp/ports-node";
import type { Accounts } from "@stamp/wire";
import { untilInForce } from "../../accounts/in-force.ts";
import { FieldError, type Fields, wholeIn, wordIn } from "../data/fields.ts";

/** Makes one change. The signal is aborted when it is late. */
export type StampChange = (fields: Fields, signal: AbortSignal) => Promise<object>;

export interface AccountOperationsParts {
  /** Client of the partition manager that leads. Throws if none does. */
  readonly accounts: () => Promise<Client<typeof Accounts>>;
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

const callTimeoutMs = 10_000;
/** A page waits 30 s for a change. */
const inForceMaxMs = 10_000;
const retentionDaysMax = 365;

/** Returns the changes by path. */
export function accountOperations({ accounts, nowMs, sleep }: AccountOperationsParts): Readonly<Record<string, StampChange>> {
  const callOf = (signal: AbortSignal) => ({ timeoutMs: callTimeoutMs, signal });
  const inForce = async (account: string, signal: AbortSignal): Promise<object> => {
    // The change is made, whether or not somebody can be asked now if it is in force.
    const ask = async () => {
      try {
        return await (await accounts()).getSettingsInForce({ account }, callOf(signal));
      } catch (error) {
        return unknownOutcome("unavailable", "notReady", inWords(error));
      }
    };
    return { notInForce: await untilInForce({ ask, nowMs, sleep, waitMaxMs: inForceMaxMs }) };
  };
  return {
    "/api/create-account": async (fields, signal) => {
      const account = wordIn(fields, "account");
      taken(await (await accounts()).create({ account, keys: [] }, callOf(signal)));
      return {};
    },
    "/api/show-keys": async (fields, signal) => {
      const { keys } = taken(await (await accounts()).get({ account: wordIn(fields, "account") }, callOf(signal)));
      return { keys };
    },
    "/api/rotate-key": async (fields, signal) => {
      const account = wordIn(fields, "account");
      const keyNumber = wholeIn(fields, "number", 1, 2);
      taken(await (await accounts()).rotateKey({ account, keyNumber, newKey: "" }, callOf(signal)));
      return inForce(account, signal);
    },
    "/api/revoke-delegation": async (fields, signal) => {
      const account = wordIn(fields, "account");
      taken(await (await accounts()).revokeDelegationKeys({ account }, callOf(signal)));
      return inForce(account, signal);
    },
    "/api/set-account": async (fields, signal) => {
      const account = wordIn(fields, "account");
      const given = (name: string): boolean => fields[name] !== undefined;
      const settings = {
        ...(given("versioning") && { versioning: switchIn(fields, "versioning") }),
        ...(given("publicAccess") && { allowPublicAccess: switchIn(fields, "publicAccess") }),
        ...(given("containerDays") && { containerDeleteRetentionDays: wholeIn(fields, "containerDays", 0, retentionDaysMax) }),
      };
      if (Object.keys(settings).length === 0) throw new FieldError("no setting was changed: change one, or close this");
      taken(await (await accounts()).setBlobSettings({ account, ...settings }, callOf(signal)));
      return inForce(account, signal);
    },
  };
}

/** Returns the answer. Throws if the service refused. */
export function taken<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new FailureError(outcome.failure);
}

function switchIn(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (typeof value === "boolean") return value;
  throw new FieldError(`the request has no ${name}: load the page again`);
}
