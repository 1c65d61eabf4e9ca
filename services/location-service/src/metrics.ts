/** Declares how `/metrics` tells the facts of a location service. */
import { counter, gauge, type Metrics } from "@stamp/base";

export const locationServiceMetrics: Metrics = {
  term: gauge("location_service_term", "Term of this leader."),
  stamps: gauge("location_service_stamps", "Stamps that are known."),
  stampsSilent: gauge("location_service_stamps_silent", "Stamps that did not answer the last time they were asked."),
  accounts: gauge("location_service_accounts", "Accounts that are pinned to a stamp."),
  operations: gauge("location_service_operations", "Accounts with an operation under way."),
  taken: gauge("location_service_accounts_taken", "Accounts of stamps that have the name of an account which is pinned elsewhere."),
  created: counter("location_service_accounts_created_total", "Accounts that were created in this term."),
};
