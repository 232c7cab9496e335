import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { FakeModelServer } from './fake-model-server.ts'

type Body = Record<string, unknown>

/** What a fake service answered: its error where it refused, its events where it did not. */
export interface JournalNotice {
  status: number
  error?: { type: string; message: string; param?: string | null; code?: string | null }
  events: Body[]
}

/** Sends a request by hand, as a client of no library would. */
export async function tell(
  server: FakeModelServer,
  path: 'chat/completions' | 'responses' | 'messages',
  body: Body,
  headers: Record<string, string> = { 'x-api-key': 'sk-fake', 'anthropic-version': '2023-06-01' },
): Promise<JournalNotice> {
  const response = await fetch(`${server.base_url}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await response.text()
  if (response.status !== 200) {
    const { error } = JSON.parse(text) as { error: NonNullable<JournalNotice['error']> }
    return { status: response.status, error, events: [] }
  }
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Body)
  return { status: 200, events }
}

/** A request, and what it is refused with. Without a message it must be taken. */
export interface Case {
  title: string
  /** Members over those of the good request; undefined takes one away. */
  body: Body
  message?: string | RegExp
  status?: number
  param?: string | null
  code?: string | null
}

/** Makes a test of each case: the good request with its changes, by one protocol. */
export function testCases(
  server: () => FakeModelServer,
  path: Parameters<typeof tell>[1],
  good: Body,
  cases: Case[],
): void {
  for (const { title, body, message, status = 400, param, code } of cases) {
    it(title, async () => {
      const received = await tell(server(), path, { ...good, ...body })
      if (message === undefined) return assert.equal(received.status, 200, received.error?.message)
      assert.equal(received.status, status, received.error?.message)
      if (typeof message === 'string') assert.equal(received.error?.message, message)
      else assert.match(received.error?.message ?? '', message)
      if (param !== undefined) assert.equal(received.error?.param, param)
      if (code !== undefined) assert.equal(received.error?.code, code)
      assert.equal(server().refused.at(-1)?.message, received.error?.message)
    })
  }
}
