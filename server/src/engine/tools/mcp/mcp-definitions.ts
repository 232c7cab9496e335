import { createHash } from 'node:crypto'
import { canonicalJson } from '../call-hash.ts'
import { cleanText, cleanValue } from '../../../platform/clean-text.ts'
import { objectSchemaExcess } from '../schemas/schema-bounds.ts'

/** A tool as its server describes it, reduced to what a model sees. */
export interface McpToolDefinition {
  name: string
  description: string
  /** Its `inputSchema`. */
  parameters: Record<string, unknown>
  /** SHA-256, in hexadecimal, of the canonical JSON of name, description and inputSchema. */
  fingerprint: string
}

/** The differences between a server's tools and the pinned ones, by names without the row's name. */
export interface McpDrift {
  changed: string[]
  added: string[]
  removed: string[]
  /** Changed and added tools as the server describes them now, for approval; as many as fit. */
  definitions: { name: string; description: string; parameters: Record<string, unknown> }[]
  /** Hash of the server's current definitions: an approval names the version that a person read. */
  fingerprint: string
}

/** Maximum size of what is accepted from one server. */
export const mcpBounds = {
  tools: 500,
  /** Of the canonical JSON of all definitions together. */
  definitions_bytes: 1024 * 1024,
  pages: 50,
  /** Of the definitions in a drift, as JSON. */
  drift_bytes: 128 * 1024,
} as const

/** The names that the protocol recommends, so that `github/create_issue` is unambiguous. */
const toolName = /^[A-Za-z0-9_.-]{1,128}$/

/** A server's definitions exceed the bounds; the message says which. */
export class TooManyDefinitions extends Error {}

/**
 * Collects the pages of `tools/list`: usable definitions by name (the first of a name wins), and the names that are
 * left out, with the reason.
 * @throws TooManyDefinitions
 */
export class DefinitionList {
  readonly tools = new Map<string, McpToolDefinition>()
  readonly leftOut: { name: string; reason: string }[] = []
  #seen = 0
  #bytes = 0

  add(page: readonly { name: string; description?: string | undefined; inputSchema: Record<string, unknown> }[]): void {
    for (const { name, description = '', inputSchema } of page) {
      if (++this.#seen > mcpBounds.tools) {
        throw new TooManyDefinitions(`the server has more than ${mcpBounds.tools} tools`)
      }
      const fault = definitionError(name, inputSchema)
      if (fault) {
        this.leftOut.push({ name: cleanText(name).slice(0, 128), reason: fault })
        continue
      }
      // Cleaned like the database stores it, so that pinned and current definitions can be compared.
      const text = cleanText(description)
      const parameters = cleanValue(inputSchema) as Record<string, unknown>
      const canonical = canonicalJson({ name, description: text, inputSchema: parameters })
      this.#bytes += Buffer.byteLength(canonical)
      if (this.#bytes > mcpBounds.definitions_bytes) {
        throw new TooManyDefinitions(`the server's definitions are longer than ${mcpBounds.definitions_bytes} bytes`)
      }
      if (this.tools.has(name)) continue
      const fingerprint = createHash('sha256').update(canonical).digest('hex')
      this.tools.set(name, { name, description: text, parameters, fingerprint })
    }
  }
}

/** The differences between a server's current definitions and the pinned ones; undefined if there are none. */
export function driftOf(
  pinned: readonly { name: string; fingerprint: string }[],
  said: readonly McpToolDefinition[],
): McpDrift | undefined {
  const now = new Map(said.map((definition) => [definition.name, definition]))
  const before = new Map(pinned.map(({ name, fingerprint }) => [name, fingerprint]))
  const names = [...before.keys()].toSorted()
  const changed = names.filter((name) => now.has(name) && now.get(name)?.fingerprint !== before.get(name))
  const removed = names.filter((name) => !now.has(name))
  const added = [...now.keys()].filter((name) => !before.has(name)).toSorted()
  if (changed.length + added.length + removed.length === 0) return undefined
  let room = mcpBounds.drift_bytes
  const definitions = [...changed, ...added].flatMap((name) => {
    const { description = '', parameters = {} } = now.get(name) ?? {}
    const definition = { name, description, parameters }
    room -= Buffer.byteLength(JSON.stringify(definition))
    return room >= 0 ? [definition] : []
  })
  return { changed, added, removed, definitions, fingerprint: definitionsFingerprint(said) }
}

/** One fingerprint of all tools of a server, independent of their order. */
export function definitionsFingerprint(tools: readonly { name: string; fingerprint: string }[]): string {
  const lines = tools.map(({ name, fingerprint }) => `${name} ${fingerprint}`).toSorted()
  return createHash('sha256').update(lines.join('\n')).digest('hex')
}

function definitionError(name: string, schema: Record<string, unknown>): string | undefined {
  if (!toolName.test(name)) return 'its name is invalid for a tool'
  const excess = objectSchemaExcess(schema)
  if (excess) return `its schema ${excess}`
  return areHeadersSound(schema) ? undefined : 'its headers for arguments break the protocol'
}

/**
 * Arguments may also be sent as headers (`x-mcp-header`): strings, integers and booleans that are reached by
 * `properties` alone, each under a unique name. A client must leave out a tool with any other such argument (MCP
 * 2026-07-28).
 */
function areHeadersSound(schema: Record<string, unknown>): boolean {
  const names = new Set<string>()
  const isSound = (value: object): boolean => {
    const { 'x-mcp-header': header, type } = value as Record<string, unknown>
    if (typeof header !== 'string' || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header)) return false
    if (!['string', 'integer', 'boolean'].includes(String(type)) || names.has(header.toLowerCase())) return false
    names.add(header.toLowerCase())
    return true
  }
  const visit = (value: unknown, place: 'root' | 'properties' | 'property' | 'elsewhere'): boolean => {
    if (typeof value !== 'object' || value === null) return true
    if (place !== 'properties' && 'x-mcp-header' in value && (place !== 'property' || !isSound(value))) return false
    return Object.entries(value).every(([key, member]) => {
      if (place === 'properties') return visit(member, 'property')
      return visit(member, place !== 'elsewhere' && key === 'properties' ? 'properties' : 'elsewhere')
    })
  }
  return visit(schema, 'root')
}
