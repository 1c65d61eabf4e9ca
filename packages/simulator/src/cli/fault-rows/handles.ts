/** Handles of files, beside requests by REST (docs/design/files.md). */
import type { FaultRow } from "./fault-row.ts";

const tests = ["packages/objects/src/handles/handles.test.ts", "tests/files/handles.test.ts"];

/** Reason why no seed notices; behind it stands the name of the rule in the model. */
const noGateway = "no workload opens files yet. Model handles.pml has the rule";

export const handleRows: readonly FaultRow[] = [
  {
    fault: "a file is opened, or marked for deletion, while a request by REST that it excludes is on its way",
    closedBy:
      "handles are a row beside the file's node: each operation, and the mark of a removal or rename, looks at them in the decision that writes (`design/files.md`)",
    rules: [
      { name: "handlesCheckedWhereWritten", unnoticed: `${noGateway} as CHECK` },
      { name: "handlesMarkChecks", unnoticed: `${noGateway} as MARK` },
    ],
    tests,
    faults: [],
  },
  {
    fault: "a gateway dies, or sleeps beyond its session, with files open",
    closedBy:
      "its handles count until the lock service has recorded the end of its lease; whoever meets one then closes it (`design/files.md`)",
    rules: [{ name: "handlesEndRecorded", unnoticed: `${noGateway} as RECORDED` }],
    tests,
    faults: [],
  },
  {
    fault: "a file that is marked for deletion is closed by one client while another has it open, or is opened before it is removed",
    closedBy: "the last handle that is closed removes the file; from then on nobody opens it or takes the mark back (`design/files.md`)",
    rules: [
      { name: "handlesLastRemoves", unnoticed: `${noGateway} as LAST` },
      { name: "handlesDoomedIsFinal", unnoticed: `${noGateway} as FINAL` },
    ],
    tests,
    faults: [],
  },
];
