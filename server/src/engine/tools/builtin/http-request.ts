import { builtinToolDefinitions, safeHttpMethods } from '#contract/tools/builtin-tools.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import type { Egress } from '../../../platform/egress/safe-fetch.ts'
import { readBody } from '../http/http-answer.ts'
import { sendToolRequest } from '../http/http-send.ts'
import { ToolError, type Tool } from '../tool.ts'

/** Response headers that are shown to the model. */
const headersShown = ['content-type', 'location', 'retry-after', 'last-modified', 'etag', 'link']

/**
 * Sends any request to a public address (decision D104): up to 3 redirects, 60 s, 5 MiB. The model writes the whole
 * request, so secrets of the project or the agent are never filled in.
 */
export function httpRequest(egress: Egress): Tool {
  return {
    name: 'http_request',
    ...builtinToolDefinitions.http_request,
    safety: ({ method = 'GET' }) => (safeHttpMethods.has(String(method)) ? 'safe' : 'unsafe'),
    async call(args, context) {
      const { method, url, headers, body, timeout_seconds } = readArguments(args)
      const isUnsafe = !safeHttpMethods.has(method)
      const answer = await sendToolRequest(egress, { method, url, headers, body, timeout_seconds, isUnsafe }, context)
      const shown = headersShown.flatMap((name) => {
        const value = answer.headers[name]
        return value === undefined ? [] : [`${name}: ${value.slice(0, 500)}`]
      })
      const head = [`HTTP ${answer.status}`, ...(answer.redirects > 0 ? [`url: ${answer.url}`] : []), ...shown]
      const { text, files } = await readBody(answer)
      // The status is part of the result; an error status is not a failure of the tool.
      return { content: [...head, '', text].join('\n'), network: answer.network, files }
    },
  }
}

/** Reads the arguments, which were validated against the schema. */
function readArguments(args: Record<string, unknown>) {
  const { method = 'GET', url, headers = {}, body, timeout_seconds } = args
  if (typeof url !== 'string' || typeof method !== 'string' || !isObject(headers))
    throw new ToolError('invalid_arguments', 'The arguments do not match the parameters of http_request.')
  const texts = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
  const isJson = body !== undefined && typeof body !== 'string'
  const hasType = Object.keys(texts).some((name) => name.toLowerCase() === 'content-type')
  if (isJson && !hasType) texts['content-type'] = 'application/json'
  return {
    method,
    url,
    headers: texts,
    body: isJson ? JSON.stringify(body) : body,
    timeout_seconds: typeof timeout_seconds === 'number' ? timeout_seconds : undefined,
  }
}
