/**
 * Whatever is asked, whenever it is asked and whatever the clock does meanwhile: what a policy or a hold protects at a moment is there after
 * it, with the content, headers, metadata and protection that it had. The judge keeps its own account of what is protected, by what was
 * granted and by its own clock, and knows nothing of how protection is implemented.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, fromUtf8, rulesWithout, utf8 } from "@stamp/base";
import fc from "fast-check";
import type { BlobReference } from "../../object-keys.ts";
import type { OperationKind, OperationValue } from "../../operation.ts";
import { plainState } from "../../operation.ts";
import type { Blob } from "../../results.ts";
import { TestTable } from "../../testing/table.ts";
import { noHeaders } from "../state/head-row.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const name = (blob: string) => ({ account: "a", container: "c", containerIncarnation: 1, blob });
const place = { extentId: 1, offsetBytes: 0, lengthBytes: 512 };
const bytesOf = { inline: emptyBytes, places: [place] };

const everyState: OperationValue<"listBlobs"> = {
  account: "a",
  container: "c",
  containerIncarnation: 1,
  prefix: "",
  delimiter: "",
  marker: "",
  maxResults: 5000,
  includeMetadata: true,
  includeUncommitted: false,
  includeSnapshots: true,
  includeVersions: true,
  includeDeleted: true,
};

/** An attempt of one kind of operation; a step tries one on a blob or on one of its states. */
type Try = (run: Run, target: BlobReference, value: number) => void;

const onlyBase = ({ account, container, containerIncarnation, blob }: BlobReference) => ({
  account,
  container,
  containerIncarnation,
  blob,
});

const put = (run: Run, target: BlobReference, blobType: "BlockBlob" | "AppendBlob" | "PageBlob", state = plainState): void => {
  const body =
    blobType === "BlockBlob" ? { inline: utf8(`content ${run.table.sequence}`), places: [] } : { inline: emptyBytes, places: [] };
  const pageBlobBytes = blobType === "PageBlob" ? 1024 : 0;
  const value = { name: onlyBase(target), conditions: {}, headers: noHeaders, metadata: { made: String(run.table.sequence) }, body };
  run.ask("putBlob", { ...value, blobType, pageBlobBytes, state });
};

const named = (target: BlobReference) => ({ name: target, conditions: {} });
const based = (target: BlobReference) => ({ name: onlyBase(target), conditions: {} });
const copyId = "00000000-0000-0000-0000-000000000001";
const work = { copier: "x", beatMs: 0, next: 0, from: undefined } as never;
const copying = (status: "success" | "pending") => ({
  copy: { copyId, source: "s", status, description: "", copiedBytes: 0, totalBytes: 7, completedMs: undefined, work } as never,
  headers: noHeaders,
  metadata: { copied: "yes" },
  blobType: "BlockBlob" as const,
  pageBlobBytes: 0,
  sequenceNumber: 0,
  appendBlockCount: 0,
  sealed: false,
  parts: status === "success" ? [{ index: 0, inline: utf8("copied!"), blocks: [] }] : [],
  state: plainState,
});

const tries: Readonly<Record<string, Try>> = {
  "put block blob": (run, target) => put(run, target, "BlockBlob"),
  "put append blob": (run, target) => put(run, target, "AppendBlob"),
  "put page blob": (run, target) => put(run, target, "PageBlob"),
  "put under a hold": (run, target) => put(run, target, "BlockBlob", { ...plainState, legalHold: true }),
  "put under a policy": (run, target, value) => {
    const immutableUntilMs = run.table.wallMs + value * hourMs;
    put(run, target, "BlockBlob", { ...plainState, immutableUntilMs, immutabilityMode: value % 2 ? "Locked" : "Unlocked" });
  },
  "put block": (run, target) => run.ask("putBlock", { ...based(target), blockId: Uint8Array.of(1), body: bytesOf }),
  "put block list": (run, target, value) => {
    const blocks = value % 2 ? [{ blockId: Uint8Array.of(1), source: "uncommitted" as const }] : [];
    run.ask("putBlockList", { ...based(target), headers: noHeaders, metadata: {}, blocks, state: plainState });
  },
  append: (run, target) => run.ask("appendBlock", { ...based(target), body: bytesOf }),
  seal: (run, target) => run.ask("sealBlob", based(target)),
  "put pages": (run, target) => run.ask("putPages", { ...based(target), startBytes: 0, body: bytesOf, sequence: {} }),
  "clear pages": (run, target) => run.ask("clearPages", { ...based(target), startBytes: 0, endBytes: 512, sequence: {} }),
  resize: (run, target, value) =>
    run.ask("setPageBlobProperties", { ...based(target), contentLengthBytes: value * 512, sequenceNumber: 0 } as never),
  "sequence number": (run, target, value) =>
    run.ask("setPageBlobProperties", { ...based(target), action: "update", sequenceNumber: value } as never),
  metadata: (run, target, value) => run.ask("setBlobMetadata", { ...based(target), metadata: { value: String(value) } }),
  headers: (run, target, value) => run.ask("setBlobHeaders", { ...based(target), headers: { ...noHeaders, contentType: `t/${value}` } }),
  tags: (run, target, value) => run.ask("setBlobTags", { ...named(target), tags: { value: String(value) } }),
  tier: (run, target, value) => run.ask("setBlobTier", { ...named(target), tier: value % 2 ? "Cool" : "Hot" }),
  expiry: (run, target, value) => run.ask("setBlobExpiry", { ...based(target), option: "relativeToNow", timeMs: value * hourMs }),
  "no expiry": (run, target) => run.ask("setBlobExpiry", { ...based(target), option: "never", timeMs: 0 }),
  snapshot: (run, target, value) => run.ask("snapshotBlob", { ...based(target), metadata: value % 2 ? { snap: "shot" } : undefined }),
  delete: (run, target) => run.ask("deleteBlob", named(target)),
  "delete with snapshots": (run, target) => run.ask("deleteBlob", { ...based(target), snapshots: "include" }),
  "delete snapshots": (run, target) => run.ask("deleteBlob", { ...based(target), snapshots: "only" }),
  "delete for good": (run, target) => run.ask("deleteBlob", { ...named(target), permanent: true }),
  undelete: (run, target) => run.ask("undeleteBlob", { name: onlyBase(target) }),
  copy: (run, target) => run.ask("startCopy", { ...based(target), ...copying("success") }),
  "copy slowly": (run, target) => run.ask("startCopy", { ...based(target), ...copying("pending") }),
  "abort a copy": (run, target) => run.ask("abortCopy", { ...based(target), copyId }),
  lease: (run, target) =>
    run.ask("leaseBlob", {
      ...based(target),
      action: "acquire",
      proposedLeaseId: "aaaaaaaa-1111-2222-3333-444444444444",
      durationSeconds: 15,
    }),
  hold: (run, target) => run.ask("setLegalHold", { ...named(target), hold: true }),
  lift: (run, target) => run.lift(target),
  policy: (run, target, value) => run.setPolicy(target, value * hourMs, "Unlocked"),
  "locked policy": (run, target, value) => run.setPolicy(target, value * hourMs, "Locked"),
  "no policy": (run, target) => run.deletePolicy(target),
  collect: (run) => void run.table.collect(),
};

interface Step {
  readonly what: string;
  readonly blob: string;
  /** Index of the state, where an operation can name one; 0 for the blob itself. */
  readonly state: number;
  readonly value: number;
  /** The clock goes on, or is set back, by so much before the step. */
  readonly clockMs: number;
  readonly versioning: boolean;
  readonly days: number;
}

interface Protected {
  hold: boolean;
  untilMs: number;
  readonly shown: string;
}

/**
 * By what a state is known: the commit that made it; a snapshot by its stamp. With versioning a snapshot leaves the state as a version too:
 * then two have one identity, and what is granted must hold for one of them.
 */
const identityOf = (blob: Blob): string => `${blob.name} ${blob.etag} ${roleOf(blob) === "snapshot" ? blob.snapshotStamp : "state"}`;
const roleOf = (blob: Blob): string => (blob.snapshotStamp > 0 ? "snapshot" : "state");

class Run {
  readonly table = new TestTable();
  /** By identity; what was granted and not lifted. */
  readonly granted = new Map<string, Protected>();
  readonly outcomes = new Map<string, number>();

  constructor() {
    this.table.policy = { ...this.table.policy, permanentDelete: true };
  }

  step(step: Step): void {
    const { table } = this;
    table.wallMs += step.clockMs;
    table.monotonicMs += Math.max(1, Math.min(step.clockMs, 1_000));
    table.policy = { ...table.policy, versioning: step.versioning, deleteRetentionDays: step.days };
    this.check(`the clock at ${table.wallMs}`);
    const states = this.states().filter((blob) => blob.name === step.blob && blob.deletedMs === undefined && roleOfStamp(blob) !== "base");
    const chosen = states[step.state - 1];
    const target = { ...name(step.blob), snapshotStamp: chosen?.snapshotStamp ?? 0, versionStamp: chosen?.versionStamp ?? 0 };
    tries[step.what]?.(this, target, step.value);
    this.note();
    this.check(`${step.what} of ${JSON.stringify(target)}`);
  }

  ask<K extends OperationKind>(kind: K, value: OperationValue<K>): string {
    const outcome = this.table.outcome(kind, value);
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    return outcome;
  }

  /** The state that is meant, if it is there. */
  meant(target: BlobReference): Blob | undefined {
    const { snapshotStamp = 0, versionStamp = 0 } = target;
    return this.states().find((blob) => {
      if (blob.name !== target.blob || blob.deletedMs !== undefined) return false;
      if (snapshotStamp > 0) return blob.snapshotStamp === snapshotStamp;
      return versionStamp > 0 ? blob.versionStamp === versionStamp && roleOf(blob) === "state" : roleOfStamp(blob) === "base";
    });
  }

  lift(target: BlobReference): void {
    const meant = this.meant(target);
    if (this.ask("setLegalHold", { ...named(target), hold: false }) !== "blob" || !meant) return;
    const known = this.granted.get(identityOf(meant));
    if (known) known.hold = false;
  }

  setPolicy(target: BlobReference, forMs: number, mode: "Locked" | "Unlocked"): void {
    const meant = this.meant(target);
    const untilMs = this.table.wallMs + forMs;
    const done = this.ask("setImmutabilityPolicy", { ...named(target), untilMs, mode }) === "blob";
    if (!done || !meant) return;
    if (this.isLocked(meant)) assert.ok(untilMs >= (meant.immutableUntilMs ?? 0) && mode === "Locked", "a locked policy is only extended");
    this.policyChanged(meant);
  }

  deletePolicy(target: BlobReference): void {
    const meant = this.meant(target);
    const done = this.ask("deleteImmutabilityPolicy", named(target)) === "blob";
    if (!done || !meant) return;
    assert.ok(!this.isLocked(meant), "a locked policy is not taken away");
    this.policyChanged(meant);
  }

  isLocked = (blob: Blob): boolean => blob.immutabilityMode === "Locked" && (blob.immutableUntilMs ?? 0) > this.table.wallMs;

  policyChanged(blob: Blob): void {
    const known = this.granted.get(identityOf(blob));
    const alike = this.states().filter((one) => identityOf(one) === identityOf(blob) && one.deletedMs === undefined);
    if (known) known.untilMs = Math.max(...alike.map((one) => one.immutableUntilMs ?? 0));
  }

  states(): Blob[] {
    const result = this.table.run({ case: "listBlobs", value: everyState });
    assert.ok(result.case === "blobs" && result.value.nextMarker === "");
    return result.value.entries.map((entry) => (entry.case === "blob" ? entry.value : assert.fail()));
  }

  /** Content, headers and metadata as they are read. */
  shown(blob: Blob): string {
    const reference = {
      ...name(blob.name),
      snapshotStamp: blob.snapshotStamp,
      versionStamp: blob.isCurrentVersion ? 0 : blob.versionStamp,
    };
    const read = this.table.run({ case: "getBlob", value: { name: reference, conditions: {}, withoutContent: false } });
    if (read.case === "error") return read.value.code;
    assert.ok(read.case === "content");
    const { inline, places, blob: found } = read.value;
    return JSON.stringify([
      fromUtf8(inline),
      places,
      found.headers,
      found.metadata,
      found.blobType,
      found.contentLengthBytes,
      found.sealed,
      found.sequenceNumber,
      found.expiresMs,
    ]);
  }

  /** Takes down what has come under protection by this step. */
  note(): void {
    for (const blob of this.states()) {
      if (blob.deletedMs !== undefined || blob.copy?.status === "pending") continue;
      const identity = identityOf(blob);
      const known = this.granted.get(identity);
      const untilMs = blob.immutableUntilMs ?? 0;
      if (known) known.hold ||= blob.legalHold;
      if (known) known.untilMs = Math.max(known.untilMs, untilMs);
      if (known || !(blob.legalHold || untilMs > this.table.wallMs)) continue;
      this.granted.set(identity, { hold: blob.legalHold, untilMs, shown: this.shown(blob) });
    }
  }

  /** Checks that every protection that was granted, not lifted, and is in force by the clock still holds. */
  check(after: string): void {
    const states = this.states().filter((blob) => blob.deletedMs === undefined);
    for (const [identity, { hold, untilMs, shown }] of this.granted) {
      if (!hold && untilMs <= this.table.wallMs) {
        this.granted.delete(identity);
        continue;
      }
      const there = states.filter((blob) => identityOf(blob) === identity);
      assert.ok(there.length > 0, `${identity} was protected and is gone after ${after}`);
      const kept = there.filter((blob) => this.shown(blob) === shown);
      assert.ok(kept.length > 0, `${identity} was protected and changed by ${after}`);
      assert.ok(!hold || kept.some((blob) => blob.legalHold), `the hold of ${identity} is lost after ${after}`);
      const inForce = untilMs > this.table.wallMs;
      assert.ok(!inForce || kept.some((blob) => blob.immutableUntilMs === untilMs), `the policy of ${identity} is lost after ${after}`);
      const found = this.table.run({ case: "listBlobs", value: { ...everyState, onlyProtected: true } });
      assert.ok(found.case === "blobs" && found.value.entries.length === 1, `nothing is found that is protected, after ${after}`);
    }
  }
}

const roleOfStamp = (blob: Blob): string =>
  blob.snapshotStamp > 0 ? "snapshot" : blob.versionStamp > 0 && !blob.isCurrentVersion ? "version" : "base";

const oftenTried = [
  "put block blob",
  "hold",
  "locked policy",
  "policy",
  "expiry",
  "snapshot",
  "delete",
  "collect",
  "lift",
  "put under a hold",
];
const steps: fc.Arbitrary<Step> = fc.record({
  what: fc.oneof(fc.constantFrom(...oftenTried), fc.constantFrom(...Object.keys(tries))),
  blob: fc.constantFrom("x", "y"),
  state: fc.constantFrom(0, 0, 0, 1, 2, 3),
  value: fc.integer({ min: 1, max: 5 }),
  clockMs: fc.constantFrom(1, 1_000, hourMs, 2 * hourMs, 5 * hourMs, 3 * dayMs, -hourMs, -2 * dayMs),
  versioning: fc.constantFrom(false, false, true),
  days: fc.constantFrom(0, 0, 2),
});

const property = (prepare: (run: Run) => void, seen: Map<string, number> = new Map()) =>
  fc.property(fc.array(steps, { minLength: 3, maxLength: 25 }), (script) => {
    const run = new Run();
    prepare(run);
    for (const step of script) run.step(step);
    for (const [outcome, count] of run.outcomes) seen.set(outcome, (seen.get(outcome) ?? 0) + count);
  });

test("protection: no operation and no time changes or removes what a policy or a hold protects at that moment", () => {
  const seen = new Map<string, number>();
  fc.assert(
    property(() => {}, seen),
    { numRuns: 400 },
  );
  for (const outcome of ["BlobImmutableDueToLegalHold", "BlobImmutableDueToPolicy", "blob", "deleted"]) {
    assert.ok((seen.get(outcome) ?? 0) > 20, `${outcome}: ${seen.get(outcome)}`);
  }
});

test("protection: with the rule off the same scripts lose what is protected", () => {
  const off = rulesWithout("protectedStatesStay");
  const checked = fc.check(
    property((run) => Object.assign(run.table, { rules: off })),
    { numRuns: 400, endOnFailure: true },
  );
  assert.ok(checked.failed);
});

test("a state written without versioning becomes a version under a stamp of its own, all within one millisecond", () => {
  const run = new Run();
  const { table } = run;
  const target = name("b");
  for (const [what, states] of [
    ["metadata", 2],
    ["snapshot", 3],
  ] as const) {
    table.rows.clear();
    table.policy = { ...table.policy, versioning: false };
    put(run, target, "BlockBlob");
    table.policy = { ...table.policy, versioning: true };
    tries[what]?.(run, target, 1);
    const stamps = run.states().map((blob) => blob.snapshotStamp || blob.versionStamp);
    assert.equal(new Set(stamps).size, states, `${what}: ${stamps}`);
  }
});
