/** A drill: what it breaks, with which clients and on which cluster. */
import type { CheckingOptions } from "./checking-client.ts";
import type { DrillContext } from "./faults.ts";
import type { DrillTarget } from "./target.ts";

export interface Drill {
  readonly name: string;
  readonly about: string;
  /** Longest hold-up of a write that the design aims at, in ms, on a machine with room; see verdict.ts. */
  readonly holdUpAimMs: number;
  /** How long the clients go on writing after the fault, at least. */
  readonly afterFaultMs: number;
  readonly run: (context: DrillContext) => Promise<void>;
  /** Other clients than there are by default. */
  readonly clients?: Pick<CheckingOptions, "smallWriters" | "largeWriters" | "largePauseMs" | "pauseMs">;
  /**
   * Other settings of a cluster of its own, as keys of the configuration. A drill that has some runs on no containers: the compose file
   * decides those.
   */
  readonly cluster?: Readonly<Record<string, unknown>>;
  /** Returns why the drill can't run on a cluster that runs already; undefined: it can. */
  readonly unfit?: (target: DrillTarget) => Promise<string | undefined>;
  /** Blobs that are meant to lie in coded extents are read beside the clients. `aimMs`: longest time that a read of one may take. */
  readonly codedReads?: { readonly aimMs: number };
  /** Comes before the clients. */
  readonly prepare?: (context: DrillContext) => Promise<void>;
  /** Settings of a cluster of its own, as `roles` of the configuration. */
  readonly roles?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Comes when everything that was held down is started again, before everything is read back. */
  readonly mend?: (context: DrillContext) => Promise<void>;
}
