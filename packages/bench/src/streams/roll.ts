/** Append latency across rolls: steady appends fill extent after extent; those in flight or waiting during a roll are told apart. */
import { unwrap } from "@stamp/base";
import type { ExtentChange } from "@stamp/stream-client";
import { distribution, forever, numbers, pause, withCluster } from "./bench.ts";

const mebibyte = 1024 * 1024;

export async function roll(args: string[]): Promise<void> {
  const {
    seconds,
    "append-bytes": appendBytes,
    "extent-mib": extentMiB,
  } = numbers(args, "roll", { seconds: 30, "append-bytes": 16_384, "extent-mib": 4 });
  await withCluster({}, async ({ client, open }) => {
    const rolls: { readonly fromMs: number; readonly toMs: number; readonly change: ExtentChange }[] = [];
    const onExtentChange = (change: ExtentChange): void => {
      const toMs = performance.now();
      rolls.push({ fromMs: toMs - change.tookMs, toMs, change });
    };
    const stream = await open(client({ extentTargetBytes: extentMiB * mebibyte, onExtentChange }), "/bench/roll");
    const warmUntilMs = performance.now() + 3_000;
    const untilMs = warmUntilMs + seconds * 1_000;
    const appends: { readonly fromMs: number; readonly toMs: number }[] = [];
    const block = new Uint8Array(appendBytes);
    const appender = async (): Promise<void> => {
      while (performance.now() < untilMs) {
        const fromMs = performance.now();
        unwrap(await stream.append([block], forever));
        if (fromMs > warmUntilMs) appends.push({ fromMs, toMs: performance.now() });
        await pause(4);
      }
    };
    await Promise.all(Array.from({ length: 4 }, appender));
    const counted = rolls.filter(({ fromMs, change }) => fromMs > warmUntilMs && change.why === "full");
    const across = appends.filter((append) => counted.some((one) => append.fromMs < one.toMs && append.toMs > one.fromMs));
    const others = appends.filter((append) => !across.includes(append));
    const latencies = (some: typeof appends): number[] => some.map(({ fromMs, toMs }) => toMs - fromMs);
    console.log(`${appends.length} appends of ${appendBytes} bytes, 4 at a time, extents of ${extentMiB} MiB, ${counted.length} rolls`);
    console.log(`  appends across a roll   ${distribution(latencies(across))}`);
    console.log(`  all other appends       ${distribution(latencies(others))}`);
    console.log(`  the roll itself         ${distribution(counted.map(({ change }) => change.tookMs))}`);
    const unlike = rolls.filter(({ change }) => change.why === "failed").length;
    if (unlike > 0) console.log(`  ${unlike} extents were left because an append failed`);
  });
}
