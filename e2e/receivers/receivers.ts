import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { verify } from '../../server/test/fakes/webhook-receiver.ts'
import { makeCertificate } from '../../server/test/fakes/certificate.ts'
import { behaviourOf, secretOf, type BehaviourName } from './behaviours.ts'

/** A request as a receiver got it. */
export interface Receipt {
  /** With its query. */
  path: string
  headers: IncomingHttpHeaders
  event_id: string
  body: string
  /** Its signature is that of the webhook of its path, by the reference library. */
  isGenuine: boolean
  /** When it had come, in milliseconds since 1970. */
  at: number
  /** What it is answered; null where it is not. */
  status: number | null
}

/** Receivers in a separate process, as good or bad as their paths say (see `behaviours`). */
export interface Receivers {
  /**
   * The address of one. `refuses` has a port without a listener, `untrusted` a self-signed certificate, `mute` no TLS
   * although its address says so, and `nowhere` an unknown name.
   */
  url(path: `/${BehaviourName}${string}` | '/refuses' | '/untrusted' | '/mute' | '/nowhere'): string
  /** Everything that came, the first one first. */
  receipts: readonly Receipt[]
  /** Connections to a server that must not be reached. */
  canary(): number
  /** Resolves as soon as `isTrue` is, which is asked whenever something came; rejects with what `missing` says. */
  until(isTrue: () => boolean, timeout_ms: number, missing?: () => string): Promise<void>
  close(): Promise<void>
}

interface Ports {
  port: number
  tls: number
  canary: number
  closed: number
}
type Message = { ports: Ports } | { receipts: Receipt[] } | { canary: number }

const self = new URL(import.meta.url)

export async function startReceivers(): Promise<Receivers> {
  const child = fork(self, [], {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const receipts: Receipt[] = []
  let canary = 0
  let heard: (() => void)[] = []
  const ports = await new Promise<Ports>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the receivers ended with ${code}`)))
    child.on('message', (message: Message) => {
      if ('ports' in message) resolve(message.ports)
      else if ('canary' in message) canary = message.canary
      else receipts.push(...message.receipts)
      const listeners = heard
      heard = []
      for (const tell of listeners) tell()
    })
  })
  const special: Record<string, string> = {
    '/refuses': `http://127.0.0.1:${ports.closed}/`,
    '/untrusted': `https://127.0.0.1:${ports.tls}/`,
    '/mute': `https://127.0.0.1:${ports.port}/`,
    '/nowhere': 'https://receiver.invalid/',
  }
  return {
    receipts,
    canary: () => canary,
    url: (path) =>
      special[path] ??
      `http://127.0.0.1:${ports.port}${path}${path.startsWith('/redirects') ? `?to=${encodeURIComponent(`http://127.0.0.1:${ports.canary}/`)}` : ''}`,
    async until(isTrue, timeout_ms, missing = () => 'it did not come true') {
      const end = performance.now() + timeout_ms
      while (!isTrue()) {
        const left_ms = end - performance.now()
        if (left_ms <= 0) throw new Error(`${missing()} in ${timeout_ms} ms`)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left_ms)
          heard.push(() => (clearTimeout(timer), resolve()))
        })
      }
    },
    close: () => end(child),
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** The program of the process: serves, and tells its parent what came, many at a time. */
async function main(): Promise<void> {
  const tell = (message: Message): void => void process.send?.(message)
  let untold: Receipt[] = []
  const attempts = new Map<string, number>()
  const listener: RequestListener = (request, response) => {
    response.on('error', () => {})
    read(request).then(
      (body) => {
        const { url: path = '/', headers } = request
        const event_id = String(headers['webhook-id'])
        const attempt = (attempts.get(`${path} ${event_id}`) ?? 0) + 1
        attempts.set(`${path} ${event_id}`, attempt)
        const at = Date.now()
        const status = behaviourOf(path)(response, { path, event_id, attempt })
        if (untold.push({ path, headers, event_id, body, isGenuine: isGenuine(path, headers, body), at, status }) > 1)
          return
        setTimeout(() => {
          tell({ receipts: untold })
          untold = []
        }, 5)
      },
      () => response.destroy(),
    )
  }
  let led = 0
  const canary = createServer((_request, response) => response.end('led here'))
  canary.on('connection', () => tell({ canary: ++led }))
  const closed = createServer()
  const servers = [createServer(listener), createTlsServer(makeCertificate('receiver.test'), listener), canary, closed]
  const [port, tls, canaryPort, closedPort] = await Promise.all(servers.map(listen))
  closed.close()
  // They must not outlive the test that started them.
  process.on('disconnect', () => process.exit(1))
  tell({ ports: { port: port!, tls: tls!, canary: canaryPort!, closed: closedPort! } })
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function isGenuine(path: string, headers: IncomingHttpHeaders, body: string): boolean {
  try {
    verify({ headers, body }, secretOf(path.split('?')[0]!))
    return true
  } catch {
    return false
  }
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1', 4096)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

if (process.argv[1] === self.pathname) await main()
