/** A stamp of its own, its console as a person starts it, and a real Chromium. */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type ClusterStatus, type ControlRequest, control, DataFolder, reservePorts } from "@stamp/cluster";
import { type Browser, chromium } from "playwright-core";

const root = join(import.meta.dirname, "../..");

/** Path of Chromium; undefined if none is installed. */
export const chromiumPath: string | undefined = [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser"].find(
  (path) => {
    try {
      accessSync(path, constants.X_OK);
      return path !== "";
    } catch {
      return false;
    }
  },
);

/** Inside a container or as root there are no sandboxes. The browser opens nothing but the console. */
export const openBrowser = (): Promise<Browser> => chromium.launch({ executablePath: chromiumPath ?? "", args: ["--no-sandbox"] });

export class ConsoleBench {
  readonly dataDir: string = mkdtempSync(join(tmpdir(), "stamp-console-"));
  #console: ChildProcess | undefined;
  readonly #links: string[] = [];
  #waiting: (() => void) | undefined;

  /** Starts the stamp. The first start chooses its ports; later ones remember them. */
  async up(): Promise<void> {
    if (!new DataFolder(this.dataDir).isNew) return await this.#stamp("up", "-d", "--ready-timeout-s", "120");
    const ports = await reservePorts();
    await ports.release();
    await this.#stamp("up", "-d", "--ready-timeout-s", "120", "--port-base", String(ports.portBase));
  }

  down(): Promise<void> {
    return this.#stamp("down");
  }

  /** Starts the console; `listen` is the address that it had before. */
  start(listen = "127.0.0.1:0"): void {
    const child = spawn(process.execPath, [join(root, "stamp.mjs"), "console", "--data", this.dataDir, "--listen", listen], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#console = child;
    createInterface({ input: child.stdout }).on("line", (line) => {
      const link = /http:\S+/.exec(line)?.[0];
      if (link === undefined) return;
      this.#links.push(link);
      this.#waiting?.();
    });
  }

  /** Returns a link that signs in: the first one, or one for which Enter was pressed. */
  async link(): Promise<string> {
    const kept = this.#links.shift();
    if (kept !== undefined) return kept;
    this.#console?.stdin?.write("\n");
    await new Promise<void>((resolve) => {
      this.#waiting = resolve;
    });
    return this.#links.shift() as string;
  }

  async stop(): Promise<void> {
    const child = this.#console;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    this.#links.length = 0;
  }

  ask(request: ControlRequest): Promise<ClusterStatus> {
    return control(new DataFolder(this.dataDir).control, request);
  }

  async close(): Promise<void> {
    await this.stop();
    await this.down();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  async #stamp(...args: readonly string[]): Promise<void> {
    const child = spawn(process.execPath, [join(root, "stamp.mjs"), ...args, "--data", this.dataDir], { stdio: "ignore" });
    const code = await new Promise((resolve) => child.once("exit", resolve));
    if (code !== 0) throw new Error(`stamp ${args.join(" ")}: exit code ${code}`);
  }
}
