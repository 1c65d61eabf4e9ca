/** `stamp faults add|list|remove`: rules at every front-end that make requests fail or wait on purpose (docs/guides/faults.md). */
import type { Outcome } from "@stamp/base";
import { type FaultRule, type FaultRuleState, FaultRules } from "@stamp/wire";
import { Argument, type Command } from "commander";
import { CommandError, exitCodes } from "../context.ts";
import { table } from "../print.ts";
import { inspect, make, type Transport, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";
import { number, oneOf, whole } from "../values.ts";

const callOptions = { timeoutMs: 5_000 };
/** Names that front-ends know; a test compares the two lists. */
export const faultNames = ["busy", "error-before", "error-after", "delay", "cut", "throttle", "stale-secondary"] as const;
const daySeconds = 86_400;

export type Rule = Omit<FaultRule, "$typeName" | "$unknown">;
export type AtFrontEnd = {
  readonly name: string;
  readonly client: Pick<ReturnType<typeof clientAt>, "addFaultRule" | "listFaultRules" | "removeFaultRules">;
};
const clientAt = (transport: Transport, address: string) => transport.client(address, FaultRules);

export function addFaults(program: Command): void {
  const faults = topLevel(program, "faults");
  make(faults, "add", "add a rule at every front-end, behind the rules that are there")
    .addArgument(new Argument("<fault>", faultNames.join(", ")).argParser(oneOf(faultNames)))
    .option("--name <name>", "name of the rule (default: rule-1, …)")
    .option("--account <account>", "only requests to this account")
    .option("--service <blob|queue|table>", "only requests to this service")
    .option("--operation <name>", "only this operation of the REST reference, e.g. PutBlob")
    .option("--header <text>", "only requests with this header: NAME, or NAME: VALUE")
    .option("--share <part>", "part of the requests that fit, spread evenly: 0.25 is each fourth one", number(0, 1))
    .option("--count <n>", "requests after which the rule does nothing any more", whole(1, 1_000_000_000))
    .option("--starts-after <s>", "seconds until the rule begins", number(0, daySeconds))
    .option("--ends-after <s>", "seconds until the rule ends", number(0, daySeconds))
    .option("--retry-after <s>", "busy, throttle: Retry-After of the answer, in seconds", whole(1, 3_600))
    .option("--delay-ms <ms>", "delay: time that a request waits", whole(1, 100_000))
    .option("--after-bytes <n>", "cut: bytes of the answer's body that are sent; 0: no answer", whole(0, Number.MAX_SAFE_INTEGER))
    .option("--per-second <n>", "throttle: requests in a second that are let through", whole(1, 1_000_000))
    .option("--behind <s>", "stale-secondary: seconds by which the secondary is behind", number(0, daySeconds))
    .addHelpText(
      "after",
      `
Examples:
  stamp faults add busy --operation PutBlob --count 3 --retry-after 2
  stamp faults add cut --service blob --operation GetBlob --after-bytes 65536 --share 0.1
  stamp faults add delay --delay-ms 500 --header 'x-ms-client-request-id: 17' --ends-after 60`,
    )
    .action(async (fault: string, options: AddOptions, command: Command) => {
      const id = await inspect(command, (_inspector, transport, _lockService, { processes }) =>
        addEverywhere(frontEndsOf(processes, transport), ruleOf(fault, options)),
      );
      tell(command, { id }, () => `added: ${id}\nsee it: ./stamp faults list   remove it: ./stamp faults remove ${id}`);
    });
  make(faults, "list", "rules of each front-end, and how many requests they have made fail or wait").action(
    async (_options, command: Command) => {
      const found = await inspect(command, (_inspector, transport, _lockService, { processes }) =>
        listEverywhere(frontEndsOf(processes, transport)),
      );
      tell(command, found, listText);
    },
  );
  make(faults, "remove", "remove a rule at every front-end")
    .argument("[name]", "name of the rule")
    .option("--all", "all rules")
    .action(async (name: string | undefined, options: { readonly all?: boolean }, command: Command) => {
      if ((name === undefined) === (options.all !== true)) throw new CommandError("name a rule, or give --all", exitCodes.usage);
      const removed = await inspect(command, (_inspector, transport, _lockService, { processes }) =>
        removeEverywhere(frontEndsOf(processes, transport), name ?? ""),
      );
      if (removed === 0 && name !== undefined) throw new CommandError(`there is no fault rule ${name}; there are: ./stamp faults list`);
      tell(command, { removed }, () => `removed: ${name ?? removed}`);
    });
}

interface AddOptions extends Partial<Readonly<Record<"account" | "service" | "operation" | "header" | "share" | "count", string>>> {
  readonly name?: string;
  readonly startsAfter?: string;
  readonly endsAfter?: string;
  readonly retryAfter?: string;
  readonly delayMs?: string;
  readonly afterBytes?: string;
  readonly perSecond?: string;
  readonly behind?: string;
}

export function ruleOf(fault: string, options: AddOptions): Rule {
  const counted = (text: string | undefined, times = 1): number | undefined =>
    text === undefined ? undefined : Math.round(Number(text) * times);
  const { name = "", account = "", service = "", operation = "", header = "", share, afterBytes } = options;
  const numbers = {
    share: share === undefined ? undefined : Number(share),
    count: counted(options.count),
    startsAfterMs: counted(options.startsAfter, 1_000),
    endsAfterMs: counted(options.endsAfter, 1_000),
    retryAfterSeconds: counted(options.retryAfter),
    delayMs: counted(options.delayMs),
    afterBytes: afterBytes === undefined ? undefined : BigInt(afterBytes),
    perSecond: counted(options.perSecond),
    behindMs: counted(options.behind, 1_000),
  };
  const given = Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined)) as Partial<Rule>;
  return { id: name, fault, account, service, operation, header, ...given };
}

/**
 * Adds the rule at every front-end by one name; at none if one refuses it. The name is made here: a front-end that has started anew would make
 * one that others have.
 */
export async function addEverywhere(frontEnds: readonly AtFrontEnd[], rule: Rule): Promise<string> {
  const named = rule.id === "" ? { ...rule, id: await freeName(frontEnds) } : rule;
  const { id } = named;
  const added: AtFrontEnd[] = [];
  for (const each of frontEnds) {
    const answer = await each.client.addFaultRule({ rule: named }, callOptions);
    // An answer that was lost may be one of a rule that is there now.
    if (answer.ok || answer.failure.applied !== "no") added.push(each);
    if (answer.ok) continue;
    await Promise.all(added.map(({ client }) => client.removeFaultRules({ id }, callOptions)));
    answered(each.name, answer);
  }
  return id;
}

/** Returns the rules of each front-end. */
export const listEverywhere = (frontEnds: readonly AtFrontEnd[]): Promise<{ frontEnd: string; rules: readonly FaultRuleState[] }[]> =>
  Promise.all(
    frontEnds.map(async ({ name, client }) => ({
      frontEnd: name,
      rules: answered(name, await client.listFaultRules({}, callOptions)).rules,
    })),
  );

/** Removes a rule at every front-end; `id` is empty for all rules. Returns how many were removed at the one that had most. */
export async function removeEverywhere(frontEnds: readonly AtFrontEnd[], id: string): Promise<number> {
  const asked = frontEnds.map(async ({ name, client }) => answered(name, await client.removeFaultRules({ id }, callOptions)));
  return Math.max(...(await Promise.all(asked)).map((answer) => answer.removed));
}

async function freeName(frontEnds: readonly AtFrontEnd[]): Promise<string> {
  const lists = frontEnds.map(async ({ name, client }) => answered(name, await client.listFaultRules({}, callOptions)).rules);
  const taken = new Set((await Promise.all(lists)).flat().map(({ rule }) => rule?.id));
  for (let number = 1; ; number++) if (!taken.has(`rule-${number}`)) return `rule-${number}`;
}

export function frontEndsOf(
  processes: readonly { readonly role: string; readonly name: string; readonly grpc: string }[],
  transport: Transport,
) {
  const found = processes.filter(({ role }) => role === "front-end").map(({ name, grpc }) => ({ name, client: clientAt(transport, grpc) }));
  if (found.length === 0) throw new CommandError("no front-end of this stamp is known: ./stamp status");
  return found;
}

function answered<T>(frontEnd: string, answer: Outcome<T>): T {
  if (answer.ok) return answer.value;
  const isOlder = answer.failure.code === "unimplemented";
  throw new CommandError(`${frontEnd}: ${isOlder ? "it is of a release without fault rules: upgrade it first" : answer.failure.message}`);
}

/** Returns conditions and numbers of a rule in the words of the command line. */
export function ruleText(rule: Rule): string {
  const { account, service, operation, header, share, count, startsAfterMs, endsAfterMs, retryAfterSeconds } = rule;
  const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1_000);
  const words: Readonly<Record<string, string | number | bigint | undefined>> = {
    account,
    service,
    operation,
    header: header === "" ? "" : JSON.stringify(header),
    share,
    count,
    "starts-after": seconds(startsAfterMs),
    "ends-after": seconds(endsAfterMs),
    "retry-after": retryAfterSeconds,
    "delay-ms": rule.delayMs,
    "after-bytes": rule.afterBytes,
    "per-second": rule.perSecond,
    behind: seconds(rule.behindMs),
  };
  return Object.entries(words)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([word, value]) => `--${word} ${value}`)
    .join(" ");
}

export function listText(found: readonly { readonly frontEnd: string; readonly rules: readonly FaultRuleState[] }[]): string {
  const rows = found.flatMap(({ frontEnd, rules }) =>
    rules.map(({ rule, hits, over }) => [
      rule?.id ?? "",
      frontEnd,
      rule?.fault ?? "",
      hits,
      over ? "over" : "on",
      rule === undefined ? "" : ruleText(rule),
    ]),
  );
  return rows.length === 0 ? "there are no fault rules" : table(["RULE", "FRONT-END", "FAULT", "HITS", "STATE", "WHICH REQUESTS"], rows);
}
