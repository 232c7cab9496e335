import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

/** A request as it came. */
export interface ReceivedRequest {
  path: string
  method: string
  headers: IncomingHttpHeaders
  body: string
  /** Of this process, in milliseconds. */
  at: number
}

/** What a receiver does with a request. */
export type Answer =
  | { status: number; headers?: Record<string, string | string[]>; body?: string | Buffer; delay_ms?: number }
  /** Keeps the connection and says nothing, until it is let go or closed. */
  | 'never'
  /** Says 200 and then a byte from time to time. */
  | 'drip'
  /** Says 200 and never stops sending. */
  | 'endless'
  /** Closes the connection without an answer. */
  | 'reset'

/** A receiver of webhooks on loopback: as good, slow or hostile as a test wants it to be, by path. */
export interface WebhookReceiver {
  /** The address of one hook. */
  url(path: string): string
  /** What it answers on a path; a list is used up one by one, the last for good. 200 where nothing is said. */
  answer(path: string, ...answers: Answer[]): void
  /** Answers what is kept waiting on a path by `never`. */
  letGo(path: string, status: number): void
  /** Requests on a path, the first one first; all where none is said. */
  requests(path?: string): ReceivedRequest[]
  /** The most requests that were under way on a path at the same time. */
  atOnce(path: string): number
  /** Resolves when so many requests have come. */
  received(path: string, count: number, timeout_ms?: number): Promise<ReceivedRequest[]>
  close(): Promise<void>
}

const drip_ms = 200

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const answers = new Map<string, Answer[]>()
  const all: ReceivedRequest[] = []
  const byPath = new Map<string, ReceivedRequest[]>()
  const waiting = new Map<string, Set<ServerResponse>>()
  const open = new Map<string, { now: number; max: number }>()
  let heard: (() => void)[] = []

  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    const count = open.get(path) ?? { now: 0, max: 0 }
    count.now += 1
    count.max = Math.max(count.max, count.now)
    open.set(path, count)
    response.once('close', () => (count.now -= 1))
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const { method = '', headers } = request
      const received = { path, method, headers, body: Buffer.concat(chunks).toString(), at: performance.now() }
      all.push(received)
      byPath.set(path, [...(byPath.get(path) ?? []), received])
      const listeners = heard
      heard = []
      for (const tell of listeners) tell()
      const script = answers.get(path) ?? []
      act(path, response, (script.length > 1 ? script.shift() : script[0]) ?? { status: 200 })
    })
  })
  const act = (path: string, response: ServerResponse, answer: Answer): void => {
    if (answer === 'reset') return void response.destroy()
    if (answer === 'never') {
      waiting.set(path, (waiting.get(path) ?? new Set()).add(response))
      return
    }
    if (answer === 'drip') return drip(response)
    if (answer === 'endless') return flood(response)
    const { status, headers = {}, body = '', delay_ms = 0 } = answer
    const send = (): void => void response.writeHead(status, headers).end(body)
    if (delay_ms === 0) send()
    else setTimeout(send, delay_ms)
  }
  server.listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  const { port } = server.address() as AddressInfo

  const requests = (path?: string): ReceivedRequest[] => (path === undefined ? all : (byPath.get(path) ?? []))
  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    answer: (path, ...list) => void answers.set(path, list),
    letGo(path, status) {
      for (const response of waiting.get(path) ?? []) response.writeHead(status).end()
      waiting.delete(path)
    },
    requests,
    atOnce: (path) => open.get(path)?.max ?? 0,
    async received(path, count, timeout_ms = 60_000) {
      const end = performance.now() + timeout_ms
      while (requests(path).length < count) {
        const left_ms = end - performance.now()
        if (left_ms <= 0) throw new Error(`${path} received ${requests(path).length} of ${count} requests in time`)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left_ms)
          heard.push(() => (clearTimeout(timer), resolve()))
        })
      }
      return requests(path)
    },
    async close() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** Checks a request as a receiver does, by the reference library; gives its body. Throws where it is not genuine. */
export function verify({ headers, body }: Pick<ReceivedRequest, 'headers' | 'body'>, secret: string): any {
  const webhook = secret.startsWith('whsec_')
    ? new Webhook(secret)
    : new Webhook(Buffer.from(secret), { format: 'raw' })
  return webhook.verify(body, headers as Record<string, string>)
}

function drip(response: ServerResponse): void {
  response.writeHead(200)
  const timer = setInterval(() => response.write('.'), drip_ms)
  response.once('close', () => clearInterval(timer))
}

function flood(response: ServerResponse): void {
  response.writeHead(200)
  const block = Buffer.alloc(64 * 1024, '.')
  const more = (): void => {
    while (!response.destroyed && response.write(block));
    response.once('drain', more)
  }
  more()
}
