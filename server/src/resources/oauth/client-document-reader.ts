import type { Context } from '../../context.ts'
import { ClientDocumentError, fetchClientDocument, isDocumentAddress } from './client-documents.ts'
import { isKnownClient, keepClientDocument } from './client-documents.queries.ts'

/** Maximum number of concurrent reads; further authorizations are refused for now. */
const readsMax = 20

/**
 * Reads the metadata document of an app if the `client_id` is its URL and the document is unknown or stale. Returns
 * why the app is not accepted; undefined if it is, or if the `client_id` is not a URL. Concurrent requests for one
 * app share a read. It runs before the authorization server, so that none of its transactions waits for another host.
 */
export function clientDocumentReader({ sql, egress, log }: Context): (url: string) => Promise<string | undefined> {
  const reads = new Map<string, Promise<string | undefined>>()
  return async (url) => {
    const client_id = new URLSearchParams(url.split('?', 2)[1] ?? '').get('client_id') ?? ''
    if (!isDocumentAddress(client_id) || (await isKnownClient(sql, client_id))) return undefined
    const running = reads.get(client_id)
    if (running) return running
    if (reads.size >= readsMax) return 'too many client metadata documents are being read; try again in a few seconds'
    const reading = read(client_id).finally(() => reads.delete(client_id))
    reads.set(client_id, reading)
    return reading
  }

  async function read(client_id: string): Promise<string | undefined> {
    try {
      await keepClientDocument(sql, client_id, await fetchClientDocument(egress, client_id))
      return undefined
    } catch (error) {
      if (!(error instanceof ClientDocumentError)) throw error
      log.info(
        { client_id, reason: error.message },
        'client metadata document refused; the authorization was not started',
      )
      return error.message
    }
  }
}
