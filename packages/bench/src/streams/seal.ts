/**
 * Failure seen → new extent ready: a process that holds a replica of the open extent is killed (SIGKILL), primary and secondaries in turn,
 * while appends go on. Measured at the owner of the stream: from the first append that fails until the next extent takes appends.
 */
import { unwrap } from "@stamp/base";
import type { ExtentChange } from "@stamp/stream-client";
import { distribution, forever, option, pause, processAt, until, withCluster } from "./bench.ts";

const name = "/bench/seal";

export async function seal(args: string[]): Promise<void> {
  const kills = option(args, "kills", 200);
  await withCluster({ extentNodes: option(args, "extent-nodes", 5) }, async ({ target, client, open }) => {
    const changes: ExtentChange[] = [];
    const streams = client({ onExtentChange: (change) => changes.push(change) });
    const stream = await open(streams, name);
    unwrap(await stream.append([new Uint8Array(1_000)], forever));
    let running = true;
    let acknowledged = 0;
    /** For scale: what one replicated, durable append takes on this machine now. */
    const appendsMs: number[] = [];
    const appender = async (): Promise<void> => {
      while (running) {
        const startMs = performance.now();
        unwrap(await stream.append([new Uint8Array(1_000)], forever));
        acknowledged += 1;
        if (acknowledged % 10 === 0) appendsMs.push(performance.now() - startMs);
        await pause(1);
      }
    };
    const appenders = Array.from({ length: 4 }, appender);
    const seen: Record<"primary" | "secondary", number[]> = { primary: [], secondary: [] };
    const sinceKill: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const extentId = stream.extents.at(-1)?.extentId ?? 0;
      const [location] = unwrap(await streams.locate([extentId], { timeoutMs: 5_000 }));
      const which = kill % 3;
      const victim = await processAt(target, location?.addresses[which] ?? "");
      const before = changes.length;
      const killedMs = performance.now();
      await target.ask({ do: "signal", name: victim, signal: "SIGKILL" });
      await until("the next extent", 20_000, async () => changes.length > before);
      const change = changes[before] as ExtentChange;
      if (change.why === "failed") {
        seen[which === 0 ? "primary" : "secondary"].push(change.tookMs);
        sinceKill.push(performance.now() - killedMs);
      }
      await until("every node is back", 60_000, async () => {
        const { processes } = await target.status();
        return processes.every((each) => each.ready) && (await target.inspector.nodes()).every((node) => node.up);
      });
      // A node that failed is not chosen again at once.
      await pause(500);
      if (kill % 20 === 19) console.error(`${kill + 1} kills, ${acknowledged} appends acknowledged`);
    }
    running = false;
    await Promise.all(appenders);
    const { primary, secondary } = seen;
    console.log(`failure seen to new extent ready, ${kills} kills, ${acknowledged} appends acknowledged meanwhile`);
    console.log(`  all                 ${distribution([...primary, ...secondary])}`);
    console.log(`  primary killed      ${distribution(primary)}`);
    console.log(`  secondary killed    ${distribution(secondary)}`);
    console.log(`  one append meanwhile  ${distribution(appendsMs)}`);
    console.log(`  from the kill (seen by polling every 50 ms)  ${distribution(sinceKill)}`);
  });
}
