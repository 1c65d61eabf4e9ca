/** `stamp secret`: the secret that the processes of a stamp prove to each other; who knows which one, and its rotation without a stop. */
import { type ClusterConfig, ownTransport, secretFilesOf } from "@stamp/cluster";
import {
  addNextSecret,
  dropNextSecret,
  dropPreviousSecret,
  geoPeerSecretOf,
  inWords,
  locationSecretOf,
  type RotationState,
  rotationState,
  type SecretFiles,
  secretsOf,
  useNextSecret,
} from "@stamp/ports-node";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { counted } from "../health/counted.ts";
import { gather } from "../health/gather.ts";
import { table, toJson } from "../print.ts";
import { withProgress } from "../progress.ts";
import { say, sayRaw } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";
import { type ProcessSecret, rotateSecret } from "./rotation.ts";

const dayMs = 24 * 3_600_000;
const askEveryMs = 300;

export function addSecret(program: Command): void {
  const command = topLevel(program, "secret");
  const show = command.command("show").description("which secret is in use, how old it is, and which ones each process accepts");
  withConfig(show.option("--json", "for tools"), ["dataDir", "clusterSecretFile"]).action(async (_options, command: Command) => {
    const config = configOf(command);
    const files = secretFilesOf(config);
    const [state, processes] = [stateIn(files), await processesOf(config)];
    const made = processes.flatMap(({ madeMs }) => (madeMs === undefined ? [] : [madeMs]));
    const madeAt = made.length === 0 ? null : new Date(Math.min(...made)).toISOString();
    if (command.opts<{ json?: boolean }>().json === true) sayRaw(toJson({ file: files.current, madeAt, ...state, processes }));
    else say(showText(files, state, made, processes));
  });
  const peer = command
    .command("geo-peer")
    .description("print the secret with which one other stamp proves itself at the geo door, and nowhere else; it changes with a rotation")
    .requiredOption("--for <stamp>", "name of the other stamp at the location service")
    .option("--json", "for tools")
    .addHelpText("after", "\nExample, at south-1:\n  stamp secret geo-peer --for north-1 > for-north-1/south-1");
  withConfig(peer, ["dataDir", "clusterSecretFile"]).action((_options, command: Command) =>
    printDerived(command, (secret) => geoPeerSecretOf(secret, command.opts<{ for: string }>().for)),
  );
  const location = command
    .command("location")
    .description("print the secret with which the location service proves itself at this stamp; it changes with a rotation")
    .option("--json", "for tools")
    .addHelpText("after", "\nExample, at south-1:\n  stamp secret location > for-the-location-service/south-1");
  withConfig(location, ["dataDir", "clusterSecretFile"]).action((_options, command: Command) => printDerived(command, locationSecretOf));
  const rotate = command
    .command("rotate")
    .description("replace the secret while the stamp serves; run it again to go on with a rotation that was left")
    .option("--timeout <s>", "longest wait for all processes before each step, in seconds", whole(1, 99_999), "60")
    .option("--json", "for tools")
    .addHelpText("after", "\nExample:\n  stamp secret rotate --timeout 120");
  withConfig(rotate, ["dataDir", "clusterSecretFile"]).action(async (_options, command: Command) => {
    const { timeout, json } = command.opts<{ timeout: string; json?: boolean }>();
    const config = configOf(command);
    const files = secretFilesOf(config);
    const about = {
      what: "looking at the processes",
      afterwards: "The stamp serves with the secrets that it has; run the command again to go on.",
    };
    const rotated = await withProgress(about, (tell) =>
      rotateSecret(
        {
          ...stepsIn(files),
          processes: () => processesOf(config),
          pause: () => new Promise((resolve) => setTimeout(resolve, askEveryMs)),
          nowMs: () => performance.now(),
          tell,
        },
        Number(timeout) * 1_000,
      ),
    );
    if (json === true) sayRaw(toJson({ file: files.current, ...rotated }));
    else
      say(`secret ${rotated.id} is in use; the one before opens nothing any more (steps: ${rotated.steps.join(", ")})
file    ${files.current}
Tokens that were made with the one before (stamp token --internal) have ended: make new ones.`);
  });
}

function printDerived(command: Command, derive: (secret: string) => string): void {
  const shown = inCommand(() => {
    const [secret] = secretsOf({ clusterSecretFile: secretFilesOf(configOf(command)).current });
    return secret === undefined ? undefined : derive(secret);
  });
  if (shown === undefined) throw new CommandError("this stamp has no secret: its processes ask for none", exitCodes.usage);
  if (command.opts<{ json?: boolean }>().json === true) sayRaw(toJson({ secret: shown }));
  else sayRaw(shown);
}

function stepsIn(files: SecretFiles) {
  const step = (work: (files: SecretFiles) => void) => (): void => inCommand(() => work(files));
  return {
    state: () => stateIn(files),
    add: step(addNextSecret),
    use: step(useNextSecret),
    dropPrevious: step(dropPreviousSecret),
    dropNext: step(dropNextSecret),
  };
}

const stateIn = (files: SecretFiles): RotationState => inCommand(() => rotationState(files));

function inCommand<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CommandError(inWords(error));
  }
}

type Told = ProcessSecret & { readonly madeMs: number | undefined };

async function processesOf(config: ClusterConfig): Promise<Told[]> {
  const transport = ownTransport(config);
  const { processes } = await gather(config, transport, { view: false, nowMs: () => 0 }).finally(() => transport.close());
  return processes.map(({ name, pid, answer, silence, state }) => ({
    name,
    state: answer !== undefined ? "answers" : pid === null && state !== "not answering" ? "down" : "silent",
    ids: answer?.secret?.ids ?? [],
    madeMs: answer?.secret?.madeMs,
    problem: answer === undefined ? silence : (answer.secret?.problem ?? ""),
  }));
}

function showText(files: SecretFiles, state: RotationState, made: readonly number[], processes: readonly Told[]): string {
  const age = made.length === 0 ? "" : `, ${counted(Math.floor((Date.now() - Math.min(...made)) / dayMs), "day")} old`;
  const step = state.next !== undefined ? "added, not used yet" : state.previous !== undefined ? "in use, the one before is accepted" : "";
  return [
    `secret  ${state.current} (${files.current})${age}`,
    ...(step === "" ? [] : [`rotation  ${step}: go on with ./stamp secret rotate`]),
    "",
    table(
      ["PROCESS", "USES", "ACCEPTS TOO", "PROBLEM"],
      processes.map(({ name, ids, problem, state }) => [
        name,
        ids[0] ?? (state === "answers" ? "none" : "-"),
        ids.slice(1).join(" ") || "-",
        problem || "-",
      ]),
    ),
  ].join("\n");
}
