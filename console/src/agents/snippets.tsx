import { api } from '../api/client.ts'
import { useSearchState } from '../search-state.ts'
import { Button } from '../ui/button.tsx'
import { CodeBlock } from '../ui/copy.tsx'
import { quoted } from '../shell-quoting.ts'
import { curlOf } from '../ui/copy-as-curl.tsx'

const kinds = { curl: 'curl', sdk: 'TypeScript', cli: 'Command line', openai: 'OpenAI client' } as const
type Kind = keyof typeof kinds

/** The same in several languages; made when it is shown. OpenAI clients can do only some of it. */
export type SnippetTexts = Record<Exclude<Kind, 'openai'>, () => string> & { openai?: () => string }

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

/** A command of the command line with the address of the service. */
export function shellOf(command: string): string {
  return [`export CADRE_BASE_URL=${serviceUrl()} CADRE_API_KEY=…`, command].join('\n')
}

/** A request to an agent by the library of OpenAI; an input that is neither a text nor messages is given as JSON. */
export function openaiOf({ project, agent, input }: { project: string; agent: string; input: unknown }): string {
  const given = typeof input === 'string' || Array.isArray(input) ? input : JSON.stringify(input)
  return `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: ${JSON.stringify(`${serviceUrl()}/v1`)}, apiKey: process.env.CADRE_API_KEY })
const response = await client.responses.create({
  model: ${JSON.stringify(`${project}/${agent}`)},
  input: ${JSON.stringify(given)},
})
console.log(response.output_text)`
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

/** The same in several languages, with this service's address and a placeholder for the key. All on a page show the same one. */
export function Snippets({ texts }: { texts: SnippetTexts }) {
  const [search, change] = useSearchState<{ show?: string | undefined }>()
  const offered = (Object.keys(kinds) as Kind[]).filter((one) => texts[one] !== undefined)
  const kind = offered.find((one) => one === search.show) ?? 'curl'
  return (
    <div className="min-w-0">
      <div role="group" aria-label="Language" className="mb-2 flex flex-wrap gap-1">
        {offered.map((one) => (
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
      <CodeBlock text={texts[kind]?.() ?? ''} label={`Copy as ${kinds[kind]}`} />
    </div>
  )
}
