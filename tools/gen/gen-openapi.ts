import { openApiDocument } from '#contract/openapi/openapi.ts'
import type { OpenApiDocument } from '#contract/openapi/openapi-types.ts'
import { documented } from '#contract/openapi/documented.ts'
import { version } from '../../server/src/version.ts'
import { printJson } from './print-json.ts'

/** The API as published, made from the contract; a running service puts its own address in. */
export function publishedApi(): OpenApiDocument {
  return openApiDocument(documented, { version, server_url: 'http://127.0.0.1:8080' })
}

/** The text of `dist/openapi.json`. */
export function openApiText(): string {
  return printJson(publishedApi())
}
