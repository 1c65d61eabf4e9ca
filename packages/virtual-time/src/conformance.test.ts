/** The simulated ports against the same suites as the real ones, each test on virtual time. */
import { test } from "node:test";
import { clockConformance, digestConformance, diskConformance, keyValueConformance, transportConformance } from "@stamp/ports";
import type { SimulationOptions } from "./options.ts";
import { digest } from "./ports/digest.ts";
import { Simulation } from "./simulation.ts";

let sim: Simulation;
const registerWith =
  (options: Partial<SimulationOptions>, note = "") =>
  (name: string, run: () => Promise<void>): void =>
    void test(`simulator: ${name}${note}`, async () => {
      sim = new Simulation({ seed: 1, bugsFail: false, ...options });
      await sim.run(run);
    });
const register = registerWith({ clockDriftPpmMax: 200 });

clockConformance(register, () => sim.world("tester").clock);
digestConformance(register, () => digest);

diskConformance(register, async () => ({
  disk: sim.world("tester").disk,
  reopen: async () => {
    sim.crash("tester", { unsynced: "lost" });
    sim.restart("tester");
    return sim.world("tester").disk;
  },
  dispose: async () => {},
}));

keyValueConformance(register, async () => ({
  stores: sim.world("tester").keyValue,
  reopen: async () => {
    sim.crash("tester", { unsynced: "lost" });
    sim.restart("tester");
    return sim.world("tester").keyValue;
  },
  dispose: async () => {},
}));

for (const roundTrip of [false, true]) {
  transportConformance(
    registerWith({ clockStartSpreadMs: 0, network: { roundTrip } }, roundTrip ? ", encoded" : ", by reference"),
    async () => ({
      clock: sim.world("client").clock,
      server: sim.world("server").transport,
      client: sim.world("client").transport,
      listen: "server",
      absent: "nobody",
      dispose: async () => {},
    }),
  );
}
