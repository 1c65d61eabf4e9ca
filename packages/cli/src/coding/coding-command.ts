/** `stamp coding status|plan|pause|resume|decode|adopt|strays`: extents that are stored as fragments (docs/design/erasure-coding.md). */
import type { StampInspector } from "@stamp/cluster";
import type { CodingStatus, ExtentInfo, PlannedExtent } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError } from "../context.ts";
import { fragmentLines, repairOf } from "../nodes/node-commands.ts";
import { withProgress } from "../progress.ts";
import { inspect, make, tell } from "../running.ts";
import { warn } from "../say.ts";
import { extentTable } from "../status/status.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";
import { codingText, planText, workLines } from "./coding-text.ts";
import { addStrays } from "./strays-command.ts";

const pollMs = 500;
const pageExtents = 1_000;
/** Timeout for reading the fragments of a gibibyte on busy disks, in milliseconds. */
const adoptTimeoutMs = 600_000;
/** Time that the policy gets to look at all extents before --wait believes that nothing waits. */
const lookMs = 15_000;

export function addCoding(program: Command): void {
  const coding = topLevel(program, "coding").addHelpText(
    "after",
    `
Examples:
  stamp coding status --wait                        until no extent waits to be coded
  stamp coding plan --limit 20                      the first extents that are not coded, and why
  stamp coding pause --note "Ada: disks replaced"   nothing more is begun until: stamp coding resume
  stamp coding decode 17 --wait                     store extent 17 as replicas again
  stamp coding adopt 17                             take back fragments that restored metadata do not know

Which extents are coded: the setting erasureCoding (stamp config show).`,
  );
  make(coding, "status", "what is coded and saved, what waits, and why other extents are not coded")
    .option("--wait", "until no extent waits to be coded")
    .action(async (_options, command: Command) => {
      const wait = command.opts<{ wait?: boolean }>().wait === true;
      const told = await inspect(command, async (inspector) => {
        const status = await (wait ? untilCoded(inspector) : statusOf(inspector));
        return { ...status, repair: await repairOf(inspector) };
      });
      tell(command, told, ({ repair, ...status }) => codingText(status, fragmentLines(repair)));
    });
  make(coding, "plan", "sealed extents that are not coded, and why")
    .option("--after <id>", "those with a higher id", whole(0, Number.MAX_SAFE_INTEGER), "0")
    .option("--limit <number>", "at most so many", whole(1, 999_999_999), "1000")
    .action(async (_options, command: Command) => {
      const { after, limit } = command.opts<{ after: string; limit: string }>();
      const found = await inspect(command, (inspector) => planOf(inspector, BigInt(after), Number(limit)));
      tell(command, found, ({ extents, more }) => planText(extents, more));
    });
  make(coding, "pause", "begin to code no further extent; what was begun goes on, and lost fragments are made anew")
    .option("--note <text>", "who, why", "")
    .action(async (_options, command: Command) => {
      const { note } = command.opts<{ note: string }>();
      tell(command, await setPaused(command, true, note), (status) => codingText(status));
    });
  make(coding, "resume", "go on after a pause").action(async (_options, command: Command) => {
    tell(command, await setPaused(command, false, ""), (status) => codingText(status));
  });
  addDecode(coding);
  addAdopt(coding);
  addStrays(coding);
}

function addDecode(coding: Command): void {
  make(coding, "decode <extent>", "store a coded extent as replicas again")
    .option("--wait", "until it is replicated")
    .action(async (id: string, _options, command: Command) => {
      const extentId = BigInt(id);
      const wait = command.opts<{ wait?: boolean }>().wait === true;
      const decoded = await inspect(command, async (inspector) => {
        const begun = await inspector.change((manager, timeoutMs) => manager.replicateExtent({ extentId }, { timeoutMs }));
        const { profile, pause, afterSeconds } = await statusOf(inspector);
        if (profile !== "" && pause === undefined)
          warn(`stamp: the policy codes it again after ${afterSeconds} s; to keep its replicas: ./stamp coding pause`);
        return wait ? untilReplicated(inspector, begun, extentId) : begun;
      });
      tell(command, decoded, (one) => extentTable({ extents: [one] }));
    });
}

function addAdopt(coding: Command): void {
  make(coding, "adopt <extent>", "take fragments back that are newer than the extent's record, as after older metadata were restored")
    .addHelpText(
      "after",
      `
Only an extent that can't be read as its record says takes fragments back, and only if enough of them are found and decode to the recorded
checksum. All of them are read for it. Fragments that are missing are made again afterwards.

Example:
  stamp coding adopt 17                             stamp coding status names the extents`,
    )
    .action(async (id: string, _options, command: Command) => {
      const request = { extentId: BigInt(id) };
      const about = {
        what: `the fragments of extent ${id} are read`,
        afterwards: `The fragments are read to their end, and then adopted or left as they are. See which: ./stamp extent show ${id}`,
      };
      const adopted = await withProgress(about, () =>
        inspect(command, (inspector) =>
          inspector.change((manager, timeoutMs) => manager.adoptFragments(request, { timeoutMs }), adoptTimeoutMs),
        ),
      );
      const count = adopted.intactFragments;
      tell(
        command,
        adopted,
        (one) => `the fragments of extent ${id} were adopted, ${count} are intact\n${extentTable({ extents: [one] })}`,
      );
    });
}

export const statusOf = (inspector: StampInspector): Promise<CodingStatus> =>
  inspector.ask((manager, timeoutMs) => manager.getCodingStatus({}, { timeoutMs }));

const setPaused = (command: Command, paused: boolean, note: string): Promise<CodingStatus> =>
  inspect(command, (inspector) => inspector.change((manager, timeoutMs) => manager.setCodingPaused({ paused, note }, { timeoutMs })));

async function planOf(
  inspector: StampInspector,
  after: bigint,
  limit: number,
): Promise<{ readonly extents: readonly PlannedExtent[]; readonly more: boolean }> {
  const extents: PlannedExtent[] = [];
  for (let from = after; ; ) {
    const page = await inspector.ask((manager, timeoutMs) =>
      manager.listCodingPlan({ afterExtentId: from, limit: pageExtents }, { timeoutMs }),
    );
    extents.push(...page.extents);
    if (extents.length > limit) return { extents: extents.slice(0, limit), more: true };
    if (!page.more) return { extents, more: false };
    from = page.lastExtentId;
  }
}

/** Prints the progress until the extent is coded. Fails if that would never end. */
function untilCoded(inspector: StampInspector): Promise<CodingStatus> {
  const about = { what: "extents are being coded", afterwards: "Extents go on being coded: ./stamp coding status" };
  return withProgress(about, async (tellProgress) => {
    const startMs = performance.now();
    for (;;) {
      const status = await statusOf(inspector);
      const { extentsWaiting, codingsRunning, pause, profile, whyNone } = status;
      if (profile === "") throw new CommandError(`no extent is coded: ${whyNone}`);
      if (pause !== undefined) throw new CommandError("coding is paused; go on: ./stamp coding resume");
      if (extentsWaiting === 0n && codingsRunning === 0 && performance.now() - startMs >= lookMs) return status;
      tellProgress(workLines(status).join("; ") || "looking for extents to code");
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  });
}

function untilReplicated(inspector: StampInspector, begun: ExtentInfo, id: bigint): Promise<ExtentInfo> {
  const about = { what: `extent ${id} is being decoded`, afterwards: `The decoding goes on: ./stamp extent show ${id}` };
  return withProgress(about, async () => {
    for (let info: ExtentInfo | undefined = begun; ; info = await inspector.extent(id)) {
      if (info === undefined) throw new CommandError(`extent ${id} was dropped meanwhile`);
      if (info.coded === undefined) return info;
      if (info.attempt === "")
        throw new CommandError(
          `extent ${id} is coded still: the attempt was taken back, or the manager that it waited at leads no more; see its log, ask again`,
        );
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  });
}
