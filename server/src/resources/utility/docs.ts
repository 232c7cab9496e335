import { readFileSync } from 'node:fs'

const file = new URL('../../../../openapi.json', import.meta.url)
let text: string | undefined

/** The OpenAPI document as committed, with the address under which this service is reached (decision D103). */
export function publishedDocument(public_url: string): unknown {
  text ??= readFileSync(file, 'utf8')
  return { ...JSON.parse(text), servers: [{ url: public_url, description: 'This service.' }] }
}
