import { cadre } from '../api/client.ts'
import { CodeBlock } from '../ui/copy.tsx'
import { curlOf } from '../ui/copy-as-curl.tsx'
import { useSearchState } from '../search-state.ts'
import { Button } from '../ui/button.tsx'

/** A request of the API, with what the SDK calls it. */
export interface Shown {
  method: 'GET' | 'POST' | 'PUT'
  /** From `/api/v1` on. */
  path: string
  body?: unknown
  /** The expression over `cadre` that does the same. */
  sdk: string
}

const kinds = { curl: 'curl', sdk: 'TypeScript', cli: 'Command line' } as const
type Kind = keyof typeof kinds

/** Where the service is, as programs elsewhere name it. */
export const serviceUrl = (): string => new URL(cadre.url('/'), location.href).href.replace(/\/$/, '')

/** The same request in three languages, with this service's address and a placeholder for the key. */
export function Snippets({ shown }: { shown: Shown }) {
  const [search, change] = useSearchState<{ show?: string }>()
  const kind: Kind = search.show === 'sdk' || search.show === 'cli' ? search.show : 'curl'
  const texts: Record<Kind, () => string> = {
    curl: () => curlOf(shown.method, shown.path, { body: shown.body }),
    sdk: () =>
      [
        "import { Cadre } from '@cadre/sdk'",
        '',
        `const cadre = new Cadre({ baseURL: '${serviceUrl()}' }) // the key is CADRE_API_KEY`,
        shown.sdk,
      ].join('\n'),
    cli: () =>
      [
        `export CADRE_BASE_URL=${serviceUrl()} CADRE_API_KEY=…`,
        `cadre api ${shown.method} ${shown.path.replace('/api/v1', '')}${shown.body === undefined ? '' : ` --data '${JSON.stringify(shown.body).replaceAll("'", String.raw`'\''`)}'`}`,
      ].join('\n'),
  }
  return (
    <div className="min-w-0">
      <div role="group" aria-label="Language" className="mb-2 flex flex-wrap gap-1">
        {(Object.keys(kinds) as Kind[]).map((one) => (
          <Button
            key={one}
            kind={one === kind ? 'plain' : 'ghost'}
            aria-pressed={one === kind}
            onClick={() => change({ show: one === 'curl' ? undefined : one }, { replace: true })}
          >
            {kinds[one]}
          </Button>
        ))}
      </div>
      <CodeBlock text={texts[kind]()} label={`Copy as ${kinds[kind]}`} />
    </div>
  )
}
