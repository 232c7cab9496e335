import type { ToolDefinition } from '#contract/tools/tools.ts'
import { toolAnswer } from './http-answer.ts'
import { sendToolRequest } from './http-send.ts'
import type { Opening } from '../opened.ts'
import { ToolError, type Tool } from '../tool.ts'
import type { ToolRow } from '../tool-rows.ts'
import { addToQuery, fillUrl, parseUrlTemplate } from './url-template.ts'

/** A tool of kind `http`: one request to an address that the project chose. */
export function httpTool(row: ToolRow, { egress, fill }: Opening): Tool {
  // The definition was validated when the tool was registered.
  const { method, url, headers = {}, timeout_seconds } = row.definition as unknown as ToolDefinition<'http'>
  const safety = row.safety ?? (method === 'GET' ? 'safe' : 'unsafe')
  return {
    name: row.name,
    description: row.description,
    parameters: row.parameters ?? { type: 'object', properties: {} },
    safety,
    async call(args, context) {
      const request = makeRequest({ method, url, headers }, args, fill)
      const answer = await sendToolRequest(
        egress,
        { ...request, timeout_seconds, isUnsafe: safety === 'unsafe' },
        context,
      )
      return toolAnswer(answer)
    },
  }
}

function makeRequest(
  {
    method,
    url: template,
    headers,
  }: Pick<ToolDefinition<'http'>, 'method' | 'url'> & { headers: Record<string, string> },
  args: Record<string, unknown>,
  fill: Opening['fill'],
): { method: string; url: string; headers: Record<string, string>; body?: string } {
  const parsed = parseUrlTemplate(template)
  if (typeof parsed === 'string') throw new ToolError('invalid_tool', `The url of this tool is invalid: it ${parsed}.`)
  const url = fillUrl(parsed, args, (piece, encode) => fill(piece, parsed.origin, encode))
  const filled = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value, parsed.origin)]))
  const rest = Object.fromEntries(Object.entries(args).filter(([name]) => !parsed.names.includes(name)))
  if (method === 'GET' || method === 'DELETE') {
    addToQuery(url, rest)
    return { method, url: url.href, headers: filled }
  }
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  return {
    method,
    url: url.href,
    headers: hasType ? filled : { ...filled, 'content-type': 'application/json' },
    body: JSON.stringify(rest),
  }
}
