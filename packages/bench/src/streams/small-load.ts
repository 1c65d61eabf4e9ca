/** Clients of the blob service that put and get small blobs beside a measurement of the stream layer, and keep how long each took. */
import { BlobClient, contentOf } from "@stamp/drills";
import { pause } from "./bench.ts";

export interface Taken {
  readonly putsMs: number[];
  readonly getsMs: number[];
  readonly failed: number;
}

export type Load = ReturnType<typeof startLoad>;

/** Four clients that put and get small blobs, 50 operations a second together at most. */
export function startLoad(connectionString: string) {
  const client = BlobClient.fromConnectionString(connectionString, { connectionsMax: 8, timeoutMs: 30_000 });
  const body = contentOf("repair", 1_024);
  let taken = { putsMs: [] as number[], getsMs: [] as number[], failed: 0 };
  let running = true;
  let workers: Promise<void>[] = [];
  const timed = async (into: (taken: Taken) => number[], status: number, work: () => ReturnType<BlobClient["put"]>): Promise<void> => {
    const startMs = performance.now();
    const result = await work();
    if (result.kind === "answer" && result.status === status) into(taken).push(performance.now() - startMs);
    else taken.failed += 1;
  };
  const worker = async (number: number): Promise<void> => {
    for (let i = 0; running; i++) {
      const blob = `${number}-${i % 50}`;
      await timed(
        ({ putsMs }) => putsMs,
        201,
        () => client.put("bench", blob, body),
      );
      await pause(40);
      await timed(
        ({ getsMs }) => getsMs,
        200,
        () => client.get("bench", blob),
      );
      await pause(40);
    }
  };
  return {
    warm: async (): Promise<void> => {
      await client.createContainer("bench");
      workers = [1, 2, 3, 4].map(worker);
      await pause(3_000);
      taken = { putsMs: [], getsMs: [], failed: 0 };
    },
    take: (): Taken => {
      const now = taken;
      taken = { putsMs: [], getsMs: [], failed: 0 };
      return now;
    },
    stop: async (): Promise<void> => {
      running = false;
      await Promise.all(workers);
    },
  };
}
