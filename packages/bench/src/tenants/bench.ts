/**
 * `stamp bench tenants`: two accounts, one of which floods a table of its own; what the other one feels: alone, without throttling, with it,
 * and when load balancing may split and move as well.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type DrillTarget, startOwn } from "@stamp/drills";
import type { TenantRequest, TenantResult } from "./client.ts";

const usage = `pnpm bench tenants [--seconds 15] [--flood 512] [--partitions 64] [--only TEXT] [--set ROLE.KEY=VALUE]…
--only: settings whose name has the text; --set: of the configuration of a role, e.g. --set partition-server.delayTargetMs=10
--flood: connections of the tenant that floods; --partitions: PartitionKeys that it writes to; about 8 × seconds in all`;

const key = Buffer.alloc(64, 7).toString("base64");
const accounts = ["flood", "quiet"].map((name) => ({ name, keys: [key] }));

interface Setting {
  readonly name: string;
  readonly throttle: boolean;
  readonly balance: boolean;
  readonly floods: boolean;
  /** Load balancing needs a while to see what there is to do. */
  readonly settleTimes: number;
}

const settings: readonly Setting[] = [
  { name: "quiet alone", throttle: true, balance: false, floods: false, settleTimes: 0.3 },
  { name: "flood, not throttled", throttle: false, balance: false, floods: true, settleTimes: 0.3 },
  { name: "flood, throttled", throttle: true, balance: false, floods: true, settleTimes: 0.3 },
  { name: "flood, throttled, balanced", throttle: true, balance: true, floods: true, settleTimes: 1.5 },
];

interface Row {
  readonly setting: Setting;
  readonly quiet: TenantResult;
  readonly flood: TenantResult | undefined;
  readonly steps: readonly string[];
  readonly ranges: readonly string[];
}

export async function tenants(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "15" },
      flood: { type: "string", default: "512" },
      partitions: { type: "string", default: "64" },
      only: { type: "string", default: "" },
      set: { type: "string", multiple: true, default: [] },
      help: { type: "boolean", default: false },
    },
  });
  const [seconds, flood, partitions] = [values.seconds, values.flood, values.partitions].map(Number);
  if (values.help || !seconds || !flood || !partitions) {
    console.log(usage);
    return;
  }
  const rows: Row[] = [];
  for (const setting of settings.filter(({ name }) => name.includes(values.only))) {
    console.log(`${setting.name} …`);
    const row = await measured(setting, values.set, seconds * 1_000, flood, partitions);
    rows.push(row);
    for (const step of row.steps) console.log(`  ${step}`);
    for (const tenant of [row.quiet, row.flood]) if (tenant?.firstFailure) console.log(`  failed: ${tenant.firstFailure}`);
  }
  console.log(`\n${tableText(rows, seconds)}`);
}

async function measured(setting: Setting, set: readonly string[], measureMs: number, flood: number, partitions: number): Promise<Row> {
  const roles: Record<string, Record<string, string | number | boolean>> = {
    "partition-server": { throttle: setting.throttle },
    "front-end": { throttle: setting.throttle },
    "partition-manager": {
      balance: setting.balance,
      balanceEveryMs: 1_000,
      balanceRestMs: 3_000,
      splitRequestsPerSecond: 300,
      moveRequestsPerSecond: 100,
      mergeBytes: 0,
    },
  };
  for (const each of set) {
    const [, role, key, value] = /^([a-z-]+)\.(\w+)=(.*)$/.exec(each) ?? [];
    if (role === undefined || key === undefined || value === undefined) throw new Error(`--set ${each}: not ROLE.KEY=VALUE`);
    roles[role] = { ...roles[role], [key]: value };
  }
  const target = await startOwn({ accounts: JSON.stringify(accounts), roles: JSON.stringify(roles) }, false);
  try {
    const settleMs = measureMs * setting.settleTimes;
    const common = { table: "rows", settleMs, measureMs };
    const [quiet, flooding] = await Promise.all([
      tenant({ ...common, connectionString: of(target, "quiet"), connections: 4, pauseMs: 20, partitions: 16 }),
      setting.floods
        ? tenant({ ...common, connectionString: of(target, "flood"), connections: flood, pauseMs: 0, partitions })
        : Promise.resolve(undefined),
    ]);
    const manager = await target.inspector.partitionManager();
    const plan = await manager.getRebalancePlan({}, { timeoutMs: 5_000 });
    const steps = plan.ok
      ? plan.value.done.map(
          ({ kind, rangeId, to, why, failure }) =>
            `${kind} ${rangeId}${to === "" ? "" : ` to ${to}`}: ${why}${failure === "" ? "" : ` (not done: ${failure})`}`,
        )
      : [];
    const ranges = (await target.inspector.ranges()).filter(({ table }) => table === "Entity").map(({ server }) => server);
    return { setting, quiet, flood: flooding, steps: steps.reverse(), ranges };
  } finally {
    await target.close();
  }
}

/** The connection string of another account of the same stamp. */
function of(target: DrillTarget, account: string): string {
  const known = /(?:^|;)AccountName=([^;]+)/.exec(target.connectionString)?.[1] ?? "";
  return target.connectionString
    .replace(/AccountName=[^;]+/, `AccountName=${account}`)
    .replace(/AccountKey=[^;]+/, `AccountKey=${key}`)
    .replaceAll(new RegExp(`/${known}(?=[;/]|$)`, "g"), `/${account}`);
}

function tenant(request: TenantRequest): Promise<TenantResult> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "client.ts"), JSON.stringify(request)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve(JSON.parse(output) as TenantResult) : reject(new Error(`a tenant ended with ${code}`)),
    );
  });
}

const percentile = (latenciesMs: readonly number[], part: number): string => {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  return sorted.length === 0 ? "-" : `${(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] as number).toFixed(1)} ms`;
};

function tableText(rows: readonly Row[], seconds: number): string {
  const heads = ["", "QUIET P50", "P99", "DONE/S", "503/S", "FLOOD P99", "DONE/S", "503/S", "RANGES OF ENTITIES BY SERVER"];
  const rate = (count: number | undefined): string => (count === undefined ? "-" : (count / seconds).toFixed(0));
  const cells = rows.map(({ setting, quiet, flood, ranges }) => {
    const counts = Map.groupBy(ranges, (server) => server);
    return [
      setting.name,
      percentile(quiet.latenciesMs, 0.5),
      percentile(quiet.latenciesMs, 0.99),
      rate(quiet.done),
      rate(quiet.refused),
      flood ? percentile(flood.latenciesMs, 0.99) : "-",
      rate(flood?.done),
      rate(flood?.refused),
      [...counts].map(([server, all]) => `${server} ${all.length}`).join(", "),
    ];
  });
  const widths = heads.map((head, i) => Math.max(head.length, ...cells.map((row) => (row[i] as string).length)));
  return [heads, ...cells].map((row) => row.map((cell, i) => cell.padEnd(widths[i] as number)).join("  ")).join("\n");
}
