/** Settings of an account that an operator changes in the page. Pure. */
import type { AccountDetails } from "./data-model.ts";

const names = ["versioning", "publicAccess", "containerDays"] as const;

/** Returns those that differ from what was shown: the others may have been set by somebody else since, and stay. */
export const changedSettings = (shown: AccountDetails, wanted: AccountDetails): Partial<Pick<AccountDetails, (typeof names)[number]>> =>
  Object.fromEntries(names.filter((name) => wanted[name] !== shown[name]).map((name) => [name, wanted[name]]));
