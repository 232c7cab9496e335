import { writeFileSync } from 'node:fs'
import { openApiDocument } from '#contract/openapi/openapi.ts'
import { operations } from '#contract/operations.ts'
import { version } from '../../server/src/version.ts'
import { printJson } from './print-json.ts'

const file = new URL('../../openapi.json', import.meta.url)

/** `openapi.json`: the API as published, made from the contract; a running service puts its own address in. */
export function openApiText(): string {
  return printJson(openApiDocument(operations, { version, server_url: 'http://127.0.0.1:8080' }))
}

if (import.meta.main) writeFileSync(file, openApiText())
