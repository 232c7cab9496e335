import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { Download } from 'lucide-react'
import { curlOf } from '../ui/copy-as-curl.tsx'
import { saveFile } from './download.ts'
import { Button, Choices, CopyButton, Empty, ErrorNotice, fullHeight, inputClass } from './kit.tsx'
import type { Search } from '../router.tsx'
import { usePathIds, useWords } from './links.tsx'
import { LogLines } from './log-lines.tsx'
import { LogStore } from './log-store.ts'
import type { LogLine } from './types.ts'
import { useAgents } from './use-agents.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
const periods = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 } as const
/** Lines of a download at most. */
const downloadMost = 200_000
/** A text is searched for once nothing was typed for this long. */
const typed_ms = 400

export interface LogWords extends Search {
  agent: string
  level: LogLine['level']
  /** A text that looks like a number is read as one from the address. */
  q: string | number
  task: string | number
  since: keyof typeof periods
  /** `off`: nothing is read by itself. */
  tail: 'off'
  wrap: boolean
  zone: 'utc'
  /** The moment of a line. */
  at: string
}

/** What agents wrote, as they write it, and all of it before. */
export function LogsPage() {
  const { project } = usePathIds()
  const [words, setWords] = useWords<LogWords>()
  const agents = useAgents(project)
  const agent = typeof words.agent === 'string' ? words.agent : agents.data?.items[0]?.id
  const level = levels.find((name) => name === words.level)
  const [error, setError] = useState<unknown>()
  const [progress, setProgress] = useState<number>()
  const store = useLogStore(project, agent, words, level)
  const isTailing = words.tail !== 'off'
  useEffect(() => {
    if (store) store.isTailing = isTailing
  }, [store, isTailing])

  async function gather(): Promise<string[] | undefined> {
    if (!store) return undefined
    setError(undefined)
    const parts: string[] = []
    try {
      for await (const lines of store.all(AbortSignal.timeout(120_000))) {
        for (const line of lines) parts.push(`${JSON.stringify(line)}\n`)
        setProgress(parts.length)
        if (parts.length >= downloadMost) break
      }
      return parts
    } catch (thrown) {
      setError(thrown)
      return undefined
    } finally {
      setProgress(undefined)
    }
  }
  const download = async (): Promise<void> => {
    const parts = await gather()
    if (parts) saveFile('logs.ndjson', 'application/x-ndjson', parts)
  }

  return (
    <div className={fullHeight}>
      <header className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line p-3 md:px-5">
        <h1 className="mr-2">Logs</h1>
        <div
          className="grid w-full grid-cols-2 gap-2 sm:flex sm:w-auto sm:flex-wrap"
          role="search"
          aria-label="Filter lines"
        >
          <select
            aria-label="Agent"
            className={inputClass}
            value={agent ?? ''}
            onChange={({ target }) => setWords({ agent: target.value, at: undefined })}
          >
            {agents.data?.items.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
          <select
            aria-label="Level"
            className={inputClass}
            value={level ?? ''}
            onChange={({ target }) => setWords({ level: (target.value || undefined) as LogLine['level'] })}
          >
            <option value="">Any level</option>
            {levels.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <select
            aria-label="Time"
            className={inputClass}
            value={words.since ?? ''}
            onChange={({ target }) => setWords({ since: (target.value || undefined) as LogWords['since'] })}
          >
            <option value="">At any time</option>
            <option value="15m">Last 15 minutes</option>
            <option value="1h">Last hour</option>
            <option value="24h">Last 24 hours</option>
            <option value="7d">Last 7 days</option>
          </select>
          <Typed
            label="Text in the message"
            value={String(words.q ?? '')}
            onChange={(q) => setWords({ q: q || undefined }, true)}
          />
          <Typed
            label="Task id"
            value={String(words.task ?? '')}
            onChange={(task) => setWords({ task: task || undefined }, true)}
          />
        </div>
        <div className="flex flex-wrap items-center gap-2 lg:ml-auto">
          <Choices
            label="Tail"
            value={isTailing ? 'on' : 'off'}
            options={[
              ['on', 'Live'],
              ['off', 'Still'],
            ]}
            onChange={(next) => setWords({ tail: next === 'off' ? 'off' : undefined }, true)}
          />
          <Choices
            label="Time zone"
            value={words.zone === 'utc' ? 'utc' : 'local'}
            options={[
              ['local', 'Local'],
              ['utc', 'UTC'],
            ]}
            onChange={(next) => setWords({ zone: next === 'utc' ? 'utc' : undefined }, true)}
          />
          <label className="inline-flex min-h-7 cursor-pointer items-center gap-1.5 text-xs">
            <input
              type="checkbox"
              checked={words.wrap === true}
              onChange={({ target }) => setWords({ wrap: target.checked || undefined }, true)}
            />
            Wrap
          </label>
          <span className="inline-flex items-center text-xs text-soft">
            All lines
            <CopyButton text={async () => (await gather())?.join('') ?? ''} label="Copy all matching lines" />
          </span>
          <span className="inline-flex items-center text-xs text-soft">
            curl
            <CopyButton
              text={() =>
                curlOf('GET', `/api/v1/projects/${project}/agents/${agent ?? ''}/logs${level ? `?level=${level}` : ''}`)
              }
              label="Copy as curl"
            />
          </span>
          <Button onClick={() => void download()} disabled={progress !== undefined || !store?.count}>
            <Download size={14} aria-hidden="true" />
            {progress === undefined ? 'NDJSON' : `${progress.toLocaleString()} lines…`}
          </Button>
        </div>
      </header>
      {(error ?? store?.error ?? agents.error) != null && (
        <div className="shrink-0 p-3">
          <ErrorNotice error={error ?? store?.error ?? agents.error} />
        </div>
      )}
      {agents.data?.items.length === 0 && (
        <Empty title="There is no agent yet">
          <p>Agents write here what they do. Make one, and give it a task.</p>
        </Empty>
      )}
      {store && !store.isRead && store.error === undefined && (
        <p role="status" className="p-4 text-sm text-soft">
          The log is being read…
        </p>
      )}
      {store?.isRead && store.count === 0 && (
        <Empty title="No line matches">
          <p>An agent writes a line when a task begins and ends, when a tool is refused, and when something fails.</p>
        </Empty>
      )}
      {store?.isRead && store.count > 0 && (
        <LogLines
          // Another list begins anew, at its end.
          key={`${agent} ${level} ${words.q} ${words.task} ${words.since}`}
          store={store}
          isTailing={isTailing}
          isWrapped={words.wrap === true}
          isUtc={words.zone === 'utc'}
          at={typeof words.at === 'string' ? words.at : undefined}
          onAt={(at) => setWords({ at }, true)}
          onTask={(task) => setWords({ task })}
        />
      )}
    </div>
  )
}

function useLogStore(
  project: string,
  agent: string | undefined,
  { q, task, since }: Partial<LogWords>,
  level: LogLine['level'] | undefined,
): LogStore | undefined {
  const store = useMemo(() => {
    if (agent === undefined) return undefined
    const start_time =
      since !== undefined && since in periods ? new Date(Date.now() - periods[since]).toISOString() : undefined
    const search = q === undefined || q === '' ? undefined : String(q)
    return new LogStore({
      project,
      agent,
      level,
      search,
      task_id: task === undefined ? undefined : String(task),
      start_time,
    })
  }, [project, agent, q, task, since, level])
  useEffect(() => {
    void store?.start()
    return () => store?.stop()
  }, [store])
  useSyncExternalStore(store?.subscribe ?? nothing, store?.snapshot ?? zero)
  return store
}
const nothing = () => () => {}
const zero = () => 0

/** A field whose text takes effect when the typing pauses. */
function Typed({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), typed_ms)
    return () => clearTimeout(timer)
    // only typing starts the wait
  }, [text])
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={text}
      maxLength={200}
      onChange={({ target }) => setText(target.value)}
      className={inputClass}
    />
  )
}
