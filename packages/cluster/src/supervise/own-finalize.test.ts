/** The supervisor of a stamp on one machine raises the feature level when every process serves and knows it, and not before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { featureLevel, ok, refused } from "@stamp/base";
import type { GrpcTransport } from "@stamp/ports-node";
import { LockService, Status } from "@stamp/wire";
import { finalizeByItself } from "./own-finalize.ts";

const everyMs = 1;

/** Processes at `en` and `fe`, which know these levels; undefined: it does not answer. */
function stampOf(levels: { en: number | undefined; fe: number | undefined }, ready = true) {
  const state = { ready, levels, recorded: [] as number[], refusals: 0, looks: 0 };
  const status = (address: string) => ({
    getStatus: async () => {
      const level = state.levels[address as "en" | "fe"];
      return level === undefined ? refused("unavailable", "connectFailed", "nobody is there") : ok({ versions: { featureLevel: level } });
    },
  });
  const lease = { getLease: async () => ok({ leaseEpoch: 1n, ended: false, address: "sm" }) };
  const leader = {
    setFeatureLevel: async ({ level }: { level: number }) => {
      if (state.refusals-- > 0) return refused("failedPrecondition", "conflict", "en has not announced itself yet");
      state.recorded.push(level);
      return ok({});
    },
  };
  const client = (address: string, service: unknown) => (service === LockService ? lease : service === Status ? status(address) : leader);
  const processes = ["en", "fe"].map((grpc) => ({ grpc }));
  const told = () => {
    state.looks++;
    return { ready: state.ready, processes, lockService: "lock" };
  };
  const stop = new AbortController();
  const done = finalizeByItself({ client } as unknown as GrpcTransport, told as never, stop.signal, everyMs);
  const looks = async (count: number): Promise<void> => {
    for (const until = state.looks + count; state.looks < until; ) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  return { state, stop, done, looks };
}

test("own finalize: waits until all serve and know the level, is refused while the leader has not heard of one, then records it and ends", async () => {
  const { state, done, looks } = stampOf({ en: 0, fe: featureLevel }, false);
  await looks(3);
  state.ready = true;
  await looks(3);
  state.levels = { en: featureLevel, fe: undefined };
  await looks(3);
  assert.deepEqual(state.recorded, []);
  state.refusals = 2;
  state.levels = { en: featureLevel, fe: featureLevel };
  await done;
  assert.deepEqual(state.recorded, [featureLevel]);
  assert.ok(state.refusals < 0, "asked again after a refusal");
});

test("own finalize: ends with the supervisor, and records nothing", async () => {
  const { state, stop, done, looks } = stampOf({ en: 0, fe: 0 });
  await looks(2);
  stop.abort();
  await done;
  assert.deepEqual(state.recorded, []);
});
