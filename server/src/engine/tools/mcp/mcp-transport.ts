import type * as Library from '@modelcontextprotocol/client'
import type { Transport } from '@modelcontextprotocol/client'
import type { EgressFetch } from '../../../platform/egress/egress-fetch.ts'

/** Maximum number of resumed streams in a session. */
const resumptionsMax = 20

/** Streamable HTTP; broken streams are resumed, within bounds. */
export function httpTransport(
  { StreamableHTTPClientTransport }: typeof Library,
  url: URL,
  fetch: EgressFetch,
): Transport {
  let resumptions = 0
  const transport = new StreamableHTTPClientTransport(url, {
    fetch,
    reconnectionScheduler: (reconnect, delay_ms) => {
      if (++resumptions > resumptionsMax) throw new Error('the stream broke too often')
      const timer = setTimeout(reconnect, Math.min(Math.max(delay_ms, 100), 10_000))
      return () => clearTimeout(timer)
    },
  })
  // If a stream ends without a response, the library would wait for its timeout. This reports the end at once.
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.()
      if (!('method' in message) || !('id' in message) || message.id === undefined) return
      transport.onmessage?.({
        jsonrpc: '2.0',
        id: message.id,
        error: { code: unansweredCode, message: 'the connection ended before the answer' },
      })
    }
    return send(message, { ...options, onRequestStreamEnd })
  }
  return transport
}

/** Cadre's code for a missing response, from the range that JSON-RPC leaves to implementations. */
export const unansweredCode = -32_099

/** The older, deprecated transport, for servers that support nothing newer. */
export function sseTransport({ SSEClientTransport }: typeof Library, url: URL, fetch: EgressFetch): Transport {
  return new SSEClientTransport(url, { fetch, eventSourceInit: { fetch } })
}

/** The notifications in flight. */
export function rememberNotices(transport: Transport): Set<Promise<void>> {
  const notices = new Set<Promise<void>>()
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    const sent = send(message, options)
    if ('id' in message) return sent
    const notice = sent.catch(() => undefined).finally(() => notices.delete(notice))
    notices.add(notice)
    return sent
  }
  return notices
}
