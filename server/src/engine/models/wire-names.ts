import type { ModelRequest } from './model.ts'

/** Maps the names of tools to names that providers accept, and back. */
export interface WireNames {
  toWire(name: string): string
  fromWire(name: string): string
}

const lengthMax = 64

/**
 * Assigns every tool of a request a name that all providers accept: letters, digits, `_` and `-`, at most 64. Cadre's
 * names may also contain `.`, `:` and `/` (decision D50). Those become `_`, with a number appended if two names would
 * be equal. The same request always has the same names, and a valid name is unchanged.
 */
export function makeWireNames(
  { tools, messages }: Pick<ModelRequest, 'tools' | 'messages'>,
  ...more: (string | undefined)[]
): WireNames {
  const names = new Set([
    ...more.filter((name) => name !== undefined),
    ...tools.map(({ name }) => name),
    ...messages.flatMap(({ tool_calls = [], tool_name }) => [
      ...tool_calls.map(({ name }) => name),
      ...(tool_name ? [tool_name] : []),
    ]),
  ])
  const wires = new Map<string, string>()
  const names_by_wire = new Map<string, string>()
  const add = (name: string, wire: string): void => {
    wires.set(name, wire)
    names_by_wire.set(wire, name)
  }
  for (const name of names) if (name === plain(name)) add(name, name)
  for (const name of [...names].filter((other) => !wires.has(other)).sort()) {
    let wire = plain(name)
    for (let number = 2; names_by_wire.has(wire); number++) wire = `${plain(name).slice(0, lengthMax - 6)}_${number}`
    add(name, wire)
  }
  return { toWire: (name) => wires.get(name) ?? plain(name), fromWire: (wire) => names_by_wire.get(wire) ?? wire }
}

function plain(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, lengthMax) || '_'
}
