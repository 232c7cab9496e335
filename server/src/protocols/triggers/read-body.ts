import { invalid, Problem } from '#contract/core/problems.ts'
import type { TriggerSource } from '#contract/doors/trigger-sources.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { cleanText } from '../../platform/clean-text.ts'
import { readEmail } from './read-email.ts'
import type { Received } from './verify.ts'

/** Maximum nesting of a body, because recursive functions process it. */
const nestingMax = 64

/**
 * Parses the body of an authenticated delivery: JSON, form fields (with JSON in `payload` parsed, as GitHub and Slack
 * send it), an e-mail, or else text. Throws `invalid_json` and `validation_error`.
 */
export async function readBody(source: TriggerSource, { headers, body }: Received): Promise<unknown> {
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1)
  const isJson = /^application\/([\w.+-]+\+)?json$/i.test(type.trim())
  if (source === 'email' && !isJson) return readEmail(body)
  const text = cleanText(new TextDecoder().decode(body))
  if (/^application\/x-www-form-urlencoded$/i.test(type.trim())) return readForm(text)
  if (isJson) return parse(text)
  return parseIfJson(text) ?? text
}

function readForm(text: string): Record<string, unknown> {
  const fields: Record<string, unknown> = Object.fromEntries(new URLSearchParams(text))
  const payload = typeof fields['payload'] === 'string' ? parseIfJson(fields['payload']) : undefined
  return isObject(payload) ? payload : fields
}

function parse(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Problem('invalid_json', [{ field: 'body', message: 'not valid JSON', code: 'invalid_format' }], { cause })
  }
  if (isDeeper(value, nestingMax))
    throw invalid({
      field: 'body',
      message: `must not be nested deeper than ${nestingMax} levels`,
      code: 'out_of_range',
      max: nestingMax,
    })
  return value
}

function parseIfJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

/** Does not recurse, because `JSON.parse` accepts more levels than recursive code can process. */
function isDeeper(value: unknown, max: number): boolean {
  const open = [{ value, depth: 0 }]
  for (let next = open.pop(); next; next = open.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue
    if (next.depth >= max) return true
    for (const member of Object.values(next.value)) open.push({ value: member, depth: next.depth + 1 })
  }
  return false
}
