/**
 * Frame of the tests of three hosts. Whoever ends a test leaves no namespaces, and nothing that runs in them.
 *
 * The logs of a stamp are kept if its test fails. STAMP_HOSTS_LOGS=FOLDER keeps those of every test there.
 */
import { test } from "node:test";
import { historiesDrill, type MovingClients } from "@stamp/drills";
import { findEtcd } from "../etcd/etcd-server.ts";
import { whyNoNamespaces } from "./network.ts";
import { type Host, StampHosts, type StampHostsOptions } from "./stamp-hosts.ts";

export class RunningHosts {
  readonly #etcdProgram: string | undefined;
  #stamp: StampHosts | undefined;
  #clients: MovingClients | undefined;

  /** `etcdProgram`: undefined if there is none, for stamps that need none. */
  constructor(etcdProgram: string | undefined) {
    this.#etcdProgram = etcdProgram;
  }

  async start({ metadata = "etcd", ...options }: StampHostsOptions = {}): Promise<StampHosts> {
    this.#stamp = await StampHosts.start(metadata === "etcd" ? this.#etcdProgram : undefined, options);
    return this.#stamp;
  }

  /** Clients of the front-ends of these hosts. `shared`: names of the blobs that some of them share. */
  async startClients(of: readonly Host[], shared?: readonly string[]): Promise<MovingClients> {
    const stamp = this.#stamp as StampHosts;
    const drill = await historiesDrill();
    const doors = of.map((host) => stamp.connectionString(host));
    this.#clients = await drill.MovingClients.start(doors, shared);
    return this.#clients;
  }

  /** Ends everything. `logsTo`: folder that the logs are copied to. */
  async close(logsTo: string | undefined): Promise<void> {
    await this.#clients?.stop();
    await this.#stamp?.close(logsTo);
  }
}

export interface HostsTestOptions {
  readonly timeoutMs: number;
  /** Reason to skip the test; undefined if there is none. */
  readonly skip?: string | undefined;
  /** False: the stamp of the test needs no etcd. */
  readonly etcd?: boolean;
}

/** Runs a test of a stamp on three hosts. Skips it, with the reason, where there are no namespaces or no etcd. */
export async function hostsTest(name: string, options: HostsTestOptions, work: (running: RunningHosts) => Promise<void>): Promise<void> {
  const found: { readonly program?: string; readonly skip?: string } = options.etcd === false ? {} : await findEtcd();
  const skip = (await whyNoNamespaces()) ?? found.skip ?? options.skip;
  if (skip !== undefined) return void test(name, { skip }, () => {});
  const running = new RunningHosts(found.program);
  const kept = process.env.STAMP_HOSTS_LOGS;
  process.once("SIGTERM", () => void running.close(kept).finally(() => process.exit(1)));
  test(name, { timeout: options.timeoutMs }, async (t) => {
    let passed = false;
    // Runs too when the time of the test is over.
    t.after(() => running.close(kept ?? (passed ? undefined : StampHosts.folderForLogs())));
    await work(running);
    passed = true;
  });
}
