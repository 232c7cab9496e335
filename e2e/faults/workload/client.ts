import type { Reply } from '../../../server/test/harness.ts'
import { checkAnswer } from '../../../server/test/history/check-answers.ts'
import type { History, Outcome } from '../../../server/test/history/history.ts'

/** How long a request without an answer is waited for. */
const request_ms = 12_000

/** The caller: a key of an organization, whose canary no other organization may ever see. */
export interface Caller {
  organization: string
  api_key: string
}

/** A request as it was, in milliseconds of `performance.now()`. */
export interface Sample {
  op: string
  url: string
  /** When its turn was, by the schedule: what waits for its turn has waited. */
  scheduled: number
  sent: number
  returned: number
  /** Undefined where there was no answer. */
  status: number | undefined
}

/** What all callers did, and what was wrong with single answers. */
export interface Record {
  history: History
  samples: Sample[]
  /** What `checkAnswer` found. */
  wrong: string[]
}

export interface Request {
  caller: Caller
  /** Where it is sent: an address, or undefined while no process is up. */
  url: string | undefined
  op: string
  /** What it is about, for the checkers. */
  key: string
  value?: unknown
  method: string
  path: string
  body?: unknown
  headers?: { [name: string]: string }
  scheduled: number
}

/** Makes a request, writes it down and looks at its answer. A lost connection or none in time is `unknown`. */
export async function makeRequest(
  { history, samples, wrong }: Record,
  canaries: { readonly [organization: string]: string },
  request: Request,
): Promise<{ outcome: Outcome; reply: Reply | undefined; operation: History['operations'][number] }> {
  const { caller, url, op, key, value = null, method, path, body, scheduled } = request
  const sent = performance.now()
  return history.record(op, key, value, async () => {
    if (!url) throw new Error('no process is up')
    let status: number | undefined
    try {
      const response = await fetch(url + path, {
        method,
        headers: {
          'x-api-key': caller.api_key,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...request.headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(request_ms),
      })
      const text = await response.text()
      status = response.status
      const { headers } = response
      wrong.push(
        ...checkAnswer({ caller: caller.organization, what: `${op} ${path}`, status, headers, text }, canaries),
      )
      // Of what callers ask for, nothing is wrong in itself.
      if ([400, 401, 403, 422, 429].includes(status) && !text.includes('PROJECT_NAME_TAKEN'))
        wrong.push(`${op} ${path} was answered ${status}: ${text}`)
      return { status, headers, body: text.startsWith('{') ? JSON.parse(text) : text }
    } finally {
      samples.push({ op, url, scheduled, sent, returned: performance.now(), status })
    }
  })
}
