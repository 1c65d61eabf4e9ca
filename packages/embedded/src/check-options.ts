/** Checks options of `startStamp` given by JavaScript: a wrong one is refused before anything is made. */
import { inspect } from "node:util";
import type { StampOptions } from "./types.ts";

type Check = readonly [isRight: (value: never) => boolean, wanted: string];

const isPort = (port: number | undefined): boolean => port === undefined || (Number.isInteger(port) && port >= 0 && port <= 65_535);
const checks: Readonly<Record<keyof StampOptions, Check>> = {
  dataDir: [(value: unknown) => typeof value === "string" && value !== "", "the path of a folder"],
  storage: [(value: unknown) => value === "memory" || value === "disk", '"memory" or "disk"'],
  replicas: [(value: unknown) => value === 1 || value === 3, "1 or 3"],
  lockServices: [(value: unknown) => value === 1 || value === 3, "1 or 3"],
  partitionServers: [(value: number) => Number.isInteger(value) && value >= 1 && value <= 100, "a whole number from 1 to 100"],
  ports: [
    (value: NonNullable<StampOptions["ports"]>) => [value?.blob, value?.queue, value?.table, value?.file, value?.dfs].every(isPort),
    "{ blob, queue, table, file, dfs } with numbers from 0 to 65535",
  ],
  hierarchicalNamespace: [(value: unknown) => typeof value === "boolean", "true or false"],
  tls: [
    (value: StampOptions["tls"]) => typeof value?.certificatePath === "string" && typeof value.keyPath === "string",
    "{ certificatePath, keyPath }",
  ],
  init: [
    (value: unknown) => (typeof value === "string" && value !== "") || (typeof value === "object" && value !== null),
    "the path of an init file, or its content",
  ],
  readyTimeoutMs: [(value: number) => Number.isFinite(value) && value > 0, "a number of milliseconds above 0"],
};

/** Throws an error that names the wrong option and its values. */
export function checkOptions(options: StampOptions): void {
  for (const [name, [isRight, wanted]] of Object.entries(checks)) {
    const value = (options as Record<string, unknown>)[name];
    if (value !== undefined && !isRight(value as never)) throw new TypeError(`"${name}" is ${inspect(value)}: it has to be ${wanted}`);
  }
}
