import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { APIError, BadRequestError, NotFoundError } from '#sdk/errors.ts'
import type { Cadre } from '#sdk/client.ts'
import { verifyWebhook } from '#sdk/webhooks.ts'
import type { Context } from '../context.ts'
import { deferred } from './deferred.ts'
import { CommandFailure, Interrupted } from '../failure.ts'
import { onSignal } from '../interrupt.ts'
import { newWebhookSecret } from '../operations/fields.ts'
import { OwnRecord, removeLeftBehind } from './listening-records.ts'
import { plain } from '../output/plain.ts'

/** Maximum size of a delivery. */
const body_bytes_max = 1024 * 1024
/** Timeout of the program, equal to that of the service. */
const forward_ms = 15_000
/** Headers that are not forwarded, because they belong to the connection or are set again. */
const ownHeaders = ['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding']

type Subscriptions = Parameters<Cadre['webhooks']['create']>[0]['events']

interface Listening {
  forwardTo: string
  events: string[]
  port: number
  publicUrl: string | undefined
}

/** Signals that end the command: Ctrl-C, a supervisor, a closed terminal. */
const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Registers a webhook for this process, forwards its requests, and deletes it at SIGINT, SIGTERM or SIGHUP. First it deletes
 * webhooks of killed commands. The service retries failed deliveries, so its restart loses none.
 */
export async function listen(context: Context, { forwardTo, events, port, publicUrl }: Listening): Promise<void> {
  const { out } = context
  const client = context.client()
  const secret = newWebhookSecret()
  const path = `/${randomBytes(12).toString('hex')}`
  // Imported on demand, because it also loads Node's HTTP client, which would slow down every command.
  const { createServer } = await import('node:http')
  const server = createServer((request, response) => {
    void take(request, response).catch((error: unknown) => {
      out.note(`cadre: ${plain(error instanceof Error ? error.message : String(error))}`)
      if (!response.headersSent) response.writeHead(500).end()
      else response.destroy()
    })
  })

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request)
    const isOurs = request.method === 'POST' && (publicUrl !== undefined || request.url === path)
    const event = isOurs && body ? await verifyWebhook(body, request.headers, secret).catch(() => undefined) : undefined
    // Without a valid signature it is not a request of the service.
    if (!event || !body) return void response.writeHead(404).end()
    const began = performance.now()
    const answer = await forward(forwardTo, request, body)
    const took_ms = Math.round(performance.now() - began)
    const { status } = answer
    if (out.options.json) out.event({ ...event, webhook_id: request.headers['webhook-id'], status, took_ms })
    else
      out.line(
        `${out.dim(event.timestamp)} ${event.event} ${String(request.headers['webhook-id'])} -> ${status} (${took_ms} ms)${answer.reason}`,
      )
    response.writeHead(status).end()
  }

  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const stopped = deferred<void>()
  const removals = endings.map((signal) => onSignal(signal, () => stopped.resolve()))
  const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  const url = publicUrl ?? own
  let record: OwnRecord | undefined
  let webhook_id: string | undefined
  try {
    for (const left of await removeLeftBehind(context.env, context.base_url, client))
      out.note(`Deleted the webhook ${left} of a killed command.`)
    record = new OwnRecord(context.env, context.base_url, url)
    const made = await client.webhooks.create({ url, events: events as Subscriptions, secret })
    webhook_id = made.id
    record.made(webhook_id)
    out.note(`${made.id} forwards ${events.join(', ')} to ${forwardTo} until Ctrl-C. Deliveries are signed with`)
    out.note(`  ${secret}`)
    await stopped.promise
    throw new Interrupted()
  } catch (error) {
    // The service refused to create the webhook.
    if (webhook_id === undefined && error instanceof APIError && error.status < 500) record?.remove()
    if (error instanceof BadRequestError && error.issues.some(({ field }) => field === 'url'))
      throw new CommandFailure(
        `The service does not send to ${url}: ${error.message}`,
        publicUrl === undefined ? 'start the service with CADRE_EGRESS_ALLOW=loopback, or use --public-url' : undefined,
      )
    throw error
  } finally {
    // A second Ctrl-C ends the process at once; the next command then deletes the webhook.
    for (const remove of removals) remove()
    server.close()
    server.closeAllConnections()
    if (webhook_id !== undefined) {
      const isDeleted = await client.webhooks.delete(webhook_id).then(() => true, isGone)
      if (isDeleted) record?.remove()
      else out.note(`${webhook_id} could not be deleted. The next \`cadre webhooks listen\` tries again.`)
    }
  }
}

/** Forwards a delivery. A program that does not answer is reported as 502, which the service retries. */
async function forward(
  address: string,
  request: IncomingMessage,
  body: Buffer<ArrayBuffer>,
): Promise<{ status: number; reason: string }> {
  const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' && !ownHeaders.includes(name) ? [[name, value]] : [],
  )
  try {
    const signal = AbortSignal.timeout(forward_ms)
    const response = await fetch(address, { method: 'POST', headers, body, redirect: 'manual', signal })
    await response.body?.cancel()
    return { status: response.status, reason: '' }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    return { status: 502, reason: `: ${plain(cause instanceof Error ? cause.message : String(cause))}` }
  }
}

/** Reads a body; undefined if it is too large. */
async function bodyOf(request: IncomingMessage): Promise<Buffer<ArrayBuffer> | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((bytes += chunk.length) > body_bytes_max) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function isGone(error: unknown): boolean {
  return error instanceof NotFoundError
}
