/**
 * Measures coordination and endpoints on a cluster of its own; tables for docs/measurements/figures.md.
 *
 *   node tests/coordination/measure/main.ts ids|election|release|endpoints [--seconds 600] [--ids 100000] [--rounds 5]
 */
import { parseArgs } from "node:util";
import { startOwn } from "@stamp/drills";
import { election } from "./election.ts";
import { endpoints, resolutions } from "./endpoints.ts";
import { ids } from "./ids.ts";
import { release } from "./release.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "600" },
    ids: { type: "string", default: "100000" },
    rounds: { type: "string", default: "5" },
    "port-base": { type: "string", default: "23000" },
  },
});
const stamp = await startOwn({ frontEnds: 3, portBase: Number(values["port-base"]) }, false);
process.env.STAMP = stamp.connectionString;
const processes = (await stamp.status()).processes;
const killExtentNode = async (): Promise<void> => {
  process.kill(processes.find(({ role }) => role === "extent-node")?.pid ?? 0, "SIGKILL");
};
const measures: Record<string, () => Promise<unknown>> = {
  ids: async () => {
    console.log(
      "| what | processes killed | twice | backwards | ranges written | writes refused | seconds | ids/s |\n|---|---|---|---|---|---|---|---|",
    );
    await ids(Number(values.ids), 1_000, 0, async () => {});
    await ids(Number(values.ids), 1_000, 700, killExtentNode);
  },
  election: () => election(Number(values.seconds)),
  release: () => release(processes.find(({ role }) => role === "front-end")?.grpc ?? "", Number(values.rounds)),
  endpoints: async () => {
    await endpoints(stamp, 10_000);
    await resolutions();
  },
};
try {
  for (const what of positionals) {
    console.log(`\n## ${what}\n`);
    await measures[what]?.();
  }
} finally {
  await stamp.close();
}
process.exit();
