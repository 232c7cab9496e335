import { api } from '../api/client.ts'
import { useSearchState } from '../search-state.ts'
import { Button } from '../ui/button.tsx'
import { CodeBlock } from '../ui/copy.tsx'
import { quoted } from '../shell-words.ts'
import { curlOf } from '../ui/copy-as-curl.tsx'

const kinds = { curl: 'curl', sdk: 'TypeScript', cli: 'Command line' } as const
type Kind = keyof typeof kinds

/** The same in three languages; made when it is shown. */
export type SnippetTexts = Record<Kind, () => string>

/** Where the service is, as programs elsewhere name it. */
export const serviceUrl = (): string => new URL(api.url('/'), location.href).href.replace(/\/$/, '')

/** Lines over `cadre`, as a program that can be run. */
export function sdkOf(...lines: string[]): string {
  return [
    "import { Cadre } from '@cadre/sdk'",
    '',
    `const cadre = new Cadre({ baseURL: '${serviceUrl()}' }) // the key is CADRE_API_KEY`,
    ...lines,
  ].join('\n')
}

/** A command of the command line, told where the service is. */
export function shellOf(command: string): string {
  return [`export CADRE_BASE_URL=${serviceUrl()} CADRE_API_KEY=…`, command].join('\n')
}

/** A request of the API in three languages; `sdk` is the expression over `cadre` that does the same. */
export function textsOf({
  method,
  path,
  body,
  sdk,
}: {
  method: 'GET' | 'POST' | 'PUT'
  /** From `/api/v1` on. */
  path: string
  body?: unknown
  sdk: string
}): SnippetTexts {
  const data = body === undefined ? '' : ` --data ${quoted(JSON.stringify(body))}`
  return {
    curl: () => curlOf(method, path, { body }),
    sdk: () => sdkOf(sdk),
    cli: () => shellOf(`cadre api ${method} ${quoted(path.replace('/api/v1', ''))}${data}`),
  }
}

/** The same in three languages, with this service's address and a placeholder for the key. All on a page show the same one. */
export function Snippets({ texts }: { texts: SnippetTexts }) {
  const [search, change] = useSearchState<{ show?: string | undefined }>()
  const kind: Kind = search.show === 'sdk' || search.show === 'cli' ? search.show : 'curl'
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
