import { invalid, Problem } from '#contract/core/problems.ts'
import type { TriggerSource } from '#contract/doors/trigger-sources.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { cleanText } from '../../platform/clean-text.ts'
import { readEmail } from './read-email.ts'
import type { Received } from './verify.ts'

/** Levels of nesting that a body may have: what is read of it recurs. */
const nestingMax = 64

/**
 * The body of a delivery that is known to be genuine: JSON, the fields of a form (with `payload` of it parsed where it is JSON, as
 * GitHub and Slack send it), an e-mail, or else text. Throws `invalid_json` and `validation_error`.
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

/** Walks without recursion: `JSON.parse` accepts more levels than anything that recurs. */
function isDeeper(value: unknown, max: number): boolean {
  const open = [{ value, depth: 0 }]
  for (let next = open.pop(); next; next = open.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue
    if (next.depth >= max) return true
    for (const member of Object.values(next.value)) open.push({ value: member, depth: next.depth + 1 })
  }
  return false
}
