/**
 * Blobs of a container with snapshots, versions, leases and soft delete, against a model of them: whatever is done, every state that
 * should be there is listed and read as it was, nothing else is, and when all is deleted no row is left.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, fromUtf8, utf8 } from "@stamp/base";
import fc from "fast-check";
import type { OperationValue } from "../operation.ts";
import type { Blob } from "../results.ts";
import { TestTable } from "../testing/table.ts";
import { noHeaders as headers } from "./state/head-row.ts";

const dayMs = 86_400_000;
const leaseId = "aaaaaaaa-1111-2222-3333-444444444444";
const name = (blob: string) => ({ account: "a", container: "c", containerIncarnation: 1, blob });

interface State {
  /** Unique: by it a state is known. */
  readonly mark: string;
  readonly content: string;
}

interface Kept extends State {
  readonly role: "snapshot" | "version";
  untilMs: number | undefined;
}

interface BlobModel {
  head: (State & { versioned: boolean; leased: boolean }) | undefined;
  hidden: (State & { versioned: boolean; untilMs: number }) | undefined;
  kept: Kept[];
}

/** Model of the service; `marks` count the states that were ever made. */
class Model {
  readonly blobs = new Map<string, BlobModel>();
  versioning = false;
  days = 0;
  wallMs = 0;
  #marks = 0;

  of(blob: string): BlobModel {
    let found = this.blobs.get(blob);
    if (!found) {
      found = { head: undefined, hidden: undefined, kept: [] };
      this.blobs.set(blob, found);
    }
    return found;
  }

  mark(): string {
    return `m${++this.#marks}`;
  }

  get untilMs(): number | undefined {
    return this.days > 0 ? this.wallMs + this.days * dayMs : undefined;
  }

  alive = (untilMs: number | undefined): boolean => untilMs === undefined || untilMs > this.wallMs;
  becomesVersion = (head: { versioned: boolean }): boolean => this.versioning || head.versioned;
  snapshots = (blob: BlobModel): Kept[] => blob.kept.filter((kept) => kept.role === "snapshot" && kept.untilMs === undefined);

  put(blob: BlobModel, mark: string, content: string): string {
    const { head, hidden } = blob;
    if (head?.leased) return "LeaseIdMissing";
    if (head && this.becomesVersion(head)) blob.kept.push({ ...head, role: "version", untilMs: undefined });
    else if (head && this.days > 0) blob.kept.push({ ...head, role: "snapshot", untilMs: this.untilMs });
    if (hidden && this.alive(hidden.untilMs)) blob.kept.push({ ...hidden, role: "snapshot", untilMs: hidden.untilMs });
    blob.hidden = undefined;
    blob.head = { mark, content, versioned: this.versioning, leased: false };
    return "blob";
  }

  setMetadata(blob: BlobModel, mark: string): string {
    const { head } = blob;
    if (!head) return "BlobNotFound";
    if (head.leased) return "LeaseIdMissing";
    const version = this.becomesVersion(head);
    if (version) blob.kept.push({ ...head, role: "version", untilMs: undefined });
    blob.head = { ...head, mark, versioned: version ? this.versioning : head.versioned };
    return "blob";
  }

  snapshot(blob: BlobModel): string {
    const { head } = blob;
    if (!head) return "BlobNotFound";
    blob.kept.push({ ...head, role: "snapshot", untilMs: undefined });
    if (this.versioning) {
      blob.kept.push({ ...head, role: "version", untilMs: undefined });
      blob.head = { ...head, versioned: true };
    }
    return "blob";
  }

  delete(blob: BlobModel, snapshots: "" | "include" | "only"): string {
    const { head } = blob;
    if (!head) return "BlobNotFound";
    if (head.leased) return "LeaseIdMissing";
    if (snapshots === "" && this.snapshots(blob).length > 0) return "SnapshotsPresent";
    const keepsDeleted = blob.kept.some((kept) => kept.role === "snapshot" && kept.untilMs !== undefined && this.alive(kept.untilMs));
    if (snapshots === "" && !this.becomesVersion(head) && this.untilMs === undefined && keepsDeleted) return "SnapshotsPresent";
    for (const kept of this.snapshots(blob)) this.deleteKept(blob, kept);
    if (snapshots === "only") return "deleted";
    blob.head = undefined;
    if (this.becomesVersion(head)) blob.kept.push({ ...head, role: "version", untilMs: undefined });
    else if (this.untilMs !== undefined) blob.hidden = { ...head, untilMs: this.untilMs };
    return "deleted";
  }

  deleteKept(blob: BlobModel, kept: Kept): void {
    if (this.untilMs === undefined) blob.kept.splice(blob.kept.indexOf(kept), 1);
    else kept.untilMs = this.untilMs;
  }

  undelete(blob: BlobModel): string {
    const hidden = blob.hidden && this.alive(blob.hidden.untilMs) ? blob.hidden : undefined;
    blob.kept = blob.kept.filter((kept) => this.alive(kept.untilMs));
    if (!blob.head && !hidden && blob.kept.length === 0) return "BlobNotFound";
    if (!blob.head && hidden) {
      blob.head = { mark: hidden.mark, content: hidden.content, versioned: hidden.versioned, leased: false };
      blob.hidden = undefined;
    }
    for (const kept of blob.kept) if (kept.role === "version" || blob.head) kept.untilMs = undefined;
    return "deleted";
  }

  /** The lines of a listing that includes everything, in no order. */
  listed(): string[] {
    const lines: string[] = [];
    for (const [blob, { head, hidden, kept }] of this.blobs) {
      if (head) lines.push(`${blob} base ${head.mark}`);
      else if (hidden && this.alive(hidden.untilMs)) lines.push(`${blob} base ${hidden.mark} deleted`);
      for (const state of kept) {
        if (this.alive(state.untilMs)) lines.push(`${blob} ${state.role} ${state.mark}${state.untilMs === undefined ? "" : " deleted"}`);
      }
    }
    return lines.sort();
  }
}

type Step =
  | { readonly do: "put" | "setMetadata" | "snapshot" | "undelete" | "lease" | "release"; readonly blob: string }
  | { readonly do: "delete"; readonly blob: string; readonly snapshots: "" | "include" | "only" }
  | { readonly do: "deleteKept"; readonly blob: string; readonly which: number }
  | { readonly do: "collect" }
  | { readonly do: "wait"; readonly days: number }
  | { readonly do: "policy"; readonly versioning: boolean; readonly days: number };

const everything: OperationValue<"listBlobs"> = {
  account: "a",
  container: "c",
  containerIncarnation: 1,
  prefix: "",
  delimiter: "",
  marker: "",
  maxResults: 3,
  includeMetadata: true,
  includeUncommitted: true,
  includeSnapshots: true,
  includeVersions: true,
  includeDeleted: true,
};

const roleOf = (blob: Blob): string =>
  blob.snapshotStamp > 0 ? "snapshot" : blob.versionStamp > 0 && !blob.isCurrentVersion ? "version" : "base";

/** Over pages; each blob's states come in the order of their stamps, itself last. */
function listAll(table: TestTable): Blob[] {
  const all: Blob[] = [];
  for (let marker = "", markerStamp = 0, pages = 0; ; pages++) {
    assert.ok(pages < 200, "the listing ends");
    const result = table.run({ case: "listBlobs", value: { ...everything, marker, markerStamp } });
    assert.ok(result.case === "blobs");
    const { entries, nextMarker, nextMarkerStamp } = result.value;
    for (const entry of entries) {
      assert.ok(entry.case === "blob");
      const last = all.at(-1);
      if (last?.name === entry.value.name) {
        assert.ok(roleOf(last) !== "base", "nothing comes behind the blob itself");
        const [before, after] = [last, entry.value].map((blob) => blob.snapshotStamp || blob.versionStamp) as [number, number];
        assert.ok(roleOf(entry.value) === "base" || before < after, "oldest first");
      }
      all.push(entry.value);
    }
    if (nextMarker === "") return all;
    assert.equal(entries.length, 3, "a page that is not the last is full");
    marker = nextMarker;
    markerStamp = nextMarkerStamp;
  }
}

function contentOf(table: TestTable, blob: Blob): string {
  const reference = { ...name(blob.name), snapshotStamp: blob.snapshotStamp, versionStamp: blob.versionStamp };
  const result = table.run({ case: "getBlob", value: { name: reference, conditions: {}, withoutContent: false } });
  assert.ok(result.case === "content", `${blob.name} ${roleOf(blob)}`);
  return fromUtf8(result.value.inline);
}

class Run {
  readonly table = new TestTable();
  readonly model = new Model();
  readonly contents = new Map<string, string>();

  step(step: Step): void {
    this.model.wallMs = this.table.wallMs;
    if (step.do === "wait") {
      this.table.wallMs += step.days * dayMs;
    } else if (step.do === "collect") {
      this.table.collect();
    } else if (step.do === "policy") {
      this.model.versioning = step.versioning;
      this.model.days = step.days;
      this.table.policy = { ...this.table.policy, versioning: step.versioning, deleteRetentionDays: step.days };
    } else if (step.do === "deleteKept") {
      this.deleteKept(step.blob, step.which);
    } else {
      this.onBlob(step);
    }
    this.table.wallMs += 7;
    this.model.wallMs = this.table.wallMs;
    this.check();
  }

  onBlob(step: Exclude<Step, { do: "wait" | "collect" | "policy" | "deleteKept" }>): void {
    const { model, table } = this;
    const blob = model.of(step.blob);
    const target = { name: name(step.blob), conditions: {} };
    switch (step.do) {
      case "put": {
        const mark = model.mark();
        const content = `content ${mark}`;
        const body = { inline: utf8(content), places: [] };
        const outcome = table.outcome("putBlob", { ...target, headers, metadata: { mark }, body });
        assert.equal(outcome, model.put(blob, mark, content));
        this.contents.set(mark, content);
        return;
      }
      case "setMetadata": {
        const mark = model.mark();
        const content = blob.head?.content ?? "";
        assert.equal(table.outcome("setBlobMetadata", { ...target, metadata: { mark } }), model.setMetadata(blob, mark));
        this.contents.set(mark, content);
        return;
      }
      case "snapshot":
        assert.equal(table.outcome("snapshotBlob", target), model.snapshot(blob));
        return;
      case "delete":
        assert.equal(table.outcome("deleteBlob", { ...target, snapshots: step.snapshots }), model.delete(blob, step.snapshots));
        return;
      case "undelete":
        assert.equal(table.outcome("undeleteBlob", { name: target.name }), model.undelete(blob));
        return;
      case "lease":
      case "release": {
        const acquire = step.do === "lease";
        const lease = { action: acquire ? ("acquire" as const) : ("release" as const), proposedLeaseId: leaseId, durationSeconds: -1 };
        const outcome = table.outcome("leaseBlob", { ...target, ...lease, conditions: acquire ? {} : { leaseId } });
        if (!blob.head) assert.equal(outcome, "BlobNotFound");
        else if (acquire || blob.head.leased) assert.equal(outcome, "leased");
        else assert.equal(outcome, "LeaseIdMismatchWithLeaseOperation");
        if (outcome === "leased" && blob.head) blob.head = { ...blob.head, leased: acquire };
        return;
      }
    }
  }

  deleteKept(blob: string, which: number): void {
    const listed = listAll(this.table).filter((one) => one.name === blob && roleOf(one) !== "base" && one.deletedMs === undefined);
    const chosen = listed[which % Math.max(1, listed.length)];
    if (!chosen) return;
    const reference = { ...name(blob), snapshotStamp: chosen.snapshotStamp, versionStamp: chosen.versionStamp };
    assert.equal(this.table.outcome("deleteBlob", { name: reference, conditions: {} }), "deleted");
    const model = this.model.of(blob);
    const kept = model.kept.find((one) => one.untilMs === undefined && one.role === roleOf(chosen) && one.mark === chosen.metadata.mark);
    assert.ok(kept);
    this.model.deleteKept(model, kept);
  }

  check(): void {
    const listed = listAll(this.table);
    const lines = listed.map(
      (blob) => `${blob.name} ${roleOf(blob)} ${blob.metadata.mark}${blob.deletedMs === undefined ? "" : " deleted"}`,
    );
    assert.deepEqual(lines.sort(), this.model.listed());
    for (const blob of listed) {
      if (blob.deletedMs === undefined) assert.equal(contentOf(this.table, blob), this.contents.get(String(blob.metadata.mark)));
    }
  }

  /** Everything is deleted, for good: no row may be left. */
  end(): void {
    this.step({ do: "policy", versioning: false, days: 0 });
    this.table.wallMs += 30 * dayMs;
    for (const blob of this.model.blobs.keys()) {
      this.step({ do: "release", blob });
      this.step({ do: "put", blob });
      this.step({ do: "undelete", blob });
      while (listAll(this.table).some((one) => one.name === blob && roleOf(one) !== "base"))
        this.step({ do: "deleteKept", blob, which: 0 });
      this.step({ do: "delete", blob, snapshots: "" });
    }
    assert.deepEqual([...this.table.rows.keys()], []);
  }
}

const blobs = fc.constantFrom("x", "y");
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom("put" as const, "put" as const, "setMetadata" as const, "snapshot" as const, "undelete" as const),
    blob: blobs,
  }),
  fc.record({
    do: fc.constant("delete" as const),
    blob: blobs,
    snapshots: fc.constantFrom("" as const, "include" as const, "only" as const),
  }),
  fc.record({ do: fc.constant("deleteKept" as const), blob: blobs, which: fc.nat(5) }),
  fc.record({ do: fc.constantFrom("lease" as const, "release" as const), blob: blobs }),
  fc.record({ do: fc.constant("wait" as const), days: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant("collect" as const) }),
  fc.record({ do: fc.constant("policy" as const), versioning: fc.boolean(), days: fc.constantFrom(0, 0, 2) }),
);

test("container: any script of writes, snapshots, versions, leases, deletes and undeletes does what the model says", () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 25 }), (script) => {
      const run = new Run();
      for (const step of script) run.step(step);
      run.end();
    }),
    { numRuns: 250 },
  );
});

test("container: without soft delete a blob whose softly deleted snapshots are kept is deleted only with its snapshots", () => {
  const run = new Run();
  const remove = (snapshots: "" | "include") => run.table.outcome("deleteBlob", { name: name("x"), conditions: {}, snapshots });
  run.step({ do: "policy", versioning: false, days: 2 });
  for (let i = 0; i < 2; i++) run.step({ do: "put", blob: "x" });
  run.step({ do: "policy", versioning: false, days: 0 });
  assert.equal(remove(""), "SnapshotsPresent");
  run.step({ do: "wait", days: 2 });
  assert.equal(remove(""), "deleted", "their time is over");
  run.model.blobs.clear();
  run.step({ do: "policy", versioning: false, days: 2 });
  for (let i = 0; i < 2; i++) run.step({ do: "put", blob: "x" });
  run.step({ do: "policy", versioning: false, days: 0 });
  run.step({ do: "undelete", blob: "x" });
  assert.equal(remove(""), "SnapshotsPresent", "they came back");
  assert.equal(remove("include"), "deleted");
  assert.deepEqual(listAll(run.table), []);
});

test("listing: a page reads one row a blob, wherever it is, and nothing of content, blocks, snapshots and versions", () => {
  const table = new TestTable();
  table.policy = { ...table.policy, versioning: true };
  const put = (blob: string, text: string) =>
    table.outcome("putBlob", { name: name(blob), conditions: {}, headers, metadata: {}, body: { inline: utf8(text), places: [] } });
  const digits = (i: number): string => String(i).padStart(3, "0");
  for (let i = 0; i < 60; i++) {
    for (let version = 0; version < 4; version++) put(`b${digits(i)}`, "content");
    table.outcome("snapshotBlob", { name: name(`b${digits(i)}`), conditions: {} });
    for (let block = 0; block < 5; block++) {
      const body = { inline: emptyBytes, places: [{ extentId: 1, offsetBytes: 0, lengthBytes: 1 }] };
      table.outcome("putBlock", { name: name(`b${digits(i)}`), conditions: {}, blockId: Uint8Array.of(block), body });
    }
  }
  const plain = { ...everything, includeSnapshots: false, includeVersions: false, includeDeleted: false, maxResults: 10 };
  for (const marker of ["", "b020", "b045"]) {
    const before = table.rowsRead;
    const result = table.run({ case: "listBlobs", value: { ...plain, marker } });
    assert.ok(result.case === "blobs" && result.value.entries.length === 10);
    // One more says where the next page begins.
    assert.ok(table.rowsRead - before <= 12, `${table.rowsRead - before} rows from ${marker}`);
  }
  const before = table.rowsRead;
  const versions = table.run({ case: "listBlobs", value: { ...plain, includeVersions: true, maxResults: 25 } });
  assert.ok(versions.case === "blobs" && versions.value.entries.length === 25);
  assert.ok(table.rowsRead - before <= 25 + 12, "heads, versions and the snapshots between them");
  const folded = table.rowsRead;
  const prefixes = table.run({ case: "listBlobs", value: { ...plain, delimiter: "0" } });
  assert.ok(prefixes.case === "blobs" && prefixes.value.entries.length <= 10);
  assert.ok(table.rowsRead - folded <= 20, "what is folded is stepped over");
});
