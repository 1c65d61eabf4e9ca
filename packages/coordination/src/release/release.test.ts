import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeadlineError, UsageError } from "../errors.ts";
import { refusal } from "../testing/lease-service.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { GlobalFlag } from "./global-flag.ts";
import { ListeningRelease } from "./listening-release.ts";
import { PollingRelease } from "./polling-release.ts";
import { Release } from "./release.ts";
import type { SignalChannel } from "./signal-channel.ts";

class Flag implements GlobalFlag {
  readonly name = "flag flags/start";
  value = false;
  looks = 0;
  fault: () => "busy" | "hangs" | "forbidden" | undefined = () => undefined;

  async isSet(): Promise<boolean> {
    this.looks++;
    const fault = this.fault();
    if (fault === "hangs") return await new Promise<never>(() => {});
    if (fault === "busy") throw refusal(503, "ServerBusy");
    if (fault === "forbidden") throw refusal(403, "AuthorizationFailure");
    return this.value;
  }

  async set(): Promise<void> {
    this.value = true;
  }

  async clear(): Promise<void> {
    this.value = false;
  }
}

/** A channel whose connection a test cuts and joins. */
class Channel implements SignalChannel {
  readonly #listeners = new Set<{ onSignal: () => void; onConnected: ((connected: boolean) => void) | undefined }>();
  connected = true;

  get listeners(): number {
    return this.#listeners.size;
  }

  subscribe(_topic: string, onSignal: () => void, onConnected?: (connected: boolean) => void) {
    const listener = { onSignal, onConnected };
    this.#listeners.add(listener);
    onConnected?.(this.connected);
    return { close: () => void this.#listeners.delete(listener) };
  }

  async publish(): Promise<number> {
    if (!this.connected) throw new Error("not connected");
    for (const { onSignal } of this.#listeners) onSignal();
    return this.#listeners.size;
  }

  connect(connected: boolean): void {
    this.connected = connected;
    for (const { onConnected } of this.#listeners) onConnected?.(connected);
  }
}

describe("polling for a flag", () => {
  test("resolves at the look after the flag was set; busy and hanging services only delay", async () => {
    const clock = new VirtualClock();
    const flag = new Flag();
    const errors: unknown[] = [];
    const waiting = new PollingRelease(flag, { clock, intervalMs: 2_500, onError: (error) => errors.push(error) }).wait();
    await clock.advance(10_000);
    assert.ok(flag.looks >= 4 && flag.looks <= 6, String(flag.looks));
    let drawn = 0;
    flag.fault = () => (drawn++ % 2 ? "busy" : "hangs");
    await clock.advance(60_000);
    assert.ok(errors.length >= 4);
    flag.fault = () => undefined;
    await flag.set();
    await clock.until(waiting, 15_000);
  });

  test("deadline and abort end the wait, also while the service hangs; nothing goes on after it", async () => {
    const clock = new VirtualClock();
    const flag = new Flag();
    flag.fault = () => "hangs";
    await assert.rejects(clock.until(new PollingRelease(flag, { clock }).wait({ deadlineMs: 5_000 }), 6_000), DeadlineError);
    const caller = new AbortController();
    const waiting = new PollingRelease(flag, { clock }).wait({ signal: caller.signal });
    waiting.catch(() => {});
    await clock.advance(1_000);
    caller.abort(new Error("enough"));
    await assert.rejects(clock.until(waiting, 100), /enough/);
    const { looks } = flag;
    await clock.advance(60_000);
    assert.equal(flag.looks, looks);
  });

  test("refused for good: rejects instead of waiting for ever", async () => {
    const clock = new VirtualClock();
    const flag = new Flag();
    flag.fault = () => "forbidden";
    await assert.rejects(clock.until(new PollingRelease(flag, { clock }).wait(), 1_000), /AuthorizationFailure/);
  });

  test("options out of range are refused", async () => {
    assert.throws(() => new PollingRelease(new Flag(), { intervalMs: -1 }), UsageError);
    await assert.rejects(new PollingRelease(new Flag()).wait({ deadlineMs: -1 }), UsageError);
  });
});

describe("listening for a signal", () => {
  test("all who listen are released at once; who comes later is not", async () => {
    const clock = new VirtualClock();
    const channel = new Channel();
    const all = Promise.all(Array.from({ length: 100 }, () => new ListeningRelease(channel, "start", { clock }).wait()));
    await channel.publish();
    await clock.until(all, 0);
    assert.equal(channel.listeners, 0);
    await assert.rejects(clock.until(new ListeningRelease(channel, "start", { clock }).wait({ deadlineMs: 1_000 })), DeadlineError);
    assert.equal(channel.listeners, 0);
  });
});

describe("flag and signal together", () => {
  const make = () => {
    const clock = new VirtualClock();
    const flag = new Flag();
    const channel = new Channel();
    const errors: unknown[] = [];
    const release = new Release(flag, channel, { clock, intervalMs: 2_500, onError: (error) => errors.push(error) });
    return { clock, flag, channel, release, errors };
  };

  test("who waits hears at once, who comes late sees the flag", async () => {
    const { clock, flag, release } = make();
    const waiting = release.wait();
    await clock.advance(30_000);
    assert.equal(flag.looks, 1, "connected: the flag is looked at once a minute");
    await release.release();
    await clock.until(waiting, 0);
    await clock.until(release.wait(), 0);
  });

  test("the connection is lost: looks come often, and the flag releases", async () => {
    const { clock, flag, channel, release, errors } = make();
    const waiting = release.wait();
    await clock.advance(1_000);
    channel.connect(false);
    await clock.advance(10_000);
    assert.ok(flag.looks >= 4, String(flag.looks));
    await release.release();
    assert.equal(errors.length, 1, "the signal did not get out");
    await clock.until(waiting, 3_000);
  });

  test("released while the connection was lost and came back: the look after the new connection sees it", async () => {
    const { clock, flag, channel, release } = make();
    const waiting = release.wait();
    await clock.advance(1_000);
    channel.connect(false);
    await clock.advance(100);
    await flag.set();
    channel.connect(true);
    await clock.until(waiting, 100, 10);
  });

  test("aborted: the subscription is closed", async () => {
    const { clock, channel, release } = make();
    const caller = new AbortController();
    const waiting = release.wait({ signal: caller.signal });
    waiting.catch(() => {});
    await clock.advance(100);
    assert.equal(channel.listeners, 1);
    caller.abort(new Error("enough"));
    await assert.rejects(clock.until(waiting, 100), /enough/);
    assert.equal(channel.listeners, 0);
  });
});
