/** Loads a drill of two stamps. Its clients are the real SDKs, which are there in a clone and not in the image: only who asks loads them. */
import type { geoDrillNames } from "../explain.ts";
import type { GeoDrillOptions, GeoDrillReport } from "./run-geo-drill.ts";

export type { GeoDrillReport } from "./run-geo-drill.ts";

export async function geoDrill(name: (typeof geoDrillNames)[number], options: GeoDrillOptions): Promise<GeoDrillReport> {
  const [{ geoDrills }, { runGeoDrill }] = await Promise.all([import("./geo-drills.ts"), import("./run-geo-drill.ts")]);
  const drill = geoDrills.find((each) => each.name === name);
  if (drill === undefined) throw new Error(`there is no drill ${name}`);
  return runGeoDrill(drill, options);
}
