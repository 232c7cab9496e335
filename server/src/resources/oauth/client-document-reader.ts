import type { Context } from '../../context.ts'
import { ClientDocumentError, fetchClientDocument, isDocumentAddress } from './client-documents.ts'
import { isKnownClient, keepClientDocument } from './client-documents.queries.ts'

/** Documents that are read at a time: more are asked to come back. */
const readsMax = 20

/**
 * Reads the metadata document of an authorization's app, where its `client_id` is the address of one that is not known or is to be
 * read again. Gives why the app is not accepted, undefined where it may be or where this is not how it is known. Requests of one app
 * share a read. It happens here alone, before the authorization server begins: no transaction of it waits for another host.
 */
export function clientDocumentReader({ sql, egress, log }: Context): (url: string) => Promise<string | undefined> {
  const reads = new Map<string, Promise<string | undefined>>()
  return async (url) => {
    const client_id = new URLSearchParams(url.split('?', 2)[1] ?? '').get('client_id') ?? ''
    if (!isDocumentAddress(client_id) || (await isKnownClient(sql, client_id))) return undefined
    const running = reads.get(client_id)
    if (running) return running
    if (reads.size >= readsMax) return 'too many metadata documents are being read; try again in a few seconds'
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
        'metadata document of an app refused; its authorization was not begun',
      )
      return error.message
    }
  }
}
