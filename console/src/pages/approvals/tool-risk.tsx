import { useQuery } from '@tanstack/react-query'
import { builtinToolDefinitions, safeHttpMethods } from '#contract/tools/builtin-tools.ts'
import { api } from '../../api/client.ts'
import { Badge } from '../../ui/status.tsx'
import type { Approval } from '../../task-parts/types.ts'

const risks = {
  safe: ['good', 'safe', 'It only reads.'],
  keyed: ['info', 'keyed', 'It may change something. The receiver ignores repeated calls.'],
  unsafe: ['warn', 'unsafe', 'It may change something outside that cannot be undone here.'],
  unknown: ['quiet', 'risk not known', 'What this tool may change is not declared.'],
} as const
type Risk = keyof typeof risks

/** What a call that waits for its leave may change, as its tool says: a word, and why below it. */
export function ToolRisk({ project, approval }: { project: string; approval: Approval }) {
  const known = builtinRisk(approval)
  const [server = approval.tool, ...within] = approval.tool.split('/')
  const registered = useQuery({
    queryKey: ['project', project, 'tools', 'by-name', approval.tool],
    queryFn: async () => {
      for await (const tool of api.tools.list(project, { limit: 100 })) {
        if (tool.name !== server) continue
        if (within.length === 0) return tool.safety
        const { tools } = await api.tools.get(project, tool.id)
        return tools?.find(({ name }) => name === approval.tool)?.safety ?? tool.safety
      }
      return null
    },
    enabled: known === undefined,
    staleTime: 60_000,
  })
  if (known === undefined && registered.isPending) return null
  const [tone, word, why] = risks[known ?? registered.data ?? 'unknown']
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 text-sm text-soft">
      <Badge tone={tone}>{word}</Badge> {why}
    </span>
  )
}

/** Of the service's own tools; undefined of others. Of a request the method says it. */
function builtinRisk({ tool, arguments: args }: Approval): Risk | undefined {
  if (!Object.hasOwn(builtinToolDefinitions, tool)) return undefined
  const name = tool as keyof typeof builtinToolDefinitions
  const { method = 'GET' } = (args ?? {}) as { method?: unknown }
  if (name === 'http_request') return safeHttpMethods.has(String(method)) ? 'safe' : 'unsafe'
  return builtinToolDefinitions[name].safety
}
