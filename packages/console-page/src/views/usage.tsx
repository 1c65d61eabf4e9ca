/** Counts what the containers of an account hold when a person asks: the service keeps no sums. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { usageOfContainers } from "../data/count-usage.ts";
import type { DataSource, Usage } from "../data/data-model.ts";
import { bytesText, countText } from "../format.ts";
import { to } from "../store.ts";
import { Card, CommandLine } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";

interface UsageRow extends Usage {
  readonly container: string;
}

interface UsageProps {
  readonly data: DataSource;
  readonly account: string;
}

type Counting = { readonly rows: readonly UsageRow[]; readonly state: "no" | "runs" | "done"; readonly problem: string };

const columnsOf = (account: string): readonly Column<UsageRow>[] => [
  {
    title: "Container",
    width: "minmax(10rem, 3fr)",
    cell: ({ container }) => (
      <a href={to("data", account, "blobs", container)}>
        <bdi>{container}</bdi>
      </a>
    ),
  },
  { title: "Blobs", width: "minmax(5rem, 1fr)", cell: ({ blobs }) => countText(blobs), isNumber: true },
  { title: "Bytes", width: "minmax(5rem, 1fr)", cell: ({ bytes }) => bytesText(bytes), isNumber: true },
  { title: "Versions, snapshots, deleted", width: "minmax(5rem, 1fr)", cell: ({ kept }) => countText(kept), isNumber: true },
  { title: "Their bytes", width: "minmax(5rem, 1fr)", cell: ({ keptBytes }) => bytesText(keptBytes), isNumber: true },
];

export function UsageOfAccount({ data, account }: UsageProps): JSX.Element {
  const [{ rows, state, problem }, setCounting] = useState<Counting>({ rows: [], state: "no", problem: "" });
  const left = useRef(new AbortController());
  useEffect(() => () => left.current.abort(), []);
  const count = async (): Promise<void> => {
    setCounting({ rows: [], state: "runs", problem: "" });
    const { signal } = left.current;
    try {
      for await (const now of usageOfContainers(data, account, signal)) {
        if (signal.aborted) return;
        setCounting({ rows: now, state: "runs", problem: "" });
      }
      setCounting((counted) => ({ ...counted, state: "done" }));
    } catch (error) {
      setCounting((counted) => ({ ...counted, state: "no", problem: (error as Error).message }));
    }
  };
  const sum = (name: keyof Usage): number => rows.reduce((all, row) => all + row[name], 0);
  return (
    <Card title="Usage and limits" wide>
      <p>
        {state === "no"
          ? "The service keeps no sums: each entry is looked at, which takes a while for many blobs."
          : `${countText(sum("blobs"))} blobs, ${bytesText(sum("bytes"))}; ${countText(sum("kept"))} versions, snapshots and deleted blobs, ${bytesText(
              sum("keptBytes"),
            )}${state === "runs" ? ", and counting" : ""}. Copies on the nodes, rows and checksums come on top.`}
      </p>
      {problem === "" ? null : (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      <div class="buttons">
        <button type="button" aria-disabled={state === "runs"} onClick={() => state !== "runs" && void count()}>
          {state === "runs" ? "Counting…" : "Count what is stored"}
        </button>
      </div>
      {rows.length === 0 ? null : (
        <VirtualTable label="Usage by container" columns={columnsOf(account)} rows={rows} keyOf={(row) => row.container} />
      )}
      <CommandLine text={`./stamp account usage ${account}`} />
      <p>
        An account has no limit of its own: accounts take turns at front-ends and partition servers, and requests that wait for too long are
        refused with 503 (<code>docs/guides/overload.md</code>). Requests by account: <code>./stamp top</code>.
      </p>
    </Card>
  );
}
