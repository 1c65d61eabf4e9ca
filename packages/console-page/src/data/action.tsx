/** Things that a person does: a button that opens a dialog, and the fields in it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Named } from "./data-model.ts";

interface ActionProps {
  readonly label: string;
  readonly title: string;
  /** Words of the button that does it. */
  readonly submit: string;
  /** Does it. The dialog stays with the reason if it fails. */
  readonly run: () => Promise<unknown>;
  /** Called before the dialog opens: the fields begin anew. */
  readonly onOpen?: () => void;
  /** Name of the button for screen readers, where many buttons have one label. */
  readonly name?: string;
  readonly children?: ComponentChildren;
  /** True if it can't be taken back. */
  readonly isFinal?: boolean;
}

export function Action({ label, title, submit, run, onOpen, name, children, isFinal = false }: ActionProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const open = (): void => {
    onOpen?.();
    setOpen(true);
  };
  return (
    <>
      <button type="button" onClick={open} aria-label={name}>
        {label}
      </button>
      {isOpen ? (
        <Dialog title={title} submit={submit} run={run} isFinal={isFinal} onClose={() => setOpen(false)}>
          {children}
        </Dialog>
      ) : null}
    </>
  );
}

interface DialogProps extends Pick<ActionProps, "title" | "submit" | "run" | "children" | "isFinal"> {
  readonly onClose: () => void;
}

function Dialog({ title, submit, run, children, isFinal, onClose }: DialogProps): JSX.Element {
  const [problem, setProblem] = useState("");
  const [isRunning, setRunning] = useState(false);
  const holder = useRef<HTMLDialogElement>(null);
  useEffect(() => holder.current?.showModal(), []);
  const doIt = (): void => {
    setProblem("");
    setRunning(true);
    run()
      .then(onClose, (error: unknown) => setProblem((error as Error).message))
      .finally(() => setRunning(false));
  };
  return (
    <dialog ref={holder} aria-label={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isRunning) doIt();
        }}
      >
        <h2>{title}</h2>
        {children}
        {problem === "" ? null : (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={isFinal ? "final" : "first"} aria-disabled={isRunning}>
            {submit}
          </button>
        </div>
      </form>
    </dialog>
  );
}

interface PairsProps {
  readonly pairs: readonly Named[];
  readonly onChange: (pairs: readonly Named[]) => void;
}

/** Names and values to write, take out and add. */
export function PairFields({ pairs, onChange }: PairsProps): JSX.Element {
  const put = (index: number, some: Partial<Named>): void =>
    onChange(pairs.map((each, at) => (at === index ? { ...each, ...some } : each)));
  return (
    <div class="fields">
      {pairs.map(({ name, value }, index) => (
        <div class="pair" key={index}>
          <input
            aria-label={`Name ${index + 1}`}
            value={name}
            required
            onInput={({ currentTarget }) => put(index, { name: currentTarget.value })}
          />
          <input
            aria-label={`Value ${index + 1}`}
            value={value}
            onInput={({ currentTarget }) => put(index, { value: currentTarget.value })}
          />
          <button
            type="button"
            aria-label={`Take out ${name || index + 1}`}
            onClick={() => onChange(pairs.filter((_, at) => at !== index))}
          >
            ×
          </button>
        </div>
      ))}
      <button type="button" onClick={() => onChange([...pairs, { name: "", value: "" }])}>
        Add one
      </button>
    </div>
  );
}
