/** Findings about wall clocks. Processes of one machine have one clock: what is wrong with it is one finding. */
import { counted, seconds } from "../counted.ts";
import type { StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Finding, finding } from "../kinds/kinds.ts";

const setMaxMs = 1_000;
const apartMaxMs = 2_000;
/** Clocks that differ by less are taken for one: an answer tells the time of its sending. */
const sameMs = 1_000;

interface Clock {
  readonly name: string;
  readonly host: string;
  readonly setMs: number;
  readonly aheadMs: number;
}

export function findClocks({ processes }: StampFacts): Finding[] {
  const clocks = processes.flatMap(({ name, host = "", answer }): Clock[] =>
    answer === undefined ? [] : [{ name, host, setMs: answer.wallSetMs, aheadMs: answer.wallAheadMs ?? 0 }],
  );
  const apart = clocks.filter(({ aheadMs }) => Math.abs(aheadMs) > apartMaxMs);
  const set = clocks.filter((each) => Math.abs(each.setMs) > setMaxMs && !apart.includes(each));
  return [
    ...groupsOf(apart, ({ aheadMs }) => aheadMs).map((group) => {
      const [{ aheadMs, setMs }] = group;
      const wasSet = Math.abs(setMs) > setMaxMs ? `, and was set ${way(setMs, ["forward", "back"])} since they started` : "";
      return told("clock-apart", group, clocks.length, `is ${way(aheadMs, ["ahead", "behind"])}${wasSet}`);
    }),
    ...groupsOf(set, ({ setMs }) => setMs).map((group) =>
      told(
        "clock-set",
        group,
        clocks.length,
        `was set ${way(group[0].setMs, ["forward", "back"])} since ${group.length === 1 ? "it" : "they"} started`,
      ),
    ),
  ];
}

type Group = readonly [Clock, ...Clock[]];

/** Groups clocks of one host, or without hosts all of them, that differ by less than `sameMs` from the next one. */
function groupsOf(clocks: readonly Clock[], by: (clock: Clock) => number): Group[] {
  const groups: [Clock, ...Clock[]][] = [];
  const order = clocks.toSorted((one, other) => one.host.localeCompare(other.host) || by(one) - by(other));
  for (const clock of order) {
    const last = groups.at(-1)?.at(-1);
    if (last !== undefined && last.host === clock.host && by(clock) - by(last) < sameMs) groups.at(-1)?.push(clock);
    else groups.push([clock]);
  }
  return groups;
}

function told(code: "clock-apart" | "clock-set", group: Group, all: number, what: string): Finding {
  const [{ name, host }] = group;
  if (group.length === 1) return finding(code, name, `its clock ${what}`);
  const ours =
    code === "clock-apart" && group.length === all ? "; all processes agree, so it may be the clock of this machine that is wrong" : "";
  return finding(
    code,
    host,
    `the clock of ${counted(group.length, "process")} ${what}: ${fewNames(group.map((each) => each.name))}${ours}`,
  );
}

const way = (ms: number, [ahead, behind]: readonly [string, string]): string => `${seconds(Math.abs(ms))} ${ms > 0 ? ahead : behind}`;
