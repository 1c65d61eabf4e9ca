/**
 * `stamp bench beside`: the rate of small requests alone, and beside clients that upload large blobs without a pause, in turns on one cluster.
 * The aim: small requests keep half of their rate.
 */
import { parseArgs } from "node:util";
import { type Measurement, measure } from "./measure.ts";
import { startTarget } from "./targets.ts";

const usage = `pnpm bench beside [--seconds 8] [--rounds 3] [--clients 16] [--uploads 4]
--clients: of the small requests; --uploads: clients that upload blobs of 64 MiB in blocks of 8 MiB meanwhile`;

const small = ["put 1 KiB", "get 1 KiB"];
const large = "upload 64 MiB, blocks of 8 MiB";
const mib = 1024 * 1024;

interface Round {
  readonly alone: Measurement;
  readonly beside: Measurement;
  readonly upload: Measurement;
}

export async function beside(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "8" },
      rounds: { type: "string", default: "3" },
      clients: { type: "string", default: "16" },
      uploads: { type: "string", default: "4" },
      help: { type: "boolean", default: false },
    },
  });
  const [seconds, rounds, clients, uploads] = [values.seconds, values.rounds, values.clients, values.uploads].map(Number);
  if (values.help || !seconds || !rounds || !clients || !uploads) {
    console.log(usage);
    return;
  }
  const target = await startTarget("cluster");
  try {
    for (const scenario of small) {
      const done: Round[] = [];
      for (let round = 0; round < rounds; round++) {
        const alone = await measure(target, { scenario, clients }, seconds, "beside");
        let meanwhile = alone;
        const upload = await measure(target, { scenario: large, clients: uploads }, seconds, "beside", async () => {
          meanwhile = await measure(target, { scenario, clients }, seconds, "beside");
        });
        done.push({ alone, beside: meanwhile, upload });
      }
      for (const { alone, beside: meanwhile, upload } of done) console.log(lineOf(scenario, alone, meanwhile, upload));
      const ratios = done.map((round) => rateOf(round.beside) / rateOf(round.alone)).sort((a, b) => a - b);
      console.log(`${scenario}: median ratio ${ratios[ratios.length >> 1]?.toFixed(2)}`);
    }
  } finally {
    await target.stop();
  }
}

const rateOf = ({ operations, seconds }: Measurement): number => operations / seconds;
const told = (one: Measurement): string => `${rateOf(one).toFixed(0)}/s (p50 ${one.p50Ms.toFixed(1)} ms, p99 ${one.p99Ms.toFixed(0)} ms)`;

function lineOf(scenario: string, alone: Measurement, meanwhile: Measurement, upload: Measurement): string {
  const uploaded = (rateOf(upload) * upload.contentBytes) / mib;
  const failed = alone.failed + meanwhile.failed + upload.failed;
  return `${scenario}: alone ${told(alone)}; beside ${uploaded.toFixed(0)} MiB/s of uploads ${told(meanwhile)}${failed > 0 ? `; ${failed} failed` : ""}`;
}
