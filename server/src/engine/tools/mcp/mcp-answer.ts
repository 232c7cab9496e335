import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import { isObject } from '#contract/core/merge-patch.ts'
import { canonicalJson } from '../call-hash.ts'
import type { UpstreamUse } from '../../../platform/egress/connect.ts'
import { toolOutputMax, type NewToolFile, type ToolAnswer } from '../tool.ts'

/** Maximum characters of an error's message. */
const messageMax = 500

/**
 * The result of a call for the model, each content once: texts unchanged, other parts as a line of description.
 * `structuredContent` becomes compact JSON, in place of the texts that mirror it, else after all of them.
 */
export function mcpAnswer(result: CallToolResult, network: UpstreamUse): ToolAnswer {
  const content = partsOf(result).join('\n')
  const given = result.content.flatMap(fileOf)
  const files = given.length > 0 ? { files: given } : {}
  if (result.isError !== true) return { content, network, ...files }
  const said = content.trim() === '' ? 'The tool failed without a message.' : content
  return { content: said, error: { code: 'tool_error', message: said.slice(0, messageMax) }, network, ...files }
}

function partsOf({ content, structuredContent: data }: CallToolResult): string[] {
  const texts = content.map(textOf)
  const parts = content.map((block, i) => texts[i] ?? describe(block))
  if (data === undefined || data === null || isCopy(data, content)) return parts
  const json = attempt(() => JSON.stringify(data)) ?? '[data that is nested too deeply to be shown]'
  const mirrors = mirrorsOf(data, texts)
  const [first] = mirrors
  if (first === undefined) return [...parts.filter((part) => part.trim() !== ''), json]
  return parts.flatMap((part, i) => (i === first ? [json] : mirrors.has(i) ? [] : [part]))
}

function textOf(block: ContentBlock): string | undefined {
  if (block.type === 'text') return block.text
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : undefined
}

/** A part that is not text, as a file. */
function fileOf(block: ContentBlock): NewToolFile[] {
  if (block.type === 'image' || block.type === 'audio') {
    const { data, mimeType: declared } = block
    return [
      { name: `${block.type}.${/^\w+\/([\w-]+)/.exec(declared)?.[1] ?? 'bin'}`, declared, content: bytesIn(data) },
    ]
  }
  if (block.type !== 'resource' || !('blob' in block.resource)) return []
  const { uri, mimeType: declared, blob } = block.resource
  return [{ name: uri.split(/[?#]/, 1)[0]!.split('/').at(-1) ?? '', declared, content: bytesIn(blob) }]
}

function bytesIn(base64: string): Buffer {
  return Buffer.from(base64, 'base64')
}

function describe(block: ContentBlock): string {
  switch (block.type) {
    case 'image':
    case 'audio':
      return `[${block.type} of ${bytesOf(block.data)} bytes, ${cut(block.mimeType)}: not shown]`
    case 'resource_link':
      return `[resource ${cut(block.name)}: ${cut(block.uri)}]`
    case 'resource': {
      const { uri, mimeType = 'type unknown' } = block.resource
      const bytes = 'blob' in block.resource ? bytesOf(block.resource.blob) : 0
      return `[resource ${cut(uri)} of ${bytes} bytes, ${cut(mimeType)}: not shown]`
    }
    case 'text':
      return block.text
  }
}

/**
 * The texts that mirror the data, for clients that read only texts: as JSON in any layout, with or without a wrapper
 * (FastMCP writes anything but an object as `{"result": …}`, and its text unchanged), or a text for each item of a list
 * (the SDK for Python). Such a text has nothing that the data lacks. The work is linear in the result.
 */
function mirrorsOf(data: unknown, texts: readonly (string | undefined)[]): ReadonlySet<number> {
  const inner = unwrapped(data)
  const whole = canonical(data)
  if (whole === undefined) return new Set()
  const forms = new Set([whole, `{"result":${whole}}`, inner === data ? whole : canonical(inner)])
  const read = texts.map((text) => (text === undefined ? undefined : canonicalText(text)))
  const found = [...texts.keys()].filter(
    (i) => texts[i] !== undefined && (texts[i] === inner || (read[i] !== undefined && forms.has(read[i]))),
  )
  if (found.length > 0 || !Array.isArray(inner)) return new Set(found)
  const all = [...texts.keys()].filter((i) => texts[i] !== undefined)
  // Nested lists are flattened, and null is left out.
  const items = (attempt(() => inner.flat(Infinity) as unknown[]) ?? []).filter((item) => item !== null)
  const isListed =
    items.length === all.length &&
    all.every((i, n) => texts[i] === items[n] || (read[i] !== undefined && read[i] === canonical(items[n])))
  return new Set(isListed ? all : [])
}

/** Whether the data is a copy of the parts, including images: FastMCP does this for a tool that returns parts. */
function isCopy(data: unknown, content: readonly ContentBlock[]): boolean {
  const inner = unwrapped(data)
  const copies: unknown[] = Array.isArray(inner) ? inner : [inner]
  return content.length === copies.length && content.every((block, i) => isSamePart(block, copies[i]))
}

function isSamePart(block: ContentBlock, copy: unknown): boolean {
  if (!isObject(copy) || copy.type !== block.type) return false
  switch (block.type) {
    case 'text':
      return copy.text === block.text
    case 'image':
    case 'audio':
      return copy.data === block.data
    case 'resource_link':
      return copy.uri === block.uri
    case 'resource':
      return isObject(copy.resource) && copy.resource.uri === block.resource.uri
  }
}

/** The only member of an object with one member, else the value. */
function unwrapped(data: unknown): unknown {
  if (!isObject(data)) return data
  const [inner, ...others] = Object.values(data)
  return inner === undefined || others.length > 0 ? data : inner
}

function canonicalText(text: string): string | undefined {
  if (text.length > toolOutputMax || !/^\s*(?:[[{"\d-]|(?:true|false|null)\s*$)/.test(text)) return undefined
  return attempt(() => canonicalJson(JSON.parse(text)))
}

function canonical(value: unknown): string | undefined {
  return attempt(() => canonicalJson(value))
}

/** Undefined for a value that is not JSON or too deeply nested. */
function attempt<Value>(make: () => Value): Value | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

function bytesOf(base64: string): number {
  return Math.floor((base64.replace(/(?<!=)=+$/, '').length * 3) / 4)
}

function cut(text: string): string {
  return text.slice(0, 200)
}
