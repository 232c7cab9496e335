import { isObject } from '#contract/merge-patch.ts'
import type { Egress } from '../../platform/safe-fetch.ts'
import { readableBody } from './http-answer.ts'
import { sendToolRequest } from './http-send.ts'
import { ToolError, type Tool } from './tool.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const safeMethods = new Set(['GET', 'HEAD'])
/** Headers of an answer that are worth a model's attention. */
const headersShown = ['content-type', 'location', 'retry-after', 'last-modified', 'etag', 'link']

/**
 * Sends any request to a public address (decision D104): up to 3 redirects, 60 s, 5 MiB. The model writes all of it, so
 * nothing of the project's or agent's secrets is ever put in.
 */
export function httpRequest(egress: Egress): Tool {
  return {
    name: 'http_request',
    description:
      'Sends an HTTP request to a public address and gives the status, some headers and the body of the answer. Redirects are followed.',
    parameters: {
      type: 'object',
      properties: {
        method: { type: 'string', enum: methods, description: 'GET where nothing is said.' },
        url: { type: 'string', minLength: 1, maxLength: 8192, description: 'An absolute http or https URL.' },
        headers: {
          type: 'object',
          additionalProperties: { type: 'string', maxLength: 8192 },
          maxProperties: 64,
          description: 'Request headers by name.',
        },
        body: {
          type: ['string', 'object', 'array'],
          description: 'The body: text is sent as it is, anything else as JSON.',
        },
        timeout_seconds: { type: 'number', minimum: 1, maximum: 60, description: '60 where nothing is said.' },
      },
      required: ['url'],
      additionalProperties: false,
    },
    safety: ({ method = 'GET' }) => (safeMethods.has(String(method)) ? 'safe' : 'unsafe'),
    async call(args, context) {
      const { method, url, headers, body, timeout_seconds } = readArguments(args)
      const isUnsafe = !safeMethods.has(method)
      const answer = await sendToolRequest(egress, { method, url, headers, body, timeout_seconds, isUnsafe }, context)
      const shown = headersShown.flatMap((name) => {
        const value = answer.headers[name]
        return value === undefined ? [] : [`${name}: ${value.slice(0, 500)}`]
      })
      const head = [`HTTP ${answer.status}`, ...(answer.redirects > 0 ? [`url: ${answer.url}`] : []), ...shown]
      const text = await readableBody(answer)
      // A status is what was asked for: it is told, and no failure of the tool.
      return { content: [...head, '', text].join('\n'), network: answer.network }
    },
  }
}

/** The arguments as their schema has them; whoever calls has checked them against it. */
function readArguments(args: Record<string, unknown>) {
  const { method = 'GET', url, headers = {}, body, timeout_seconds } = args
  if (typeof url !== 'string' || typeof method !== 'string' || !isObject(headers))
    throw new ToolError('invalid_arguments', 'The arguments are not those of http_request.')
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
