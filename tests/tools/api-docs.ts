/** Writes docs/api/*.md anew, by running the suites that show them (tests/tools/api-table.ts). */
import { spawnSync } from "node:child_process";
import { root } from "./commands.ts";

const { status } = spawnSync(process.execPath, ["tests/tools/test.ts", "scripted.test.ts"], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, STAMP_WRITE_API_DOCS: "1" },
});
process.exit(status ?? 1);
