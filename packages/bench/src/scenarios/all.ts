/** All scenarios, by their names. */
import { blobScenarios } from "./blobs.ts";
import { queueScenarios } from "./queues.ts";
import type { NameSpace, Scenario, Scenarios } from "./scenario.ts";
import { tableScenarios } from "./tables.ts";

export function scenariosOf(connectionString: string, space: NameSpace): Scenarios {
  const services = [blobScenarios, tableScenarios, queueScenarios].map((scenarios) => scenarios(connectionString, space));
  return { all: services.flatMap((service) => service.all), close: () => services.forEach((service) => void service.close()) };
}

/** Throws when there is none of that name. */
export function scenarioNamed(scenarios: Scenarios, name: string): Scenario {
  const found = scenarios.all.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no scenario is named ${name}`);
  return found;
}
