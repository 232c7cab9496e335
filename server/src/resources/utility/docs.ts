import { createHash } from 'node:crypto'
import type { OpenApiDocument } from '#contract/openapi/openapi-types.ts'
import { openApiDocument } from '#contract/openapi/openapi.ts'
import { documented } from '#contract/openapi/documented.ts'
import { version } from '../../version.ts'

let document: OpenApiDocument | undefined
let digest: string | undefined

/**
 * The OpenAPI document with the address of this service. The first call builds it from the contract, which takes about
 * 0.1 s; later calls reuse it.
 */
export function publishedDocument(public_url: string): OpenApiDocument {
  document ??= openApiDocument(documented, { version, server_url: public_url })
  return { ...document, servers: [{ url: public_url, description: 'This service.' }] }
}

/** Names the document of this address: another version of the service has another tag. */
export function publishedTag(public_url: string): string {
  digest ??= digestOf(JSON.stringify({ ...publishedDocument(public_url), servers: [] }))
  return `W/"${digestOf(`${digest} ${public_url}`)}"`
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
