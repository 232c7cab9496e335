import { operationsOf } from './api-document.ts'

/**
 * The operations of an OpenAPI document as a collection that Bruno imports (its JSON export, version 1): a folder for each tag. The
 * address and the key are variables of an environment; the key is empty.
 */
export function brunoCollection(document: object, base_url: string): object {
  const folders = Map.groupBy(operationsOf(document), ({ tag }) => tag)
  return {
    name: 'Cadre',
    version: '1',
    items: [...folders].map(([name, operations], at) => ({
      type: 'folder',
      name,
      seq: at + 1,
      items: operations.map(({ method, path, summary, query, body }, nth) => ({
        type: 'http',
        name: summary,
        seq: nth + 1,
        request: {
          url: `{{base_url}}${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
          method,
          headers: [{ name: 'X-API-Key', value: '{{api_key}}', enabled: true }],
          params: [
            ...[...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => ({
              name: parameter,
              value: '',
              type: 'path',
              enabled: true,
            })),
            ...query.map((parameter) => ({ name: parameter, value: '', type: 'query', enabled: false })),
          ],
          body: body === undefined ? { mode: 'none' } : { mode: 'json', json: JSON.stringify(body, undefined, 2) },
          auth: { mode: 'none' },
          script: {},
          vars: {},
          assertions: [],
          tests: '',
          docs: '',
        },
      })),
    })),
    environments: [
      {
        name: 'Cadre',
        variables: [
          { name: 'base_url', value: base_url, enabled: true, secret: false, type: 'text' },
          { name: 'api_key', value: '', enabled: true, secret: true, type: 'text' },
        ],
      },
    ],
  }
}
