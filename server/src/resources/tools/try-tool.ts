import { invalid } from '#contract/core/problems.ts'
import { toolTrialBounds, unnamedTool } from '#contract/tools/tool-trials.ts'
import type { Context } from '../../context.ts'
import { checkArguments } from '../../engine/tools/arguments.ts'
import { readBody } from '../../engine/tools/http/http-answer.ts'
import { kindOf } from '../../engine/tools/kinds.ts'
import type { Redaction } from '../../engine/tools/redaction.ts'
import { judgeValue } from '../../engine/tools/schemas/schema-judge.ts'
import { ToolError, type Tool } from '../../engine/tools/tool.ts'
import type { PinnedTool } from '../../engine/tools/tool-rows.ts'
import type { Egress, EgressAnswer, EgressRequest } from '../../platform/egress/safe-fetch.ts'
import { newId } from '../../platform/ids.ts'
import { openSecrets } from './find-definitions.ts'
import type { ToolDraft } from './tool-content.ts'

/** A trial call: the tool and its arguments. */
export interface Trial {
  draft: ToolDraft
  pinned: PinnedTool[] | null
  /** Which tool of a server or document. */
  tool: string | undefined
  args: Record<string, unknown>
  environment: Readonly<Record<string, string>> | undefined
}

/** Result of a trial call. */
export interface TrialResult {
  request: { method: string; url: string; headers: Record<string, string>; body: string | null } | null
  response: { status: number; headers: Record<string, string>; body: string } | null
  content: string | null
  error: { code: string; message: string } | null
  duration_ms: number
}

/**
 * Makes one real call as for an agent, and returns the request and the response without secrets. A failed call is a
 * result, not an error.
 */
export async function tryTool(
  context: Pick<Context, 'sql' | 'secrets' | 'egress' | 'log' | 'tokens'>,
  { org_id, project_id }: { org_id: string; project_id: number },
  { draft, pinned, tool: wanted, args, environment }: Trial,
): Promise<TrialResult> {
  const { sql, log } = context
  const signal = AbortSignal.timeout(toolTrialBounds.call_seconds * 1000)
  const { fill, redaction } = await openSecrets(context, project_id, draft, signal, environment)
  const wire = recorded(context.egress)
  const row = { ...draft, id: newId('tool'), project_id, pinned, status: 'active' as const, drift: null }
  const opened = kindOf(draft.kind).open(row, { sql, egress: wire.egress, log, fill })
  const started = performance.now()
  try {
    const tool = choose(opened.tools, draft, wanted)
    await judgeValue(tool.parameters, args, { org_id, project_id })
    const fault = checkArguments(tool, args)
    if (fault !== undefined) return { ...nothingSent, error: { code: 'invalid_arguments', message: fault } }
    const outcome = await call(tool, args, project_id, redaction, signal)
    const duration_ms = Math.round(performance.now() - started)
    return { ...outcome, ...(await exchangeOf(wire, draft, redaction)), duration_ms }
  } finally {
    await opened.close?.()
  }
}

const nothingSent: TrialResult = { request: null, response: null, content: null, error: null, duration_ms: 0 }

function choose(tools: readonly Tool[], { name, kind }: ToolDraft, wanted: string | undefined): Tool {
  const [first] = tools
  if (first && (wanted === undefined ? tools.length === 1 : kind === 'http')) return first
  const found = tools.find((tool) => tool.name === `${name || unnamedTool}/${wanted}`)
  if (found) return found
  const message =
    wanted === undefined
      ? 'is required: the definition has more than one tool'
      : `is not a tool of this ${kind} definition`
  throw invalid({ field: 'tool', message, code: wanted === undefined ? 'required' : 'invalid_choice' })
}

async function call(
  tool: Tool,
  args: Record<string, unknown>,
  project_id: number,
  redaction: Redaction,
  signal: AbortSignal,
): Promise<Pick<TrialResult, 'content' | 'error'>> {
  const [task_id, step_id, agent_id] = [newId('task'), newId('step'), newId('agent')]
  // Trial calls never run programs, so no turn is needed.
  const party = { org_id: '', project_id }
  const ids = { task_id, step_id, agent_id, idempotency_key: `${task_id}:0`, traceparent: undefined, party }
  try {
    const { content, error = null } = redaction.answer(await tool.call(args, { ...ids, project_id, signal }))
    return { content, error }
  } catch (error) {
    if (signal.aborted)
      return {
        content: null,
        error: { code: 'timed_out', message: `No response within ${toolTrialBounds.call_seconds} s.` },
      }
    if (!(error instanceof ToolError)) throw error
    const { code, message } = redaction.error(error)
    return { content: null, error: { code, message } }
  }
}

interface Wire {
  egress: Egress
  request: ({ url: string } & EgressRequest) | undefined
  answer: EgressAnswer | undefined
}

/** Wraps the egress and keeps the last request and its response. */
function recorded(egress: Egress): Wire {
  const wire: Wire = {
    request: undefined,
    answer: undefined,
    egress: {
      ...egress,
      async fetch(url, request) {
        wire.request = { ...request, url: String(url) }
        wire.answer = undefined
        wire.answer = await egress.fetch(url, request)
        return wire.answer
      },
    },
  }
  return wire
}

/** Headers with credentials or a session: their values are never shown. */
const secretHeader = /^(authorization|proxy-authorization|cookie|set-cookie|.*(api-?key|token|secret|password).*)$/i
const hidden = '[redacted]'

/** The request and the response, readable by people. A call of an MCP server takes many requests; none is shown. */
async function exchangeOf(
  { request, answer }: Wire,
  { kind, definition }: ToolDraft,
  redaction: Redaction,
): Promise<Pick<TrialResult, 'request' | 'response'>> {
  if (kind === 'mcp' || !request) return { request: null, response: null }
  const given = Object.entries((definition.headers ?? {}) as Record<string, string>)
  const templates = new Map(given.map(([name, template]) => [name.toLowerCase(), template]))
  const sent = Object.entries(request.headers ?? {}).map(([name, value]): [string, string] => {
    const template = templates.get(name.toLowerCase())
    // Hides the whole placeholder, because a short secret cannot be found in the value.
    if (template?.includes('${')) return [name, template.replaceAll(/\$\{[^}]*(?:\}|$)/g, hidden)]
    return [name, secretHeader.test(name) ? hidden : redaction.text(value)]
  })
  const { method = 'GET', url, body } = request
  return {
    request: {
      method,
      url: redaction.text(url),
      headers: Object.fromEntries(sent),
      body: typeof body === 'string' ? cut(redaction.text(body)) : null,
    },
    response: answer
      ? {
          status: answer.status,
          headers: Object.fromEntries(
            Object.entries(answer.headers).map(([name, value]) => [
              name,
              secretHeader.test(name) ? hidden : redaction.text(value),
            ]),
          ),
          body: cut(redaction.text((await readBody(answer)).text)),
        }
      : null,
  }
}

function cut(text: string): string {
  const { shown_characters } = toolTrialBounds
  return text.length <= shown_characters ? text : `${text.slice(0, shown_characters).toWellFormed()}…`
}
