/** A kind of finding, of which the files beside this one have lists. */
export const severities = ["critical", "warning", "note"] as const;
export type Severity = (typeof severities)[number];

/** A rule of Prometheus that fires for the same reason. */
export interface Alert {
  readonly expr: string;
  /** How long the expression must hold, e.g. `2m`. */
  readonly lasts: string;
  /** Help of the alert, if no label names the process that `help` of the kind calls SUBJECT. */
  readonly help?: string;
}

export interface FindingKind {
  readonly severity: Severity;
  /** True if requests are refused or wait because of the finding. */
  readonly stops?: boolean;
  /** Meaning for the guide: a whole sentence, or several. */
  readonly means: string;
  /**
   * The command that helps, or what a person does. `SUBJECT` stands for what was found, `N` for a number, `DATA` for
   * the data folder.
   */
  readonly help: string;
  readonly alert?: Alert;
}

export type KindsOf<Code extends string> = Readonly<Record<Code, FindingKind>>;
