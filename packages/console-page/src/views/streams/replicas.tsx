/** The nodes that hold an extent. */
import type { JSX } from "preact";
import type { ExtentRow } from "../../model.ts";
import { to } from "../../store.ts";

/** The primary first; of a coded extent the fragments by index, behind the name of the code. */
export const Replicas = ({ extent: { nodes, coding } }: { readonly extent: ExtentRow }): JSX.Element => (
  <>
    {coding === "" ? null : <small>{coding} </small>}
    {nodes.map((node, index) => (
      <a key={`${index} ${node}`} class={coding === "" && index === 0 ? "chip primary" : "chip"} href={to("processes", node)}>
        {node}
      </a>
    ))}
  </>
);
