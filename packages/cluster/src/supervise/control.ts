/**
 * Control of a running supervisor: one request and one answer, a line of JSON each, over a socket in the data folder (so whoever may
 * write there may control it, nobody else).
 */
import { chmodSync, existsSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { inWords, isSystemError } from "@stamp/ports-node";
import { type ReachedPath, reached } from "../record/control-path.ts";
import type { ClusterStatus } from "../status.ts";
import type { ManagedProcess } from "./managed-process.ts";

export type ControlRequest =
  | { readonly do: "status" }
  | { readonly do: "stop" }
  /** Holds a process down until `start`. */
  | { readonly do: "hold"; readonly name: string }
  | { readonly do: "start"; readonly name: string }
  /** Stopped as asked (SIGTERM), and started again. */
  | { readonly do: "restart"; readonly name: string }
  /** One more extent node: this one, or the next. */
  | { readonly do: "add-node"; readonly name?: string }
  /** Stopped for good, because it was decommissioned. */
  | { readonly do: "retire"; readonly name: string }
  | { readonly do: "signal"; readonly name: string; readonly signal: "SIGKILL" | "SIGSTOP" | "SIGCONT" }
  /** Every process at once; they stay down until `resume`. */
  | { readonly do: "power-loss" }
  | { readonly do: "resume" };

export type ControlAnswer = { readonly ok: true; readonly status: ClusterStatus } | { readonly ok: false; readonly message: string };

/** Supervisor, as its control server commands it. */
export interface ControlledSupervisor {
  readonly folder: { readonly control: string };
  status(): ClusterStatus;
  process(name: string): Pick<ManagedProcess, "start" | "stop" | "signal"> | undefined;
  addNode(name?: string): Promise<unknown>;
  retire(name: string): Promise<void>;
  powerLoss(): Promise<void>;
  resume(): void;
}

const lineBytesMax = 64 * 1024;
const answerTimeoutMs = 60_000;

/** Time between two looks whether the socket is still there. */
const lookEveryMs = 2_000;

export class ControlServer {
  #server: Server;
  readonly #path: string;
  readonly #makeServer: () => Server;
  readonly #sockets = new Set<Socket>();
  #reached: ReachedPath | undefined;
  #looking: NodeJS.Timeout | undefined;

  /** `onStop` is called at a request to stop; the answer is sent when it has resolved. */
  constructor(supervisor: ControlledSupervisor, onStop: () => Promise<void>) {
    this.#path = supervisor.folder.control;
    this.#makeServer = () =>
      createServer({ allowHalfOpen: true }, (socket) => {
        this.#sockets.add(socket);
        socket.on("close", () => this.#sockets.delete(socket));
        socket.on("error", () => socket.destroy());
        readLine(socket, async (line) => {
          const answer = await answerTo(line, supervisor, onStop);
          socket.end(`${JSON.stringify(answer)}\n`);
        });
      });
    this.#server = this.#makeServer();
  }

  /** Listens at a socket, which is made again if somebody removes it. */
  async listen(): Promise<void> {
    await this.#listen();
    this.#looking = setInterval(() => {
      if (!existsSync(this.#path)) void this.#listenAgain();
    }, lookEveryMs).unref();
  }

  #listen(): Promise<void> {
    rmSync(this.#path, { force: true });
    const found = reached(this.#path);
    this.#reached = found;
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(found.path, () => {
        chmodSync(this.#path, 0o600);
        resolve();
      });
    });
  }

  /** Listens at the path anew. If the disk refuses that, the next look tries again. */
  async #listenAgain(): Promise<void> {
    this.#server.close();
    this.#reached?.close();
    this.#reached = undefined;
    this.#server = this.#makeServer();
    try {
      await this.#listen();
    } catch (error) {
      if (!isSystemError(error)) throw error;
    }
  }

  /** Lets the process end without closing the socket, which would remove that of another supervisor at the same path. */
  leave(): void {
    clearInterval(this.#looking);
    this.#server.unref();
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    clearInterval(this.#looking);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const leaving = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, 500);
    await closed;
    clearTimeout(leaving);
    this.#reached?.close();
  }
}

async function answerTo(line: string, supervisor: ControlledSupervisor, onStop: () => Promise<void>): Promise<ControlAnswer> {
  try {
    const request = JSON.parse(line) as ControlRequest;
    const named = (name: string): NonNullable<ReturnType<ControlledSupervisor["process"]>> => {
      const managed = supervisor.process(name);
      if (managed === undefined) throw new Error(`there is no process ${name}`);
      return managed;
    };
    switch (request.do) {
      case "status":
        break;
      case "stop": {
        const last = supervisor.status();
        await onStop();
        return { ok: true, status: { ...last, running: false } };
      }
      case "hold":
        await named(request.name).stop("kill");
        break;
      case "start":
        named(request.name).start();
        break;
      case "restart":
        await named(request.name).stop("cleanly");
        named(request.name).start();
        break;
      case "add-node":
        await supervisor.addNode(request.name);
        break;
      case "retire":
        await supervisor.retire(request.name);
        break;
      case "signal":
        named(request.name).signal(request.signal);
        break;
      case "power-loss":
        await supervisor.powerLoss();
        break;
      case "resume":
        supervisor.resume();
        break;
      default:
        throw new Error("no such request");
    }
    return { ok: true, status: supervisor.status() };
  } catch (error) {
    return { ok: false, message: inWords(error) };
  }
}

function readLine(socket: Socket, take: (line: string) => void): void {
  let held = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    held += chunk;
    if (held.length > lineBytesMax * 16) socket.destroy();
    const end = held.indexOf("\n");
    if (end < 0) return;
    socket.removeAllListeners("data");
    take(held.slice(0, end));
  });
}

/** Asks the supervisor behind `path`; throws when there is none. */
export function control(path: string, request: ControlRequest, timeoutMs: number = answerTimeoutMs): Promise<ClusterStatus> {
  return new Promise((resolve, reject) => {
    const { path: reachedPath, close } = reached(path);
    const socket = createConnection(reachedPath);
    const giveUp = setTimeout(() => {
      socket.destroy();
      reject(new Error("the supervisor does not answer"));
    }, timeoutMs);
    socket.on("error", (error) => {
      clearTimeout(giveUp);
      reject(error);
    });
    socket.on("close", () => {
      close();
      clearTimeout(giveUp);
      reject(new Error("the supervisor went away"));
    });
    readLine(socket, (line) => {
      clearTimeout(giveUp);
      socket.destroy();
      const answer = JSON.parse(line) as ControlAnswer;
      if (answer.ok) resolve(answer.status);
      else reject(new Error(answer.message));
    });
    socket.write(`${JSON.stringify(request)}\n`);
  });
}
