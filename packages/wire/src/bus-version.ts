/** Version of the hello on plain connections between processes (docs/formats/bus.md). Another one ends the connection. */
export const busVersion = 2;
