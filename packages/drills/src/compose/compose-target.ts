/**
 * The stamp of docker-compose.yml as the cluster of a drill. Faults are what they are with Docker: a killed process is started again by
 * Docker, a container that is killed stays down until it is started, a pause stops every process of a container.
 *
 * The drill runs on this machine. Clients come by the published ports; whoever asks the processes themselves goes through a relay, a
 * container on the network of the stamp that lives as long as the drill.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { DescService } from "@bufbuild/protobuf";
import {
  type ClusterStatus,
  type ControlRequest,
  composeCluster,
  environmentName,
  type ProcessStatus,
  StampInspector,
} from "@stamp/cluster";
import type { Address, Client, Transport } from "@stamp/ports";
import { type Credential, credentialOf, GrpcTransport } from "@stamp/ports-node";
import { Status } from "@stamp/wire";
import type { ActOutcome, DamageAct } from "../damage/hand.ts";
import { DrillError } from "../drill-error.ts";
import type { DrillTarget } from "../target.ts";
import { type ComposeOptions, DockerCompose, docker, type Environments } from "./docker-compose.ts";

/** Service whose environment names all processes, and whose image and network the relay has. */
const frontEnd = "front-end-1";
const secretFile = "/secret/cluster-secret";
const programsFolder = "/stamp/programs";
const dataFolder = "/data";
/** Port of Blob in the front-end's container. */
const blobPort = 10_000;
/**
 * A client beside the processes shares the system's TCP memory with them. By default each connection of a slow reader holds up to 5 MiB that it
 * has not read, 1.2 GiB for 1,000 (measured), so that the system throttles every connection. Clients elsewhere use memory of their own.
 */
const smallReceiveBuffers = ["--sysctl", "net.ipv4.tcp_rmem=4096 65536 131072"];
const relayPortFrom = 20_000;
const relayWithinMs = 60_000;
const askTimeoutMs = 1_500;

export interface ComposeTargetOptions extends ComposeOptions {
  /** Settings of the processes of a role for this drill; the containers are made anew with them, and without them in the end. */
  readonly roles?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Throws DrillError if no stamp of the compose file runs. */
export async function attachCompose(options: ComposeTargetOptions = {}): Promise<DrillTarget> {
  const compose = new DockerCompose(options);
  const told = await compose
    .run("exec", "-T", frontEnd, "sh", "-c", `echo "$STAMP_CONNECTION_STRING"; cat ${secretFile}; echo; echo $STAMP_PROCESSES`)
    .catch((error: Error) => {
      throw new DrillError(`no stamp of docker-compose.yml runs (docker compose up --wait): ${error.message}`, { isNotRunning: true });
    });
  const [connectionString = "", secret = "", ...rest] = told.split("\n").filter((line) => line !== "");
  const cluster = composeCluster({ STAMP_PROCESSES: rest.join(" "), STAMP_CONNECTION_STRING: connectionString });
  if (cluster === undefined) throw new DrillError(`${frontEnd} has no list of processes (STAMP_PROCESSES)`);
  const settings = settingsOf(options.roles ?? {}, cluster.processes);
  const changed = Object.keys(settings);
  if (changed.length > 0) await compose.remake(changed, settings);
  const place = await placeOf(compose);
  const relay = await startRelay(
    place,
    cluster.processes.map(({ grpc }) => grpc),
  );
  const transport = new RelayedTransport(relay.ports, credentialOf({ clusterSecret: secret }));
  const stage = new ComposeStage(compose, transport, { ...cluster, running: true, ready: false, supervisorPid: null });
  return {
    inspector: new StampInspector(transport, cluster.lockService),
    transport,
    connectionString,
    connectionStrings: [connectionString],
    status: () => stage.status(),
    ask: (request) => stage.ask(request),
    hand: (name, act) => stage.hand(name, act),
    beside: {
      blob: { host: frontEnd, port: blobPort },
      commandOf: (program, argument) => [
        "docker",
        ...containerOf(place, ["--rm", "--interactive", ...smallReceiveBuffers]),
        "node",
        `${programsFolder}/${program}.mjs`,
        argument,
      ],
    },
    residentMebibytes: (name) => stage.residentMebibytes(name),
    close: async () => {
      await transport.close();
      await relay.end();
      if (changed.length > 0) await compose.remake(changed, {});
    },
  };
}

class ComposeStage {
  readonly #compose: DockerCompose;
  readonly #transport: Transport;
  readonly #cluster: ClusterStatus;
  /** Names of containers that are down because the drill asked for it. */
  readonly #held = new Set<string>();

  constructor(compose: DockerCompose, transport: Transport, cluster: ClusterStatus) {
    this.#compose = compose;
    this.#transport = transport;
    this.#cluster = cluster;
  }

  async status(): Promise<ClusterStatus> {
    const processes = await Promise.all(this.#cluster.processes.map((each) => this.#askProcess(each)));
    return { ...this.#cluster, processes, ready: processes.every(({ ready }) => ready) };
  }

  async ask(request: ControlRequest): Promise<ClusterStatus> {
    const names = this.#cluster.processes.map(({ name }) => name);
    switch (request.do) {
      case "status":
        break;
      case "signal":
        await this.#signal(request.name, request.signal);
        break;
      case "hold":
        await this.#kill([request.name]);
        break;
      case "restart":
        await this.#compose.run("restart", request.name);
        break;
      case "power-loss":
        await this.#kill(names);
        break;
      case "start":
        await this.#start([request.name]);
        break;
      case "resume":
        await this.#start(names);
        break;
      default:
        throw new DrillError(`a stamp of docker-compose.yml can't be asked to ${request.do}`);
    }
    return this.status();
  }

  /** Acts on a container's volume, through the container or, while it is down, through another one of the same service. */
  async hand(name: string, act: DamageAct): Promise<ActOutcome> {
    const where = this.#held.has(name) ? ["run", "--rm", "--no-deps", "-T", name] : ["exec", "-T", name];
    const program = ["node", `${programsFolder}/drill-hand.mjs`, dataFolder, name];
    const output = await this.#compose.feed(JSON.stringify(act), ...where, ...program);
    // Docker may have said something before it.
    return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as ActOutcome;
  }

  /** Returns the resident memory of the container's process, in MiB. */
  async residentMebibytes(name: string): Promise<number> {
    const told = await this.#inContainer(name, 'for pid in $(cat /proc/1/task/1/children); do grep VmRSS "/proc/$pid/status"; done');
    return Math.round(Number(/(\d+) kB/.exec(told)?.[1] ?? "0") / 1024);
  }

  /** Sends a signal. A container's first process starts the role; when the role is killed the container ends, and Docker starts it. */
  async #signal(name: string, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void> {
    if (signal === "SIGKILL") await this.#inContainer(name, "kill -KILL $(cat /proc/1/task/1/children)");
    else await this.#compose.run(signal === "SIGSTOP" ? "pause" : "unpause", name);
  }

  async #kill(names: readonly string[]): Promise<void> {
    for (const name of names) this.#held.add(name);
    await this.#compose.run("kill", ...names);
  }

  async #start(names: readonly string[]): Promise<void> {
    await this.#compose.run("start", ...names);
    for (const name of names) this.#held.delete(name);
  }

  #inContainer(name: string, script: string): Promise<string> {
    return this.#compose.run("exec", "-T", name, "sh", "-c", script);
  }

  async #askProcess(process: ProcessStatus): Promise<ProcessStatus> {
    if (this.#held.has(process.name)) return { ...process, state: "down", ready: false };
    const answer = await this.#transport.client(process.grpc, Status).getStatus({ withoutFacts: true }, { timeoutMs: askTimeoutMs });
    if (!answer.ok) return { ...process, state: "not answering", ready: false, waitingFor: [] };
    const { state, ready, waitingFor, pid } = answer.value;
    return { ...process, state, ready, waitingFor, pid };
  }
}

/** Returns the environment of each container of a role that has settings. */
export function settingsOf(
  settings: NonNullable<ComposeTargetOptions["roles"]>,
  processes: readonly Pick<ProcessStatus, "role" | "name">[],
): Environments {
  const environmentOf = (values: Readonly<Record<string, unknown>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [environmentName(key), String(value)]));
  return Object.fromEntries(
    processes.flatMap(({ role, name }) => {
      const values = settings[role];
      return values === undefined ? [] : [[name, environmentOf(values)]];
    }),
  );
}

interface Relay {
  end(): Promise<void>;
  /** Port of this machine that leads to a process, by the process's address. */
  readonly ports: ReadonlyMap<Address, number>;
}

/** Image and network of the stamp's containers. */
interface StampPlace {
  readonly image: string;
  readonly network: string;
}

async function placeOf(compose: DockerCompose): Promise<StampPlace> {
  const like = (await compose.run("ps", "--quiet", frontEnd)).trim();
  const format = "{{.Config.Image}} {{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}";
  const [image = "", network = ""] = (await docker(["inspect", "--format", format, like])).trim().split(" ");
  return { image, network };
}

/**
 * Arguments of Docker for a container on the network of the stamp. It is no container of the project: it would be killed together with
 * the service that it was made of.
 */
function containerOf({ image, network }: StampPlace, options: readonly string[]): string[] {
  const rights = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true"];
  return ["run", ...options, "--init", "--pull", "never", ...rights, "--network", network, image];
}

/** Starts a relay, which ends with this process, because its standard input ends then. */
async function startRelay(place: StampPlace, addresses: readonly Address[]): Promise<Relay> {
  const ways = addresses.map((address, at) => ({ address, port: relayPortFrom + at }));
  const published = ways.flatMap(({ port }) => ["--publish", `127.0.0.1::${port}`]);
  const targets = ways.map(({ address, port }) => `${port}=${address}`);
  const name = `stamp-relay-${randomBytes(6).toString("hex")}`;
  const run = containerOf(place, ["--rm", "--interactive", "--name", name, "--memory", "256m", ...published]);
  // Ctrl-C reaches this process only.
  const child = spawn("docker", [...run, "node", `${programsFolder}/drill-relay.mjs`, ...targets], { stdio: "pipe", detached: true });
  let complaint = "";
  child.stdout.resume();
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  let hasEnded = false;
  const ended = once(child, "close").then(() => (hasEnded = true));
  const end = async (): Promise<void> => {
    child.stdin.end();
    await ended;
  };
  for (const endMs = performance.now() + relayWithinMs; !hasEnded && performance.now() < endMs; ) {
    const told = await docker(["port", name]).catch(() => "");
    if (told === "") await new Promise((resolve) => setTimeout(resolve, 100));
    else return { end, ports: new Map(ways.map(({ address, port }) => [address, publishedPort(told, port)])) };
  }
  await end();
  throw new DrillError(`the relay did not start within ${relayWithinMs / 1_000} s: ${complaint.trim()}`);
}

/** Reads `20000/tcp -> 127.0.0.1:49153`, a line for each port. */
export function publishedPort(told: string, port: number): number {
  const found = new RegExp(`^${port}/tcp -> 127\\.0\\.0\\.1:(\\d+)$`, "m").exec(told)?.[1];
  if (found === undefined) throw new DrillError(`Docker did not publish port ${port} of the relay: ${told}`);
  return Number(found);
}

/** Calls a process through the relay. Proofs are made for the port that the process has, not for the one that is dialed. */
export class RelayedTransport implements Transport {
  readonly #ports: ReadonlyMap<Address, number>;
  readonly #inner: GrpcTransport;

  constructor(ports: ReadonlyMap<Address, number>, credential: Credential) {
    this.#ports = ports;
    const processPorts = new Map([...ports].map(([address, port]) => [port, Number(address.split(":")[1])]));
    const portOf = (port: number): number => processPorts.get(port) ?? port;
    const forwarded: Credential = {
      open: credential.open,
      accepts: credential.accepts,
      stillAccepts: (by) => credential.stillAccepts(by),
      dial: (port) => credential.dial(portOf(port)),
      tokenFor: (port) => credential.tokenFor(portOf(port)),
      accept: (own) => credential.accept(own),
      admit: (token, own) => credential.admit(token, own),
    };
    this.#inner = new GrpcTransport({ credential: () => forwarded });
  }

  client<S extends DescService>(address: Address, service: S): Client<S> {
    const port = this.#ports.get(address);
    return this.#inner.client(port === undefined ? address : `127.0.0.1:${port}`, service);
  }

  serve(): never {
    throw new Error("nothing is served beside a drill");
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
