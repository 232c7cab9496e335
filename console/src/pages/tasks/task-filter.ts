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
  /** The period that ends now in which it was created. */
  since: Period
  /** That in which it ended. */
  ended: Period
  /** `metadata.door.kind`: by which protocol, or which trigger. */
  door: string
  /** `error.code` of failed tasks. */
  error: string
  /** Moments, as a point of a chart leads here: the first inclusive, the second exclusive. */
  created_after: string
  created_before: string
  finished_after: string
  finished_before: string
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
  const created = { from: momentOf(params.created_after), until: momentOf(params.created_before) }
  const finished = { from: momentOf(params.finished_after), until: momentOf(params.finished_before) }
  const search = params.q === undefined || params.q === '' ? undefined : String(params.q).slice(0, searchMax)
  const since = created.from === undefined ? periodOf(params.since) : undefined
  const ended = finished.from === undefined ? periodOf(params.ended) : undefined
  const created_after = useStartOf(since) ?? created.from
  const finished_after = useStartOf(ended) ?? finished.from
  const query = {
    ...(status ? { status } : {}),
    ...(door === undefined ? {} : { door }),
    ...(error === undefined ? {} : { error_code: error }),
    ...(created_after ? { created_after } : {}),
    ...(created.until ? { created_before: created.until } : {}),
    ...(finished_after ? { finished_after } : {}),
    ...(finished.until ? { finished_before: finished.until } : {}),
    ...(search === undefined ? {} : { search }),
    ...(params.sort === 'created_at' ? ({ sort: 'created_at' } as const) : {}),
  }
  return {
    agent,
    status,
    door,
    error,
    since,
    ended,
    created,
    finished,
    search,
    /** What the address says, without the page. */
    words: { ...params, offset: undefined } as Search,
    isOldestFirst: params.sort === 'created_at',
    offset: typeof params.offset === 'number' ? params.offset : 0,
    query,
    /** The path of the API that answers it. */
    path: `/api/v1/projects/${project}${agent === undefined ? '' : `/agents/${agent}`}/tasks`,
    isFiltered:
      [status, door, error, agent, search].some((word) => word !== undefined) ||
      [created_after, finished_after, created.until, finished.until].some((moment) => moment !== undefined),
    read: (page: { limit: number; offset?: number }) =>
      agent === undefined
        ? api.tasks.list(project, { ...query, ...page })
        : api.tasks.listOfAgent(project, agent, { ...query, ...page }),
    choose: (change: Partial<TaskWords>, replace = false) => setParams({ ...change, offset: undefined }, { replace }),
    go: (offset: number) => setParams({ offset: offset || undefined }),
  }
}

export type TaskFilter = ReturnType<typeof useTaskFilter>

/** No time in particular, to be put in the place of every one. */
export const anyTime = {
  since: undefined,
  ended: undefined,
  created_after: undefined,
  created_before: undefined,
  finished_after: undefined,
  finished_before: undefined,
} as const

/** No part of it, to be put in the place of every one. */
export const anyTask = {
  ...anyTime,
  status: undefined,
  agent: undefined,
  door: undefined,
  error: undefined,
  q: undefined,
} as const

const periodOf = (word: unknown): Period | undefined =>
  typeof word === 'string' && word in periods ? (word as Period) : undefined

/** When a period began that ends now. Now is when it was chosen: else every reading would be of another list. */
function useStartOf(period: Period | undefined): string | undefined {
  return useMemo(
    () => (period === undefined ? undefined : new Date(Date.now() - periods[period]).toISOString()),
    [period],
  )
}

/** A moment of the address; undefined where it says something else. */
function momentOf(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : new Date(time).toISOString()
}
