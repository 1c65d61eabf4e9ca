/** A supervisor over processes that are a few lines each, for its tests. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GrpcTransport } from "@stamp/ports-node";
import { type ClusterConfig, loadConfig } from "../../config.ts";
import { reservePorts } from "../../ports/port-base.ts";
import { roles } from "../../roles.ts";
import { type RunningSupervisor, runSupervisor } from "../run-supervisor.ts";
import { Supervisor, type SupervisorOptions } from "../supervisor.ts";

/** Says when it starts and when it is asked to stop; ignores that when it is told to be stubborn. */
const script = `
import { appendFileSync } from "node:fs";
const say = (what) => appendFileSync("said", what + " " + process.env.STAMP_NAME + "\\n");
say("start" + (process.env.STAMP_INIT === "true" ? " with init" : ""));
process.on("SIGTERM", () => { say("stop"); process.exit(0); });
setInterval(() => {}, 1000);
`;

export interface Bench {
  readonly config: ClusterConfig;
  /** Makes another supervisor on the same folder. Without a configuration it has that of the first one. */
  readonly supervisor: (config?: ClusterConfig, more?: Pick<SupervisorOptions, "onLine">) => Supervisor;
  /** Runs the first supervisor with its control socket and signals. */
  readonly run: () => Promise<RunningSupervisor>;
  readonly said: () => string[];
}

export async function withBench(work: (bench: Bench) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "stamp-supervisor-"));
  const transport = new GrpcTransport();
  const started: Supervisor[] = [];
  const ports = await reservePorts();
  try {
    for (const role of roles) {
      mkdirSync(join(root, "services", role, "src"), { recursive: true });
      writeFileSync(join(root, "services", role, "src", "main.ts"), script);
    }
    writeFileSync(join(root, "said"), "");
    const flags = {
      portBase: ports.portBase,
      lockServices: 1,
      extentNodes: 2,
      streamManagers: 1,
      partitionManagers: 1,
      partitionServers: 1,
      dataDir: join(root, "data"),
      restartAfterMs: 10,
    };
    const config = loadConfig({ directory: root, root, environment: {}, flags });
    await work({
      config,
      supervisor: (other = config, more = {}) => {
        const made = new Supervisor({ config: other, root, transport, ...more });
        started.push(made);
        return made;
      },
      run: async () => {
        const running = await runSupervisor({ config, root, transport });
        started.push(running.supervisor);
        return running;
      },
      said: () =>
        readFileSync(join(root, "said"), "utf8")
          .split("\n")
          .filter((line) => line !== ""),
    });
  } finally {
    for (const each of started) await each.stop();
    await transport.close();
    await ports.release();
    rmSync(root, { recursive: true, force: true });
  }
}

export async function until(what: string, condition: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 3_000; attempt++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`never: ${what}`);
}
