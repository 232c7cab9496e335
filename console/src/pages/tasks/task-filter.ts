import { useMemo } from 'react'
import { api } from '../../api/client.ts'
import { useSearchState } from '../../search-state.ts'
import type { Search } from '../../search-text.ts'
import type { TaskStatus } from '../../task-parts/types.ts'

export const states: TaskStatus[] = ['queued', 'running', 'waiting', 'completed', 'failed', 'canceled', 'expired']
const periods = { '1h': 3600_000, '24h': 86_400_000, '7d': 604_800_000, '30d': 2_592_000_000 } as const
/** Characters that the API looks for. */
const searchMax = 100
export type Period = keyof typeof periods

export interface TaskWords extends Search {
  status: TaskStatus
  agent: string
  since: Period
  /** `metadata.door.kind`: by which protocol, or which trigger. */
  door: string
  /** `error.code` of failed tasks. */
  error: string
  /** Moments, as a point of a chart leads here: the first inclusive, the second exclusive. */
  created_after: string
  created_before: string
  /** A part of the input, or of an identifier; one that looks like a number is read as one from the address. */
  q: string | number
  sort: 'created_at'
  offset: number
}

/** Which tasks the address asks for, and how it is made to ask for others: another choice begins at the first page. */
export function useTaskFilter(project: string) {
  const [params, setParams] = useSearchState<TaskWords>()
  const agent = typeof params.agent === 'string' ? params.agent : undefined
  const status = states.find((state) => state === params.status)
  const door = typeof params.door === 'string' && params.door !== '' ? params.door : undefined
  const error = typeof params.error === 'string' && params.error !== '' ? params.error : undefined
  const from = momentOf(params.created_after)
  const until = momentOf(params.created_before)
  const search = params.q === undefined || params.q === '' ? undefined : String(params.q).slice(0, searchMax)
  const since = from === undefined && params.since !== undefined && params.since in periods ? params.since : undefined
  // The period ends now, and now is when it was chosen: else every reading would be of another list.
  const created_after = useMemo(
    () => (since === undefined ? from : new Date(Date.now() - periods[since]).toISOString()),
    [since, from],
  )
  const query = {
    ...(status ? { status } : {}),
    ...(door === undefined ? {} : { door }),
    ...(error === undefined ? {} : { error_code: error }),
    ...(created_after ? { created_after } : {}),
    ...(until ? { created_before: until } : {}),
    ...(search === undefined ? {} : { search }),
    ...(params.sort === 'created_at' ? ({ sort: 'created_at' } as const) : {}),
  }
  return {
    agent,
    status,
    door,
    error,
    since,
    from,
    until,
    search,
    /** What the address says, without the page. */
    words: { ...params, offset: undefined } as Search,
    isOldestFirst: params.sort === 'created_at',
    offset: typeof params.offset === 'number' ? params.offset : 0,
    query,
    /** The path of the API that answers it. */
    path: `/api/v1/projects/${project}${agent === undefined ? '' : `/agents/${agent}`}/tasks`,
    isFiltered:
      [status, door, error, since, agent].some((word) => word !== undefined) || (from ?? until ?? search) !== undefined,
    read: (page: { limit: number; offset?: number }) =>
      agent === undefined
        ? api.tasks.list(project, { ...query, ...page })
        : api.tasks.listOfAgent(project, agent, { ...query, ...page }),
    choose: (change: Partial<TaskWords>, replace = false) => setParams({ ...change, offset: undefined }, { replace }),
    go: (offset: number) => setParams({ offset: offset || undefined }),
  }
}

export type TaskFilter = ReturnType<typeof useTaskFilter>

/** No part of it, to be put in the place of every one. */
export const anyTask = {
  status: undefined,
  agent: undefined,
  door: undefined,
  error: undefined,
  since: undefined,
  created_after: undefined,
  created_before: undefined,
  q: undefined,
} as const

/** A moment of the address; undefined where it says something else. */
function momentOf(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : new Date(time).toISOString()
}
