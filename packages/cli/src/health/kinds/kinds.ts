/**
 * Every kind of finding: what it is called, how bad it is, what it means, and which command helps. The findings
 * themselves, the guide (docs/guides/health.md) and the rules for alerts are all made from these lists.
 */
import type { FindingKind, KindsOf, Severity } from "./kind.ts";
import { diskKinds } from "./kinds-of-disks.ts";
import { extentKinds } from "./kinds-of-extents.ts";
import { processKinds } from "./kinds-of-processes.ts";
import { rangeKinds } from "./kinds-of-ranges.ts";
import { setUpKinds } from "./kinds-of-set-up.ts";

export const findingAreas = {
  "Processes and managers": processKinds,
  "Extent nodes and disks": diskKinds,
  "Extents and replicas": extentKinds,
  "Ranges and requests": rangeKinds,
  "Configuration and files": setUpKinds,
} as const;

export type Code =
  | keyof typeof processKinds
  | keyof typeof diskKinds
  | keyof typeof extentKinds
  | keyof typeof rangeKinds
  | keyof typeof setUpKinds;

export const kinds: KindsOf<Code> = { ...processKinds, ...diskKinds, ...extentKinds, ...rangeKinds, ...setUpKinds };

/** One thing that a person should know of the stamp. */
export interface Finding {
  readonly code: Code;
  readonly severity: Severity;
  readonly stops: boolean;
  /** Process, node, range or file of the finding; empty: it is about all. */
  readonly subject: string;
  /** Observation, with numbers. */
  readonly cause: string;
  /** Command that helps against the finding. */
  readonly help: string;
}

/** `number` takes the place of N in the help; without it N stays for a person to choose. */
export function finding(code: Code, subject: string, cause: string, number?: number): Finding {
  const { severity, stops = false, help }: FindingKind = kinds[code];
  const numbered = number === undefined ? help : help.replaceAll(/\bN\b/g, String(number));
  return { code, severity, stops, subject, cause, help: numbered.replaceAll("SUBJECT", subject) };
}
