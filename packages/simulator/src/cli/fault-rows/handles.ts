/** Handles of files, beside requests by REST (docs/design/files.md). */
import type { FaultRow } from "./fault-row.ts";

const tests = ["packages/objects/src/handles/handles.test.ts", "tests/files/handles.test.ts"];

export const handleRows: readonly FaultRow[] = [
  {
    fault: "a file is opened, or marked for deletion, while a request by REST that it excludes is on its way",
    closedBy:
      "handles are a row beside the file's node: each operation, and the mark of a removal or rename, looks at them in the decision that writes (`design/files.md`)",
    rules: [
      { name: "handlesCheckedWhereWritten", workload: "handles", why: "REST writes a file that somebody has open and shares with nobody" },
      { name: "handlesMarkChecks", workload: "handles", why: "REST deletes a file that somebody has open and shares with nobody" },
    ],
    tests,
    faults: [],
  },
  {
    fault: "a gateway dies, or sleeps beyond its session, with files open",
    closedBy:
      "its handles count until the lock service has recorded the end of its lease; whoever meets one then closes it (`design/files.md`)",
    rules: [{ name: "handlesEndRecorded", workload: "handles", why: "a gateway that holds its session loses its handle" }],
    tests,
    faults: [],
  },
  {
    fault: "a file that is marked for deletion is closed by one client while another has it open, or is opened before it is removed",
    closedBy: "the last handle that is closed removes the file; from then on nobody opens it or takes the mark back (`design/files.md`)",
    rules: [
      { name: "handlesLastRemoves", workload: "handles", why: "a file goes while another gateway has it open" },
      {
        name: "handlesDoomedIsFinal",
        unnoticed:
          "the name goes one call after the last close: 6 seeds of handles had no open in between. Model handles.pml has the rule as FINAL",
      },
    ],
    tests,
    faults: [],
  },
];
