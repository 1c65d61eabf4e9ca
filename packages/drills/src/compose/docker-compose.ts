/** Calls `docker compose` on the compose file of the repository. */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isPackage, repositoryRoot as root } from "@stamp/cluster";
import { DrillError } from "../drill-error.ts";

/** Settings of containers by service: names and values of their environment. */
export type Environments = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface ComposeOptions {
  /** Name of the project. Undefined: as `docker compose` finds it. */
  readonly project?: string;
  /** Variables for the compose file, besides those of this process. */
  readonly variables?: Readonly<Record<string, string>>;
}

const toldCharactersMax = 2_000;

export class DockerCompose {
  readonly #options: ComposeOptions;

  constructor(options: ComposeOptions = {}) {
    this.#options = options;
  }

  /** Runs `docker compose ARGS` and returns what it printed. Throws DrillError with what it complained of. */
  run(...args: string[]): Promise<string> {
    return this.#compose([], args);
  }

  /** Runs a command like `run`, with standard input. */
  feed(input: string, ...args: string[]): Promise<string> {
    return this.#compose([], args, input);
  }

  /** Makes containers anew with other settings; `{}` gives back those of the compose file. Returns when they were started. */
  async remake(services: readonly string[], settings: Environments): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), "stamp-compose-"));
    try {
      const file = join(folder, "settings.yml");
      const overridden = Object.entries(settings).map(([name, environment]) => [name, { environment }]);
      // JSON is YAML.
      await writeFile(file, JSON.stringify({ services: Object.fromEntries(overridden) }));
      const files = overridden.length === 0 ? [] : ["-f", join(root, "docker-compose.yml"), "-f", file];
      await this.#compose(files, ["up", "-d", "--no-build", "--no-deps", ...services]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  #compose(files: readonly string[], args: readonly string[], input?: string): Promise<string> {
    if (isPackage(root)) {
      const why = "the package has no compose files: run this in a clone of the repository, where the containers were started";
      return Promise.reject(new DrillError(why));
    }
    const { project, variables = {} } = this.#options;
    return docker(["compose", ...(project === undefined ? [] : ["-p", project]), "--project-directory", root, ...files, ...args], {
      variables,
      ...(input === undefined ? {} : { input }),
    });
  }
}

export interface DockerOptions {
  readonly variables?: Readonly<Record<string, string>>;
  /** Standard input; none by default. */
  readonly input?: string;
}

export function docker(args: readonly string[], { variables = {}, input }: DockerOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("docker", args, { cwd: root, stdio: "pipe", env: { ...process.env, ...variables } });
    // A program that ends without reading it says why by its exit code.
    child.stdin.on("error", () => {}).end(input);
    let output = "";
    let complaint = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (complaint += text));
    child.on("error", (error) => reject(new DrillError(`docker can't be called: ${error.message}`)));
    child.on("close", (code) => {
      if (code === 0) resolve(output);
      else reject(new DrillError(`docker ${args.join(" ").slice(0, 200)}: ${complaint.trim().slice(-toldCharactersMax)}`));
    });
  });
}
