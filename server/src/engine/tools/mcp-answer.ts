import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import { canonicalJson } from '../call-hash.ts'
import type { WireUse } from '../../platform/wire.ts'
import { toolOutputMax, type ToolAnswer } from './tool.ts'

/** Characters of a message that becomes an error's. */
const messageMax = 500

/** What a model reads of a call's result: texts as they are, data as JSON, everything else described in a line. */
export function mcpAnswer(result: CallToolResult, network: WireUse): ToolAnswer {
  const parts = result.content.map(readable)
  const data = result.structuredContent
  if (data !== undefined && !parts.some((part) => isSame(part, data))) parts.push(JSON.stringify(data))
  const content = parts.join('\n')
  if (result.isError !== true) return { content, network }
  const message = content.slice(0, messageMax) || 'The tool says that it failed.'
  return { content, error: { code: 'tool_error', message }, network }
}

function readable(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type} of ${bytesOf(block.data)} bytes, ${cut(block.mimeType)}: not shown]`
    case 'resource_link':
      return `[resource ${cut(block.name)}: ${cut(block.uri)}]`
    case 'resource':
      return 'text' in block.resource
        ? block.resource.text
        : `[resource ${cut(block.resource.uri)} of ${bytesOf(block.resource.blob)} bytes, ${cut(block.resource.mimeType ?? 'type unknown')}: not shown]`
  }
}

/** Servers say their data twice, once as a text for clients that read nothing else. */
function isSame(text: string, data: unknown): boolean {
  if (text.length > toolOutputMax || !/^\s*[[{"\d-]/.test(text)) return false
  try {
    return canonicalJson(JSON.parse(text)) === canonicalJson(data)
  } catch {
    // Not JSON, or deeper than the stack.
    return false
  }
}

function bytesOf(base64: string): number {
  return Math.floor((base64.replace(/(?<!=)=+$/, '').length * 3) / 4)
}

function cut(text: string): string {
  return text.slice(0, 200)
}
