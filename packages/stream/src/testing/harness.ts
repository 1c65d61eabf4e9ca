/** Shared by the tests of this folder (no test itself): the metadata store as the lock service judges it. */
import assert from "node:assert/strict";
import type { Outcome, Rules } from "@stamp/base";
import { allRules, extentId, ownerEpoch, unwrap } from "@stamp/base";
import { planAllocate, planBeginSeal, planOpenExtent, planRecordSealed, planReserveIds } from "../plan-extents.ts";
import { planDropUnreferenced } from "../plan-streams.ts";
import type { TransactionPlan } from "../state/changes.ts";
import { StreamState } from "../state.ts";

export const checksum = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte + 1) >>> 0, 7);
export const replicas = ["n1", "n2", "n3"].map((nodeId) => ({ nodeId, diskId: `disk of ${nodeId}` }));

/** The metadata store: what is committed, judged as the lock service judges it. */
export class Store {
  readonly keys = new Map<string, { value: Uint8Array; version: number }>();
  state = new StreamState();
  #version = 1;

  commit(planned: Outcome<TransactionPlan>): Outcome<void> {
    if (!planned.ok) return planned;
    const transaction = this.state.transaction(planned.value, checksum);
    for (const { key, version } of transaction.conditions) assert.equal(this.keys.get(key)?.version ?? 0, version, `condition on ${key}`);
    assert.ok(transaction.writes.length <= 100, `${transaction.writes.length} keys in one transaction`);
    this.#version += 1;
    for (const { key, value } of transaction.writes) {
      if (value === undefined) this.keys.delete(key);
      else this.keys.set(key, { value, version: this.#version });
    }
    this.state.apply(planned.value, this.#version);
    if (this.state.extentCount < 100 || this.#version % 100 === 0) assertCounted(this.state);
    return { ok: true, value: undefined };
  }

  do(planned: Outcome<TransactionPlan>): void {
    unwrap(this.commit(planned));
  }

  /** Collects garbage as the stream manager does. */
  sweep(): void {
    const { state } = this;
    while (state.unreferenced().size > 0 || state.looseSegments().size > 0) {
      this.do(
        planDropUnreferenced(state, [...state.unreferenced()].slice(0, 32), [...state.looseSegments()].slice(0, 32), 1_790_000_000_000),
      );
    }
  }

  /** Loads the state as a new leader does. */
  reload(): StreamState {
    const entries = [...this.keys].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, { value, version }]) => ({ key, value, version }));
    const loaded = unwrap(StreamState.load(entries, checksum));
    assertCounted(loaded);
    return loaded;
  }

  /** Appends an extent to the list by all its steps; its predecessor is sealed first. */
  extend(stream: string, epoch: number, rules: Rules = allRules): number {
    const owner = ownerEpoch(epoch);
    const predecessor = this.state.extentsOf(stream).at(-1);
    if (predecessor !== undefined && this.state.extent(predecessor)?.phase !== "sealed") {
      this.do(planBeginSeal(this.state, predecessor));
      this.do(planRecordSealed(this.state, predecessor, 10));
    }
    this.do(planReserveIds(this.state, 2));
    const id = extentId(this.state.nextId - 2);
    this.do(planAllocate(this.state, { stream, ownerEpoch: owner, predecessor, id, replicas }, rules));
    this.do(planOpenExtent(this.state, { stream, ownerEpoch: owner, predecessor, id }, this.state.nextId - 1, rules));
    return id;
  }
}

/** Compares the kept counts of all extents with a count of their records. */
export function assertCounted(state: StreamState): void {
  const phases: Record<string, number> = { allocating: 0, open: 0, sealing: 0, sealed: 0, dropped: 0 };
  const byNode = new Map<string, number>();
  const unsealed = new Map<string, number>();
  let lossy = 0;
  let codedCount = 0;
  for (const { phase, replicas: places, repair, loss, coded, attempt } of state.extents()) {
    phases[phase] = (phases[phase] ?? 0) + 1;
    if (phase !== "dropped" && loss !== undefined) lossy++;
    const isUnsealed = phase !== "dropped" && phase !== "sealed";
    for (const { nodeId } of isUnsealed ? places : []) unsealed.set(nodeId, (unsealed.get(nodeId) ?? 0) + 1);
    if (phase !== "dropped" && coded !== undefined) codedCount++;
    const attempted = attempt === undefined ? [] : attempt.kind === "repair" ? [attempt.target] : attempt.targets;
    const holders = [...places, ...(repair === undefined ? [] : [repair]), ...(coded?.fragments ?? []), ...attempted];
    const nodeIds = phase === "dropped" ? [] : holders.map(({ nodeId }) => nodeId);
    for (const nodeId of new Set(nodeIds)) byNode.set(nodeId, (byNode.get(nodeId) ?? 0) + 1);
  }
  assert.deepEqual({ ...state.phaseCounts }, phases);
  assert.equal(state.lossyCount, lossy);
  assert.equal(state.codedCount, codedCount);
  for (const nodeId of [...byNode.keys(), "n1", "n2", "n3", "n4"]) {
    assert.equal(state.replicasOn(nodeId), byNode.get(nodeId) ?? 0, nodeId);
    assert.equal(state.unsealedOn(nodeId), unsealed.get(nodeId) ?? 0, nodeId);
  }
  for (const name of state.streamNames()) {
    const lengths = state.extentsOf(name).map((id) => state.extent(id)?.sealedLengthBytes ?? 0);
    assert.equal(
      state.sealedBytes(name),
      lengths.reduce((sum, each) => sum + each, 0),
      name,
    );
  }
  const ids = [...state.extents()].map(({ id }) => id).sort((a, b) => a - b);
  const paged: number[] = [];
  for (let page = state.extentsAfter(0, 7); page.length > 0; page = state.extentsAfter(paged.at(-1) ?? 0, 7)) {
    paged.push(...page.map(({ id }) => id));
  }
  assert.deepEqual(paged, ids);
}

export const refusal = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.failure.reason);
