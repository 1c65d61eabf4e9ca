/** Fault rules of the front-ends: which there are, to add one that ends by itself, and to remove one. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../../data/action.tsx";
import type { DataSource } from "../../data/data-model.ts";
import { countText } from "../../format.ts";
import type { FaultRow, Source } from "../../model.ts";
import { useLoaded } from "../../pages.tsx";
import { Badge, Card, Empty, ScrollTable } from "../../ui.tsx";

interface FaultRulesProps {
  readonly source: Source;
  readonly data: DataSource;
  readonly mayChange: boolean;
}

export function FaultRules({ source, data, mayChange }: FaultRulesProps): JSX.Element {
  const [round, setRound] = useState(0);
  const { value: rules, problem } = useLoaded(source.faults, round);
  const reload = (): void => setRound((before) => before + 1);
  return (
    <Card
      title="Fault rules"
      wide
      aside={
        <div class="buttons">
          {mayChange ? <AddRule data={data} onAdded={reload} /> : null}
          <button type="button" onClick={reload}>
            Load again
          </button>
        </div>
      }
    >
      {problem === undefined ? null : (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      {rules === undefined ? null : rules.length === 0 ? (
        <Empty title="No fault rules">Requests are served as they come. A rule makes some of them fail or wait on purpose.</Empty>
      ) : (
        <Rules rules={rules} data={data} mayChange={mayChange} onRemoved={reload} />
      )}
    </Card>
  );
}

interface RulesProps {
  readonly rules: readonly FaultRow[];
  readonly data: DataSource;
  readonly mayChange: boolean;
  readonly onRemoved: () => void;
}

const Rules = ({ rules, data, mayChange, onRemoved }: RulesProps): JSX.Element => (
  <ScrollTable
    label="Fault rules"
    headings={["Rule", "Fault", "State", ["Requests hit", "number"], "Which requests", ...(mayChange ? ["Remove it"] : [])]}
  >
    {rules.map(({ name, fault, which, hits, isOver }) => (
      <tr key={name}>
        <th scope="row">{name}</th>
        <td>{fault}</td>
        <td>
          <Badge tone={isOver ? "calm" : "warn"}>{isOver ? "over" : "on"}</Badge>
        </td>
        <td class="number">{countText(hits)}</td>
        <td>
          <code>{which}</code>
        </td>
        {mayChange ? (
          <td>
            <Action
              label="Remove"
              name={`Remove ${name}`}
              title={`Remove the rule ${name}?`}
              submit="Remove"
              run={() => data.change("remove-fault", { rule: name }).then(onRemoved)}
            >
              <p>Every front-end serves again as if it had never been there.</p>
            </Action>
          </td>
        ) : null}
      </tr>
    ))}
  </ScrollTable>
);

interface Fault {
  readonly name: string;
  readonly about: string;
  /** Number that the fault needs: its field, label and beginning. */
  readonly number?: readonly [field: string, label: string, value: number];
}

const faults: readonly Fault[] = [
  { name: "busy", about: "503 ServerBusy with Retry-After", number: ["retryAfterSeconds", "Retry-After, in seconds", 1] },
  { name: "error-before", about: "500 InternalError; nothing was done" },
  { name: "error-after", about: "500 InternalError; the operation was done" },
  { name: "delay", about: "served after a time", number: ["delayMs", "Delay, in milliseconds", 500] },
  { name: "cut", about: "the connection ends in the answer's body", number: ["afterBytes", "Bytes of the body that are sent", 0] },
  { name: "throttle", about: "503 beyond a rate", number: ["perSecond", "Requests let through in a second", 10] },
  { name: "stale-secondary", about: "the secondary is behind", number: ["behindMs", "Behind, in milliseconds", 60_000] },
];

const blank = { account: "", service: "", operation: "", header: "" };
const endSeconds = 300;

function AddRule({ data, onAdded }: { readonly data: DataSource; readonly onAdded: () => void }): JSX.Element {
  const [fault, setFault] = useState<Fault>(faults[0] as Fault);
  const [number, setNumber] = useState(1);
  const [where, setWhere] = useState(blank);
  const [percent, setPercent] = useState(100);
  const [seconds, setSeconds] = useState(endSeconds);
  const choose = (name: string): void => {
    const chosen = faults.find((each) => each.name === name) ?? (faults[0] as Fault);
    setFault(chosen);
    setNumber(chosen.number?.[2] ?? 0);
  };
  const add = async (): Promise<void> => {
    const own = fault.number === undefined ? {} : { [fault.number[0]]: number };
    await data.change("add-fault", { fault: fault.name, ...where, ...own, percent, seconds });
    onAdded();
  };
  return (
    <Action
      label="Add a rule"
      title="Make requests fail or wait on purpose?"
      submit="Add"
      isFinal
      onOpen={() => {
        choose("busy");
        setWhere(blank);
        setPercent(100);
        setSeconds(endSeconds);
      }}
      run={add}
    >
      <p>Programs that use this stamp meet the fault. The rule ends by itself after its time, also if this page is closed.</p>
      <label>
        Fault{" "}
        <select value={fault.name} onChange={({ currentTarget }) => choose(currentTarget.value)}>
          {faults.map(({ name, about }) => (
            <option key={name} value={name}>
              {name}: {about}
            </option>
          ))}
        </select>
      </label>
      {fault.number === undefined ? null : <NumberField label={fault.number[1]} least={0} value={number} onValue={setNumber} />}
      <label>
        Only this account{" "}
        <input value={where.account} onInput={({ currentTarget }) => setWhere({ ...where, account: currentTarget.value })} />
      </label>
      <label>
        Only this service{" "}
        <select value={where.service} onChange={({ currentTarget }) => setWhere({ ...where, service: currentTarget.value })}>
          <option value="">any</option>
          <option value="blob">blob</option>
          <option value="queue">queue</option>
          <option value="table">table</option>
        </select>
      </label>
      <label>
        Only this operation, e.g. PutBlob{" "}
        <input value={where.operation} onInput={({ currentTarget }) => setWhere({ ...where, operation: currentTarget.value })} />
      </label>
      <label>
        Only requests with this header, NAME or NAME: VALUE{" "}
        <input value={where.header} onInput={({ currentTarget }) => setWhere({ ...where, header: currentTarget.value })} />
      </label>
      <NumberField label="Part of those requests, in percent" least={1} most={100} value={percent} onValue={setPercent} />
      <NumberField label="Ends after, in seconds" least={1} most={3_600} value={seconds} onValue={setSeconds} />
    </Action>
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly least: number;
  readonly most?: number;
  readonly value: number;
  readonly onValue: (value: number) => void;
}

const NumberField = ({ label, least, most, value, onValue }: NumberFieldProps): JSX.Element => (
  <label>
    {label}{" "}
    <input
      type="number"
      min={least}
      max={most}
      required
      value={value}
      onInput={({ currentTarget }) => onValue(currentTarget.valueAsNumber)}
    />
  </label>
);
