/** A stamp of its own, its console as a person starts it, and a real Chromium. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type ClusterStatus, type ControlRequest, control, DataFolder, reservePorts } from "@stamp/cluster";
import { type Browser, chromium, type Locator, type Page } from "playwright-core";

const root = join(import.meta.dirname, "../..");

/** Path of Chromium; undefined if none is installed. */
const chromiumPath: string | undefined = [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => {
  try {
    accessSync(path, constants.X_OK);
    return path !== "";
  } catch {
    return false;
  }
});

/** Why tests with a browser are skipped; false if Chromium is installed. */
export const skip = chromiumPath === undefined ? "Chromium is missing: apt-get install chromium, or its path in CHROMIUM" : false;

/** Inside a container or as root there are no sandboxes. The browser opens nothing but the console. */
export const openBrowser = (): Promise<Browser> => chromium.launch({ executablePath: chromiumPath ?? "", args: ["--no-sandbox"] });

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Problems of the page that axe finds, each with the first element that has it. */
export async function violationsIn(page: Page): Promise<unknown> {
  await page.evaluate(axeSource);
  return page.evaluate("axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))");
}

/** Names that a page may take for something else, and names that are hard to show. */
export const hostileNames: readonly string[] = [
  '<img src=x onerror="document.title=1">',
  "<script>document.title=1</script>",
  "\u202Etxt.exe",
  "😀👩‍👩‍👧‍👦".repeat(8),
  "x".repeat(1_024),
  "javascript:alert(1)",
  "../../etc",
  "' \" & &amp; %00",
];

/** Buttons and the dialog of the page that `page` returns. */
export function controlsOf(page: () => Page) {
  const button = (name: string): Locator => page().getByRole("button", { name, exact: true });
  const dialog = (): Locator => page().getByRole("dialog");
  /** Presses the dialog's button, and waits until the dialog has closed. */
  const confirm = async (name: string): Promise<void> => {
    await dialog().getByRole("button", { name, exact: true }).click();
    await dialog().waitFor({ state: "detached" });
  };
  return { button, dialog, confirm };
}

interface OpenedConsole {
  readonly browser: Browser;
  readonly page: Page;
  readonly origin: string;
}

export class ConsoleBench {
  readonly dataDir: string;
  /** Errors of the pages that are signed in, and what their content security policy stopped. */
  readonly problems: string[] = [];
  #browser: Browser | undefined;
  #console: ChildProcess | undefined;
  readonly #links: string[] = [];
  #waiting: (() => void) | undefined;

  /** `dataDir`: folder of a stamp that is there already; absent: a folder of its own. */
  constructor(dataDir: string = mkdtempSync(join(tmpdir(), "stamp-console-"))) {
    this.dataDir = dataDir;
  }

  /** Starts the stamp. The first start chooses its ports, and `settings`; later ones remember them. */
  async up(...settings: readonly string[]): Promise<void> {
    if (!new DataFolder(this.dataDir).isNew) return await this.#stamp("up", "-d", "--ready-timeout-s", "120");
    const ports = await reservePorts();
    await ports.release();
    await this.#stamp("up", "-d", "--ready-timeout-s", "120", "--port-base", String(ports.portBase), ...settings);
  }

  down(): Promise<void> {
    return this.#stamp("down");
  }

  /** Starts the console; `listen` is the address that it had before. */
  start(listen = "127.0.0.1:0", role = "data"): void {
    const args = ["console", "--data", this.dataDir, "--listen", listen, "--role", role];
    const child = spawn(process.execPath, [join(root, "stamp.mjs"), ...args], {
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

  /** Starts the console and a browser, and signs in. `close` ends all three. */
  async open(role = "data"): Promise<OpenedConsole> {
    this.start("127.0.0.1:0", role);
    this.#browser = await openBrowser();
    const page = await this.signedIn();
    return { browser: this.#browser, page, origin: new URL(page.url()).origin };
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

  /** Opens a page that a new link signed in, in a context of its own. Fails if the page asks another host. */
  async signedIn(): Promise<Page> {
    const context = await this.#browser?.newContext();
    assert.ok(context, "the browser is not open");
    const page = await context.newPage();
    page.on("pageerror", ({ message }) => this.problems.push(message));
    page.on("console", (message) => {
      // Some tests make refused connections and failed answers on purpose.
      if (message.type() === "error" && !/Failed to load resource|ERR_CONNECTION_REFUSED/.test(message.text()))
        this.problems.push(message.text());
    });
    const requested: string[] = [];
    page.on("request", (request) => requested.push(request.url()));
    const link = await this.link();
    await page.goto(link);
    await page.locator(".health h2").waitFor();
    for (const url of requested) assert.ok(url.startsWith(`${new URL(link).origin}/`), `asked of another host: ${url}`);
    return page;
  }

  /** Stops the console; its browser stays open. */
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

  closeBrowser(): Promise<void> | undefined {
    return this.#browser?.close();
  }

  async close(): Promise<void> {
    await this.closeBrowser();
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
