import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, type LinkProps } from '@tanstack/react-router'
import { useDeferredValue } from 'react'
import type { AgentState } from '#contract/resources/agent-lifecycle.ts'
import { act, actionLabels, actions, reasonAgainst, stateAfter, undoOf } from '../agents/actions.ts'
import { useTellWithUndo } from '../agents/use-undo-agents.ts'
import { api } from '../api/client.ts'
import { paths } from '../paths.ts'
import { titleOf } from '../task-parts/input-text.ts'
import { tellFailure } from '../ui/toast.tsx'
import { useOpenProject } from './open-project.ts'
import { usePreference } from '../preferences.ts'

/** Something that the menu goes to or does. */
export interface Command {
  label: string
  /** What kind of thing it is. */
  hint: string
  run: () => void
}

/** Entries of a kind that are shown at most. */
const found = 8

/** What fits the words; whether more may be on its way from the service; and whether they say what to do, but not to which agent. */
export function useCommands(
  text: string,
  isOpen: boolean,
): { commands: Command[]; isLooking: boolean; needsName: boolean } {
  const navigate = useNavigate()
  const id = useOpenProject()
  const [theme, setTheme] = usePreference('theme')
  const lower = text.toLowerCase()
  const fits = (label: string): boolean => label.toLowerCase().includes(lower)

  // “pause ec” is about agents that are called so. Only a whole word and a name change something: “st” may be the beginning of a name.
  const [verb, ...rest] = lower.split(/\s+/)
  const asked = verb === 'resume' ? 'start' : actions.find((action) => action === verb)
  const action = rest.length > 0 ? asked : undefined
  const name = action === undefined ? text : rest.join(' ')
  const agents = useFound(['project', id, 'agents'], name, isOpen && id !== undefined, (search) =>
    api.agents.list(id ?? '', { limit: found, ...search }).page(),
  )
  const projects = useFound(['projects'], text, isOpen, (search) =>
    api.projects.list({ limit: found, ...search }).page(),
  )
  // One letter is in the input of every other task.
  const looksForWork = isOpen && id !== undefined && action === undefined && text.length > 1
  const tools = useFound(['project', id, 'tools'], text, looksForWork, () =>
    api.tools.list(id ?? '', { limit: 100 }).page(),
  )
  const tasks = useFound(['project', id, 'tasks'], text, looksForWork, (search) =>
    api.tasks.list(id ?? '', { limit: found, ...search }).page(),
  )
  const change = useChangeOfAgent(id)

  const to = (link: LinkProps) => () => void navigate(link)
  const inProject = (of: (id: string) => [string, LinkProps][]): [string, LinkProps][] =>
    id === undefined ? [] : of(id)
  const pages: [string, LinkProps][] = [
    ...inProject((id) => [
      ['Home', paths.home(id)],
      ['Agents', paths.agents(id)],
      ['Tools', paths.tools(id)],
      ['Credentials', paths.credentials(id)],
      ['Schedules', paths.schedules(id)],
      ['Files', paths.files(id)],
      ['Tasks', paths.tasks(id)],
      ['Threads', paths.threads(id)],
      ['Approvals', paths.approvals(id)],
      ['Tool calls', paths.toolCalls(id)],
      ['Triggers', paths.triggers(id)],
      ['Logs', paths.logs(id)],
      ['Metrics', paths.metrics(id)],
      ['Playground', paths.playground(id)],
      ['Usage and limits', paths.usage(id)],
      ['Budgets', paths.usage(id, { tab: 'budgets' })],
      ['Connect', paths.connect(id)],
      ['First steps', paths.start(id)],
    ]),
    ['Projects', paths.projects()],
    ['Model providers', paths.modelProviders()],
    ['Webhooks', paths.webhooks()],
    ['API keys', paths.keys()],
    ['Sessions', paths.sessions()],
    ['OAuth apps', paths.apps()],
    ['Members', paths.members()],
    ['Audit log', paths.audit()],
    ['Request log', paths.requests()],
    ['System', paths.system()],
    ['Preferences', paths.preferences()],
  ]
  const creations: [string, LinkProps][] = [
    ...inProject((id) => [
      ['New agent', paths.newAgent(id)],
      ['New tool', paths.newTool(id)],
      ['New credential', paths.credentials(id, { panel: 'new' })],
      ['New schedule', paths.schedules(id, { panel: 'new' })],
      ['New thread', paths.threads(id, { panel: 'new' })],
      ['New trigger', paths.triggers(id, { panel: 'new' })],
      ['New budget', paths.usage(id, { tab: 'budgets', panel: 'budget' })],
    ]),
    ['New project', paths.projects({ panel: 'new' })],
    ['New webhook', paths.webhooks({ panel: 'new' })],
    ['New API key', paths.keys({ panel: 'new' })],
    ['New OAuth app', paths.apps({ panel: 'new' })],
    ['Invite a member', paths.members({ panel: 'invite' })],
  ]
  const projectActions: [string, LinkProps][] = inProject((id) => [
    ['Pause every running agent…', paths.home(id, { panel: 'pause-all' })],
    ['Resume every paused agent…', paths.home(id, { panel: 'resume-all' })],
  ])
  const themes = (['light', 'dark', 'system'] as const)
    .filter((one) => one !== theme)
    .map((one): Command => ({ label: `Theme: ${one}`, hint: 'Do', run: () => setTheme(one) }))
  const links = (hint: string, of: [string, LinkProps][]): Command[] =>
    of.filter(([label]) => fits(label)).map(([label, link]) => ({ label, hint, run: to(link) }))

  const changes =
    action === undefined
      ? []
      : agents.items
          .filter((agent) => reasonAgainst(action, agent.status) === undefined)
          .map((agent): Command => ({
            label: `${actionLabels[action]} ${agent.name}`,
            hint: `Agent, ${agent.status}`,
            run: () => void change(agent, action),
          }))
  return {
    commands: [
      ...identified(id, text).map(([label, hint, link]) => ({ label, hint, run: to(link) })),
      ...changes,
      ...links('Page', pages),
      ...links('Create', creations),
      ...links('Do', projectActions),
      ...(text === '' ? [] : themes.filter(({ label }) => fits(label))),
      ...(action === undefined ? agents.items : [])
        .filter((agent) => fits(agent.name))
        .map((agent) => ({ label: agent.name, hint: 'Agent', run: to(paths.agent(id ?? '', agent.id)) })),
      ...(looksForWork ? tools.items : [])
        .filter((tool) => fits(tool.name))
        .slice(0, found)
        .map((tool) => ({ label: tool.name, hint: 'Tool', run: to(paths.tool(id ?? '', tool.id)) })),
      ...(looksForWork ? tasks.items : []).map((task) => ({
        label: titleOf(task),
        hint: `Task, ${task.status}`,
        run: to(paths.task(id ?? '', task.id)),
      })),
      ...projects.items
        .filter((project) => fits(project.name))
        .map((project) => ({ label: project.name, hint: 'Project', run: to(paths.home(String(project.id))) })),
    ],
    isLooking: agents.isLooking || projects.isLooking,
    needsName: asked !== undefined && action === undefined,
  }
}

/** What an identifier that is put in leads to. */
function identified(id: string | undefined, text: string): [string, string, LinkProps][] {
  if (id !== undefined && text.startsWith('task_')) return [[text, 'Task', paths.task(id, text)]]
  if (id !== undefined && text.startsWith('agent_')) return [[text, 'Agent', paths.agent(id, text)]]
  const found = id === undefined ? undefined : ofProject(id, text)
  if (found) return [found]
  if (text.startsWith('wh_')) return [[text, 'Webhook', paths.webhook(text)]]
  if (text.startsWith('key_')) return [[text, 'API key', paths.keys({ panel: text })]]
  if (text.startsWith('client_')) return [[text, 'OAuth app', paths.apps({ panel: text })]]
  if (/^proj_\d+$/.test(text)) return [[text, 'Project', paths.home(text.slice('proj_'.length))]]
  if (text.startsWith('user_')) return [[text, 'Audit log', paths.audit({ actor: text })]]
  if (text.startsWith('sess_')) return [[text, 'Audit log', paths.audit({ credential_id: text })]]
  if (id !== undefined && text.startsWith('budget_')) return [[text, 'Budgets', paths.usage(id, { tab: 'budgets' })]]
  // Others have no page: they are found by what was done to them.
  if (/^(org|step|dlv|tdlv|appr|call|case|inv|file|ident)_/.test(text))
    return [[text, 'Audit log', paths.audit({ target: text })]]
  if (text.startsWith('req_'))
    return [
      [text, 'Request log', paths.requests({ find: text })],
      [text, 'Audit log', paths.audit({ request_id: text })],
    ]
  return []
}

/** What an identifier of a resource of the project leads to. */
function ofProject(id: string, text: string): [string, string, LinkProps] | undefined {
  const kinds = {
    tool_: ['Tool', paths.tool],
    cred_: ['Credential', paths.credential],
    sched_: ['Schedule', paths.schedule],
    thread_: ['Thread', paths.thread],
    trig_: ['Trigger', paths.trigger],
  } as const
  for (const [prefix, [hint, path]] of Object.entries(kinds))
    if (text.startsWith(prefix)) return [text, hint, path(id, text)]
  return undefined
}

/** What the service finds by a part of the name. It may come later: Enter does what fits the text that stands there then. */
function useFound<Item>(
  key: unknown[],
  text: string,
  isEnabled: boolean,
  list: (search: { search?: string }) => Promise<{ items: Item[] }>,
): { items: Item[]; isLooking: boolean } {
  const search = useDeferredValue(text)
  const { data, isFetching } = useQuery({
    queryKey: [...key, 'menu', search],
    queryFn: () => list(search === '' ? {} : { search }),
    enabled: isEnabled,
  })
  return { items: data?.items ?? [], isLooking: isEnabled && (search !== text || (isFetching && data === undefined)) }
}

/** Does it, and says what became of it. */
function useChangeOfAgent(project_id: string | undefined) {
  const queries = useQueryClient()
  const tellWithUndo = useTellWithUndo(project_id ?? '')
  return async (agent: { id: string; name: string; status: AgentState }, action: (typeof actions)[number]) => {
    try {
      await act(project_id ?? '', agent.id, action)
      const undo = undoOf(action, agent.status)
      tellWithUndo(`${agent.name} is ${stateAfter(action)}`, undo ? [{ agent_id: agent.id, action: undo }] : [])
    } catch (error) {
      tellFailure(`${actionLabels[action]} failed`, error)
    }
    await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
  }
}
