import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { isObject } from '#contract/core/merge-patch.ts'
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

/** ETag of the document at this address; it differs between versions of the service. */
export function publishedTag(public_url: string): string {
  digest ??= digestOf(JSON.stringify({ ...publishedDocument(public_url), servers: [] }))
  return `W/"${digestOf(`${digest} ${public_url}`)}"`
}

let yaml: { tag: string; text: Promise<string> } | undefined

/** The same document as YAML, built once for each address. */
export async function publishedYaml(public_url: string): Promise<string> {
  const tag = publishedTag(public_url)
  if (yaml?.tag !== tag) yaml = { tag, text: yamlOf(publishedDocument(public_url)) }
  return yaml.text
}

/**
 * Members as YAML. Members down to `levels` below are converted one at a time, so that other requests run in between:
 * the whole document takes half a second. The library is loaded here because few services are ever asked for YAML.
 */
async function yamlOf(members: object, levels = 2): Promise<string> {
  const { stringify } = await import('yaml')
  let text = ''
  for (const [name, value] of Object.entries(members)) {
    if (levels > 0 && isObject(value) && Object.keys(value).length > 0) {
      const inside = await yamlOf(value, levels - 1)
      text += `${stringify(name, yamlOptions).trimEnd()}:\n${inside.replaceAll(/^(?=.)/gm, '  ')}`
    } else {
      text += stringify({ [name]: value }, yamlOptions)
      await setImmediate()
    }
  }
  return text
}

/** Readers of YAML 1.1, such as PyYAML, would not read `on` and times as strings without quotes. */
const yamlOptions = { aliasDuplicateObjects: false, compat: 'yaml-1.1', lineWidth: 0 }

/** Shortened hash that identifies a text. */
export function digestOf(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
