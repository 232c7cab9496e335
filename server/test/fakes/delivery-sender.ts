import { createHmac } from 'node:crypto'
import type { Reply } from '../harness.ts'

/** A body as a sender writes it, and the headers with which it is posted. */
export interface Sent {
  body: string
  headers: Record<string, string>
}

/** Posts to the address of a trigger, with nothing but what is sent. */
export async function post(url: string, { body, headers }: Sent): Promise<Reply> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': 'a-sender/1.0', ...headers },
    body,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? '' : JSON.parse(text) }
}

/** What a sender signs by the form `{header: 'x-signature'}`: SHA-256 in hexadecimal digits. */
export function signed(secret: string, content: unknown, headers: Record<string, string> = {}): Sent {
  const body = typeof content === 'string' ? content : JSON.stringify(content)
  return { body, headers: { 'x-signature': createHmac('sha256', secret).update(body).digest('hex'), ...headers } }
}
