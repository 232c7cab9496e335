import { isObject } from '#contract/core/merge-patch.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../platform/ids.ts'
import { ClientDocumentError, readClientMetadata } from './client-documents.ts'
import { keepClientDocument } from './client-documents.queries.ts'

/** Default name of an app. */
const unnamed = 'Unnamed app'

/**
 * Dynamic registration of an app (RFC 7591): public, with PKCE, without `admin`; each organization decides about it
 * as about apps with a metadata document. The response contains what was registered, which may be less than
 * requested.
 */
export async function registerApp(
  { sql }: Pick<Context, 'sql'>,
  body: Buffer | undefined,
): Promise<{ status: 201 | 400; body: Record<string, unknown> }> {
  try {
    const app = readClientMetadata(parsed(body), unnamed)
    const client_id = newId('client')
    await keepClientDocument(sql, client_id, { ...app, fresh_seconds: 0 })
    return {
      status: 201,
      body: {
        ...{ client_id, client_id_issued_at: Math.floor(Date.now() / 1000), client_name: app.name },
        ...{ redirect_uris: app.redirect_uris, scope: app.scopes.join(' '), token_endpoint_auth_method: 'none' },
        ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
        application_type: app.native ? 'native' : 'web',
      },
    }
  } catch (error) {
    if (!(error instanceof ClientDocumentError)) throw error
    return {
      status: 400,
      body: { error: error.code, error_description: `The app is not registered: ${error.message}.` },
    }
  }
}

function parsed(body: Buffer | undefined): Record<string, unknown> {
  let metadata: unknown
  try {
    metadata = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new ClientDocumentError('its metadata is not JSON')
  }
  if (!isObject(metadata)) throw new ClientDocumentError('its metadata is not a JSON object')
  return metadata
}
