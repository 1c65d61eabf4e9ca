/** Starts the process of a drill, which goes on without the console: it has a group of its own, so that Ctrl-C in the terminal does not reach it. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { DrillProcess } from "./drill-desk.ts";

/** Characters of standard error that are kept: the last ones. */
const errorMax = 4_000;

/** `main`: file of the command line. `place`: options that name the stamp. */
export function beginDrill(main: string, place: readonly string[], drill: string): DrillProcess {
  const args = [main, "drill", "run", drill, "--attach", "--events", ...place];
  const child = spawn(process.execPath, args, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let words = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    words = `${words}${text}`.slice(-errorMax);
  });
  const failure = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`the drill can't be started: ${error.message}`));
    child.once("close", () => resolve(words.trim()));
  });
  child.unref();
  return { lines: createInterface({ input: child.stdout }), failure };
}
