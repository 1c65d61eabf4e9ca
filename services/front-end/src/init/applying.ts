/** Types of the parts of a front-end that apply an init file, and of their counts. */
import type { WrittenFiles } from "@stamp/ports";
import type { OwnRequests } from "./own-requests.ts";

export interface InitTarget {
  readonly requests: OwnRequests;
  /** Resolves when the account is there; false when the front-end stops. */
  account(name: string): Promise<boolean>;
  readonly files: WrittenFiles;
  /** Name of this front-end. */
  readonly self: string;
  /** Waits; false when the front-end stops. */
  pause(ms: number): Promise<boolean>;
  nowMs(): number;
  /** Logs an object that exists and differs from the file. */
  differs(what: string): void;
}

/** Numbers of what was made; what was there is not counted. */
export type InitCounts = Record<"containers" | "tables" | "queues" | "policies" | "cors" | "blobs" | "entities" | "messages", number>;
