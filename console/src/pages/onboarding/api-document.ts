import { isObject } from '#contract/core/merge-patch.ts'

/** An operation of an OpenAPI document. */
export interface ApiOperation {
  method: string
  /** With its parameters in braces. */
  path: string
  summary: string
  tag: string
  query: readonly string[]
  /** An example of its body; undefined where it has none. */
  body: unknown
}

const methods = ['get', 'post', 'put', 'patch', 'delete']

/** The operations of an OpenAPI document, in its order. */
export function operationsOf(document: object): ApiOperation[] {
  const { paths } = document as { paths?: unknown }
  if (!isObject(paths)) return []
  return Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = isObject(item) ? item[method] : undefined
      if (!isObject(operation)) return []
      const parameters = Array.isArray(operation['parameters']) ? operation['parameters'] : []
      const tags = Array.isArray(operation['tags']) ? operation['tags'] : []
      return [
        {
          method: method.toUpperCase(),
          path,
          summary: typeof operation['summary'] === 'string' ? operation['summary'] : path,
          tag: String(tags[0] ?? 'Other'),
          query: parameters.flatMap((one: unknown) =>
            isObject(one) && one['in'] === 'query' && typeof one['name'] === 'string' ? [one['name']] : [],
          ),
          body: exampleOf(operation['requestBody']),
        },
      ]
    }),
  )
}

function exampleOf(body: unknown): unknown {
  const content = isObject(body) ? body['content'] : undefined
  const json = isObject(content) ? content['application/json'] : undefined
  if (!isObject(json)) return undefined
  const [example] = isObject(json['examples']) ? Object.values(json['examples']) : []
  return json['example'] ?? (isObject(example) ? example['value'] : undefined) ?? {}
}
