/** `stamp status`, `health`, `down` and `reset` on a data folder with several stamps. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type ClusterStatus, control, DataFolder, ownTransport } from "@stamp/cluster";
import { CommandError, exitCodes } from "../exit.ts";
import { type Health, healthOf } from "../health/findings.ts";
import { gather } from "../health/gather.ts";
import { healthText } from "../health/health-text.ts";
import { processTable, toJson } from "../print.ts";
import { say, sayRaw } from "../say.ts";
import { foldersOf, locationIn, type SeveralStamps } from "./several.ts";

/** Status of the two processes of the location; undefined if they do not run. */
async function locationStatus({ location }: SeveralStamps): Promise<ClusterStatus | undefined> {
  const folder = new DataFolder(location.dataDir);
  if (folder.supervisor() === undefined) return undefined;
  return control(folder.control, { do: "status" }).catch(() => undefined);
}

/** Stamp, as `stamp status` shows it. */
export interface ShownStamp {
  readonly ready: boolean;
  readonly facts: object;
  readonly text: string;
}

/** Shows every stamp, then the location service. Returns the exit code. */
export async function statusOfStamps(
  several: SeveralStamps,
  json: boolean,
  show: (config: SeveralStamps["stamps"][number]["config"]) => Promise<ShownStamp>,
): Promise<number> {
  const shown: (ShownStamp & { readonly name: string; readonly location: string })[] = [];
  for (const { name, location, config } of several.stamps) shown.push({ name, location, ...(await show(config)) });
  const service = await locationStatus(several);
  const { at } = locationIn(several);
  if (json) {
    const stamps = shown.map(({ name, location, facts }) => ({ name, location, ...facts }));
    sayRaw(toJson({ stamps, locationService: { address: at, running: service !== undefined, ...service } }));
  } else {
    const parts = shown.map(({ name, location, text }) => `══ Stamp ${name} (location ${location})\n${text}`);
    const told = service === undefined ? "does not run" : `\n${processTable(service)}`;
    say([...parts, `══ Location service ${at} ${told}`].join("\n\n"));
  }
  return service?.ready === true && shown.every(({ ready }) => ready) ? 0 : exitCodes.notReady;
}

const codeOf: Readonly<Record<Health["state"], number>> = {
  healthy: 0,
  degraded: exitCodes.degraded,
  unknown: exitCodes.degraded,
  danger: exitCodes.danger,
  stopped: exitCodes.danger,
};

/** Tells how each stamp is, and whether the location service leads. Returns the worst exit code. */
export async function healthOfStamps(several: SeveralStamps, json: boolean): Promise<number> {
  const found: { readonly name: string; readonly health: Health }[] = [];
  for (const { name, config } of several.stamps) {
    const transport = ownTransport(config);
    const facts = await gather(config, transport, { view: false }).finally(() => transport.close());
    found.push({ name, health: healthOf(facts) });
  }
  const service = await locationStatus(several);
  const isReady = service?.ready === true;
  if (json) sayRaw(toJson({ stamps: found.map(({ name, health }) => ({ name, ...health })), locationService: { ready: isReady } }));
  else {
    const parts = found.map(({ name, health }) => `Stamp ${name}: ${healthText(health)}`);
    const told = isReady ? "serves" : "does not serve: no account can be created, fail over or move (start it: ./stamp up)";
    say([...parts, `Location service ${locationIn(several).at}: ${told}`].join("\n\n"));
  }
  return Math.max(isReady ? 0 : exitCodes.degraded, ...found.map(({ health }) => codeOf[health.state]));
}

/** Stops the stamps, then the location service. */
export async function stopStamps(several: SeveralStamps): Promise<void> {
  for (const dataDir of foldersOf(several)) {
    const folder = new DataFolder(dataDir);
    const { supervisor, orphans } = folder.running();
    if (orphans.length > 0) await folder.stopOrphans(several.location.stopTimeoutMs);
    else if (supervisor !== undefined) await control(folder.control, { do: "stop" });
    else continue;
    say(`stopped ${dataDir}`);
  }
}

/** Deletes every stamp and the location service of a stopped folder. */
export function deleteStamps(several: SeveralStamps): void {
  for (const dataDir of foldersOf(several)) {
    const { supervisor, orphans } = new DataFolder(dataDir).running();
    if (supervisor !== undefined || orphans.length > 0)
      throw new CommandError(`processes run on ${dataDir}; stop them first: ./stamp down`);
  }
  for (const dataDir of foldersOf(several)) if (existsSync(dataDir)) rmSync(dataDir, { recursive: true, force: true });
  rmSync(join(several.dataDir, "stamps.json"), { force: true });
}
