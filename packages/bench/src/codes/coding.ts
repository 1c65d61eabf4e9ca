/** `pnpm bench coding`: bytes of data that a second of processor time encodes and repairs, for each code. */
import { parseArgs } from "node:util";
import { encodePlan, Kernel, type Plan, type Profile, profileNames, profileOf, repairPlan } from "@stamp/erasure";
import { durabilityTable } from "./durability.ts";

const usage = `pnpm bench coding [--ms 1000] [--lane-kib 64] [--plain]
pnpm bench coding --durability [--failures-percent 2] [--hours 0.25,1,24]
GB of an extent's data for each second of processor time: encoding, repairing one data fragment, repairing as many as the code promises.
--lane-kib  bytes of each fragment that are computed at a time
--plain     the TypeScript that runs where WebAssembly can't be compiled
--durability  measures nothing: cost, repair traffic and extents lost in a year by a formula (docs/guides/erasure-coding.md).
              --failures-percent: of the machines' disks in a year; --hours: from a loss until it is mended, a column each`;

export async function coding(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      ms: { type: "string", default: "1000" },
      "lane-kib": { type: "string", default: "64" },
      plain: { type: "boolean", default: false },
      durability: { type: "boolean", default: false },
      "failures-percent": { type: "string", default: "2" },
      hours: { type: "string", default: "0.25,1,24" },
      help: { type: "boolean", default: false },
    },
  });
  const ms = Number(values.ms);
  const laneBytes = Number(values["lane-kib"]) * 1024;
  if (values.help) return console.log(usage);
  const failuresPerYear = Number(values["failures-percent"]) / 100;
  const hours = values.hours.split(",").map(Number);
  if (values.durability && failuresPerYear > 0 && hours.every((each) => each > 0))
    return console.log(durabilityTable(failuresPerYear, hours));
  if (values.durability || !(ms > 0) || !(laneBytes > 0) || !Number.isInteger(laneBytes / 64)) {
    console.error(usage);
    process.exit(2);
  }
  console.log("| code | encode GB/s | one lost GB/s | reads for one | most lost GB/s |\n|---|---|---|---|---|");
  for (const name of profileNames) {
    const profile = profileOf(name) as Profile;
    const kernel = new Kernel(profile.fragments, laneBytes, { plain: values.plain });
    for (let i = 0; i < profile.data; i++) crypto.getRandomValues(kernel.lane(i).subarray(0, 65_536));
    const repair = (count: number): Plan => {
      const lost = Array.from({ length: count }, (_, i) => i);
      const rest = Array.from({ length: profile.fragments - count }, (_, i) => count + i);
      return repairPlan(profile, lost, rest) as Plan;
    };
    const one = repair(1);
    const rates = [encodePlan(profile), one, repair(profile.losses)].map((plan) => rate(kernel, plan, profile.data * laneBytes, ms));
    const [encode = 0, single = 0, most = 0] = rates;
    console.log(`| ${name} | ${encode.toFixed(1)} | ${single.toFixed(1)} | ${one.sources.length} | ${most.toFixed(1)} |`);
  }
}

/** Returns GB of data for each second of processor time, when a run stands for `dataBytes` bytes of data. */
function rate(kernel: Kernel, plan: Plan, dataBytes: number, ms: number): number {
  const same = (fragment: number): number => fragment;
  for (let i = 0; i < 20; i++) kernel.run(plan, same);
  let runs = 0;
  const before = process.cpuUsage();
  const end = performance.now() + ms;
  for (; performance.now() < end; runs++) kernel.run(plan, same);
  const { user, system } = process.cpuUsage(before);
  return (runs * dataBytes) / 1e9 / ((user + system) / 1e6);
}
