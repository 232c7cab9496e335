import { createServer, type IncomingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

/** A span as it was received, with its attributes as one object. */
export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  name: string
  kind: 'internal' | 'client' | undefined
  failed: boolean
  attributes: Record<string, unknown>
  resource: Record<string, unknown>
}

/** A receiver of OTLP/HTTP on a loopback port, as a collector would be. */
export interface OtlpReceiver {
  endpoint: string
  spans: ReceivedSpan[]
  /** Bodies as they came. */
  texts: string[]
  headers: IncomingHttpHeaders[]
  paths: (string | undefined)[]
  /** What is answered from now on; `hang` answers nothing. */
  status: number | 'hang'
  stop(): Promise<void>
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      receiver.paths.push(request.url)
      receiver.headers.push(request.headers)
      if (receiver.status === 'hang') return
      if (receiver.status === 200) {
        receiver.texts.push(text)
        receiver.spans.push(...spansOf(JSON.parse(text)))
      }
      response.writeHead(receiver.status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const receiver: OtlpReceiver = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    texts: [],
    headers: [],
    paths: [],
    status: 200,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return receiver
}

// JSON of a protocol that only these lines read.
function spansOf(body: any): ReceivedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    scopeSpans.flatMap(({ spans }: any) =>
      spans.map((span: any) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId || undefined,
        name: span.name,
        kind: ({ 1: 'internal', 3: 'client' } as const)[span.kind as 1 | 3],
        failed: span.status?.code === 2,
        attributes: attributesOf(span.attributes),
        resource: attributesOf(resource.attributes),
      })),
    ),
  )
}

function attributesOf(list: any[]): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, valueOf(value)]))
}

function valueOf(value: any): unknown {
  if ('arrayValue' in value) return value.arrayValue.values.map(valueOf)
  return 'intValue' in value ? Number(value.intValue) : Object.values(value)[0]
}
