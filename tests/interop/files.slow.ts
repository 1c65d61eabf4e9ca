/**
 * Tools of other projects, unmodified, at the Files service of one cluster of real processes: rclone's `azurefiles` and azure-cli. The script of
 * a tool is `files/<tool>.sh`. A tool that is not in the PATH is fetched from its registry, which takes minutes; where that fails, a line says so.
 * STAMP_INTEROP_TOOLS names the tools to run ("rclone az"), or "none".
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { ShareServiceClient } from "@azure/storage-file-share";
import { startOwn } from "@stamp/drills";
import { run } from "../tools/commands.ts";

const account = { name: "interop", key: Buffer.from("a key of the interop tests only").toString("base64") };
const folder = mkdtempSync(join(tmpdir(), "stamp-files-"));
const programs = join(folder, "programs");
const fetchMs = 900_000;

interface Tool {
  readonly name: string;
  /** Commands that put the tool's program into `programs`. */
  readonly fetch: readonly (readonly string[])[];
}

const tools: readonly Tool[] = [
  { name: "rclone", fetch: [["env", `GOBIN=${programs}`, "go", "install", "github.com/rclone/rclone@v1.76.0"]] },
  {
    name: "az",
    fetch: [
      ["python3", "-m", "venv", join(folder, "az")],
      [join(folder, "az/bin/python"), "-m", "pip", "install", "--quiet", "azure-cli==2.91.0"],
      ["ln", "-s", join(folder, "az/bin/az"), join(programs, "az")],
    ],
  },
];
const wanted = (process.env.STAMP_INTEROP_TOOLS ?? tools.map(({ name }) => name).join(" ")).split(/[\s,]+/);

let cluster: Awaited<ReturnType<typeof startOwn>>;
before(async () => {
  mkdirSync(programs);
  cluster = await startOwn({ accounts: [{ name: account.name, keys: [account.key] }] }, false);
});
after(async () => {
  await cluster?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Fetches the tool if the PATH has none. Returns why there is none. */
async function fetched(tool: Tool): Promise<string | undefined> {
  if ((await run("sh", ["-c", `command -v ${tool.name}`])).code === 0) return undefined;
  for (const [program = "", ...words] of tool.fetch) {
    const { code, output } = await run(program, words, { timeoutMs: fetchMs });
    if (code !== 0) return `${tool.name} can't be fetched here: ${output.trim().split("\n").at(-1)}`;
  }
  return undefined;
}

for (const tool of tools) {
  test(`files: ${tool.name} gets back what it stored in a share`, { timeout: 2 * fetchMs }, async (context) => {
    if (!wanted.includes(tool.name)) return context.skip("STAMP_INTEROP_TOOLS names others");
    const missing = await fetched(tool);
    if (missing !== undefined) return context.skip(missing);
    const scratch = join(folder, `${tool.name}-scratch`);
    mkdirSync(scratch);
    const share = `of-${tool.name}`;
    await ShareServiceClient.fromConnectionString(cluster.connectionString).getShareClient(share).create();
    const settings = {
      ...{ STAMP_ACCOUNT: account.name, STAMP_KEY: account.key, STAMP_SHARE: share, SCRATCH: scratch },
      ...{ STAMP_FILE_ENDPOINT: /FileEndpoint=([^;]+)/.exec(cluster.connectionString)?.[1] ?? "", TOOLS: programs },
      PATH: `${programs}${delimiter}${process.env.PATH}`,
    };
    const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    const script = join(import.meta.dirname, `files/${tool.name}.sh`);
    const { code, output } = await run("env", [...words, "bash", script], { timeoutMs: 300_000 });
    context.diagnostic(output.trim().split("\n")[0] ?? "");
    assert.equal(code, 0, output.slice(-8_000));
    assert.match(output, /all passed/);
  });
}
