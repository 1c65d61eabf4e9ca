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
  /** Called when the dialog has closed, also while `run` goes on. */
  readonly onClose?: () => void;
  /** Name of the button for screen readers, where many buttons have one label. */
  readonly name?: string;
  readonly children?: ComponentChildren;
  /** True if it can't be taken back. */
  readonly isFinal?: boolean;
}

export function Action({ label, title, submit, run, onOpen, onClose, name, children, isFinal = false }: ActionProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const open = (): void => {
    onOpen?.();
    setOpen(true);
  };
  const close = (): void => {
    onClose?.();
    setOpen(false);
  };
  return (
    <>
      <button type="button" onClick={open} aria-label={name}>
        {label}
      </button>
      {isOpen ? (
        <Dialog title={title} submit={submit} run={run} isFinal={isFinal} onClose={close}>
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

interface NamedFieldsProps<T extends Named> {
  readonly rows: readonly T[];
  readonly onChange: (rows: readonly T[]) => void;
  /** Begins the labels of the fields of names, for screen readers. */
  readonly what: string;
  /** Words of the button that adds a row, and the row that it adds. */
  readonly add: string;
  readonly blank: T;
  /** A field between name and value. */
  readonly between?: (row: T, number: number, put: (some: Partial<T>) => void) => JSX.Element;
}

/** Names and values to write, take out and add. */
export function NamedFields<T extends Named>({ rows, onChange, what, add, blank, between }: NamedFieldsProps<T>): JSX.Element {
  return (
    <div class="fields">
      {rows.map((row, index) => {
        const put = (some: Partial<T>): void => onChange(rows.with(index, { ...row, ...some }));
        return (
          <div class={between === undefined ? "pair" : "pair typed"} key={index}>
            <input
              aria-label={`${what} ${index + 1}`}
              value={row.name}
              required
              onInput={({ currentTarget }) => put({ name: currentTarget.value } as Partial<T>)}
            />
            {between?.(row, index + 1, put)}
            <input
              aria-label={`Value ${index + 1}`}
              value={row.value}
              onInput={({ currentTarget }) => put({ value: currentTarget.value } as Partial<T>)}
            />
            <button
              type="button"
              aria-label={`Take out ${row.name || index + 1}`}
              onClick={() => onChange(rows.filter((_, at) => at !== index))}
            >
              ×
            </button>
          </div>
        );
      })}
      <button type="button" onClick={() => onChange([...rows, blank])}>
        {add}
      </button>
    </div>
  );
}
