/**
 * One block read from an extent node, many times: processor time of the process that asks and of all extent nodes together, for each
 * read. The blocks are those of a checkpoint (16 KiB), spread over all nodes, and in the page cache. First with code that is still cold.
 */
import { unwrap } from "@stamp/base";
import { cpuMsOf } from "../processor-time.ts";
import { type Bench, distribution, forever, numbers, withCluster } from "./bench.ts";

const kibibyte = 1024;
const streams = 4;
const blocksPerAppend = 32;

export async function reads(args: string[]): Promise<void> {
  const given = numbers(args, "reads", { readers: 16, "block-kib": 16, blocks: 4_096, "round-reads": 20_000, rounds: 4 });
  await withCluster({}, async (bench) => {
    const client = bench.client();
    const block = new Uint8Array(given["block-kib"] * kibibyte).map((_, i) => i % 251);
    const places = await Promise.all(
      Array.from({ length: streams }, async (_, i) => {
        const stream = await bench.open(client, `/bench/reads-${i}`);
        const all = [];
        while (all.length < given.blocks / streams) {
          const appended = await stream.append(
            Array.from({ length: blocksPerAppend }, () => block),
            forever,
          );
          all.push(...unwrap(appended));
        }
        return all;
      }),
    );
    const all = places.flat();
    for (let round = 0; round < given.rounds; round++) {
      const latenciesMs: number[] = [];
      const [ownBefore, nodesBefore, startMs] = [process.cpuUsage(), await nodesMs(bench), performance.now()];
      const reader = async (): Promise<void> => {
        while (latenciesMs.length < given["round-reads"]) {
          const place = all[Math.floor(Math.random() * all.length)];
          if (place === undefined) return;
          const sentMs = performance.now();
          unwrap(await client.reader.read(place, { timeoutMs: 10_000 }));
          latenciesMs.push(performance.now() - sentMs);
        }
      };
      await Promise.all(Array.from({ length: given.readers }, reader));
      const seconds = (performance.now() - startMs) / 1_000;
      const { user, system } = process.cpuUsage(ownBefore);
      const nodesUs = ((await nodesMs(bench)) - nodesBefore) * 1_000;
      const perRead = (us: number): string => (us / latenciesMs.length).toFixed(0);
      console.log(
        `${latenciesMs.length} reads of ${given["block-kib"]} KiB by ${given.readers}: ${(latenciesMs.length / seconds).toFixed(0)}/s; µs of processor a read: ` +
          `who asks ${perRead(user + system)}, extent nodes ${perRead(nodesUs)}; ${distribution(latenciesMs)}`,
      );
    }
  });
}

async function nodesMs({ target }: Bench): Promise<number> {
  let ms = 0;
  for (const { role, pid } of (await target.status()).processes)
    if (role === "extent-node" && pid !== null) ms += cpuMsOf(pid) ?? Number.NaN;
  return ms;
}
