import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, type LinkProps } from '@tanstack/react-router'
import { useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react'
import { cadre } from '../api/client.ts'
import { projectsQuery } from '../api/queries.ts'
import { paths } from '../paths.ts'
import { Dialog } from '../ui/dialog.tsx'

interface Command {
  label: string
  hint: string
  link: LinkProps
}

const found = 8

/** `Ctrl K`: goes to pages, projects, agents, and whatever identifier is put in. */
export function CommandMenu({ isOpen, close }: { isOpen: boolean; close: () => void }) {
  const navigate = useNavigate()
  const { project_id } = useParams({ strict: false })
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  const words = text.trim()
  // What the service is asked for may come later; Enter opens what fits the text that stands there now.
  const search = useDeferredValue(words)
  const input = useRef<HTMLInputElement>(null)
  const { data: projects } = useQuery({ ...projectsQuery, enabled: isOpen })
  const { data: agents } = useQuery({
    queryKey: ['project', project_id, 'agents', 'menu', search],
    queryFn: () => cadre.agents.list(project_id, { limit: found, ...(search === '' ? {} : { search }) }).page(),
    enabled: isOpen && project_id !== undefined,
  })

  useEffect(() => {
    if (!isOpen) return
    setText('')
    setAt(0)
  }, [isOpen])

  const commands = useMemo<Command[]>(() => {
    const id = project_id
    const identified: Command[] = []
    if (id !== undefined && words.startsWith('task_'))
      identified.push({ label: words, hint: 'Task', link: paths.task(id, words) })
    if (id !== undefined && words.startsWith('agent_'))
      identified.push({ label: words, hint: 'Agent', link: paths.agent(id, words) })
    if (words.startsWith('wh_')) identified.push({ label: words, hint: 'Webhook', link: paths.webhook(words) })
    if (words.startsWith('req_'))
      identified.push({ label: words, hint: 'Audit log', link: paths.audit({ request_id: words }) })
    const pages: [string, LinkProps][] = [
      ...(id === undefined
        ? []
        : ([
            ['Home', paths.home(id)],
            ['Agents', paths.agents(id)],
            ['New agent', paths.newAgent(id)],
            ['Tasks', paths.tasks(id)],
            ['Approvals', paths.approvals(id)],
            ['Logs', paths.logs(id)],
            ['Metrics', paths.metrics(id)],
            ['Playground', paths.playground(id)],
            ['Usage and limits', paths.usage(id)],
            ['First steps', paths.start(id)],
          ] as [string, LinkProps][])),
      ['Projects', paths.projects()],
      ['Webhooks', paths.webhooks()],
      ['API keys', paths.keys()],
      ['Sessions', paths.sessions()],
      ['OAuth apps', paths.apps()],
      ['Members', paths.members()],
      ['Audit log', paths.audit()],
      ['Preferences', paths.preferences()],
    ]
    const lower = words.toLowerCase()
    const fits = (label: string): boolean => label.toLowerCase().includes(lower)
    return [
      ...identified,
      ...pages.filter(([label]) => fits(label)).map(([label, link]) => ({ label, hint: 'Page', link })),
      ...(agents?.items ?? [])
        .filter(({ name }) => fits(name))
        .map((agent) => ({ label: agent.name, hint: 'Agent', link: paths.agent(id, agent.id) })),
      ...(projects?.items ?? [])
        .filter(({ name }) => fits(name))
        .slice(0, found)
        .map((project) => ({ label: project.name, hint: 'Project', link: paths.home(String(project.id)) })),
    ]
  }, [agents, projects, project_id, words])

  const chosen = Math.min(at, commands.length - 1)
  const open = (command: Command | undefined): void => {
    if (!command) return
    close()
    void navigate(command.link)
  }
  return (
    <Dialog isOpen={isOpen} close={close} title="Go to">
      <input
        ref={input}
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls={list}
        aria-activedescendant={commands[chosen] ? `${list}-${chosen}` : undefined}
        aria-label="A page, a name or an identifier"
        placeholder="A page, a name or an identifier"
        className="w-full rounded-md border border-edge bg-panel px-2.5 py-2"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, commands.length - 1))
          else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0))
          else if (event.key === 'Enter') open(commands[chosen])
          else return
          event.preventDefault()
        }}
      />
      <div id={list} role="listbox" aria-label="Where to" className="mt-2 max-h-80 overflow-y-auto">
        {commands.map(({ label, hint }, index) => (
          <div
            key={`${hint} ${label} ${index}`}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            className="flex min-h-9 cursor-pointer items-center justify-between gap-3 rounded px-2.5 aria-selected:bg-accent-soft"
            onMouseMove={() => setAt(index)}
            onClick={() => open(commands[index])}
            onKeyDown={() => {}}
          >
            <span className="truncate">{label}</span>
            <span className="shrink-0 text-sm text-soft">{hint}</span>
          </div>
        ))}
        {commands.length === 0 && <p className="p-3 text-soft">Nothing is called that.</p>}
      </div>
    </Dialog>
  )
}
