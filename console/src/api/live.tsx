import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import type { ProjectStreamEvent } from '#sdk/project-stream.ts'
import { api } from './client.ts'
import { noteFailure } from './signed-out.ts'
import { whileVisible } from './visible.ts'

/** How the page knows what happens: it asks for its first stream, has one, has none for now, or asks for one again. */
export type LiveState = 'connecting' | 'live' | 'paused' | 'reconnecting'

interface Live {
  state: LiveState
  pause: () => void
  resume: () => void
  /** Called with every event of the project; returns a function that ends that. */
  listen: (listener: (event: ProjectStreamEvent) => void) => () => void
  /** Hands the tab's connection to the page's stream; returns a function that takes it back. */
  lend: () => () => void
  /** Whether the page reads a separate stream. */
  isLent: boolean
  /** How that stream is. */
  tellOwn: (state: LiveState) => void
}

const LiveContext = createContext<Live | undefined>(undefined)

/** Lists are asked for again after a burst of events, at most this often. */
const refresh_ms = 1_500

/**
 * One stream for a tab, of the open project, while the tab is visible. Agents, tasks and approvals on the page are read
 * again when they change; a page that shows every step of a task reads the task's stream instead (`useOwnStream`). A
 * tab that comes back, or leaves such a page, gets what it missed.
 */
export function LiveProvider({ project_id, children }: { project_id: string; children: ReactNode }) {
  const queries = useQueryClient()
  const [state, setState] = useState<LiveState>('connecting')
  const [isPaused, setPaused] = useState(() => false)
  const [lent, setLent] = useState(0)
  const [own, tellOwn] = useState<LiveState>('connecting')
  const isLent = lent > 0
  const lastEventId = useRef<string>(undefined)
  const listeners = useRef(new Set<(event: ProjectStreamEvent) => void>())

  useEffect(() => {
    if (isPaused) {
      setState('paused')
      return
    }
    if (isLent) return
    const end = new AbortController()
    const due = new Set<string>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const refreshDue = (): void => {
      timer = undefined
      for (const kind of due) void queries.invalidateQueries({ queryKey: ['project', project_id, kind] })
      due.clear()
    }
    const refresh = (...kinds: string[]): void => {
      for (const kind of kinds) due.add(kind)
      timer ??= setTimeout(refreshDue, refresh_ms)
    }
    const read = async (signal: AbortSignal): Promise<void> => {
      const stream = api.projects.stream(project_id, {
        signal,
        lastEventId: lastEventId.current,
        onEventId: (id) => (lastEventId.current = id),
        // A tab that comes back does not show that it connects: that takes a moment.
        onState: (state) => {
          if (state !== 'connecting') setState(state === 'open' ? 'live' : 'reconnecting')
        },
      })
      for await (const event of stream) {
        for (const listener of listeners.current) listener(event)
        if (event.type === 'project.snapshot') {
          if (!event.data.resumed) refresh('agents', 'tasks', 'approvals')
          // States of agents are not kept: what a hidden tab missed of them is asked for.
          else refresh('agents')
        } else if (event.type === 'agent.status') refresh('agents')
        else refresh('tasks', 'agents', 'approvals')
      }
    }
    const follow = async (): Promise<void> => {
      while (!end.signal.aborted) {
        try {
          await whileVisible(end.signal, read, () => setState('reconnecting'))
        } catch (error) {
          // The SDK has tried for a while: the state says so, and it is tried again.
          if (error instanceof Error) noteFailure(error)
        }
        if (end.signal.aborted) return
        setState('reconnecting')
        await new Promise((resolve) => setTimeout(resolve, 3_000))
      }
    }
    void follow()
    return () => {
      end.abort()
      clearTimeout(timer)
      refreshDue()
    }
  }, [project_id, isPaused, isLent, queries])

  const live = useMemo<Live>(
    () => ({
      state: isLent ? own : state,
      isLent,
      tellOwn,
      pause: () => setPaused(true),
      resume: () => {
        setState('connecting')
        setPaused(false)
        void queries.invalidateQueries({ queryKey: ['project', project_id] })
      },
      listen: (listener) => {
        listeners.current.add(listener)
        return () => listeners.current.delete(listener)
      },
      lend: () => {
        setLent((before) => before + 1)
        return () => setLent((before) => before - 1)
      },
    }),
    [state, own, isLent, queries, project_id],
  )
  return <LiveContext value={live}>{children}</LiveContext>
}

/** The stream of the project that is open. */
export function useLive(): Live {
  const live = useContext(LiveContext)
  if (!live) throw new Error('live updates need an open project')
  return live
}

/** Called with every event of the open project. */
export function useProjectEvents(listener: (event: ProjectStreamEvent) => void): void {
  const { listen } = useLive()
  const latest = useRef(listener)
  latest.current = listener
  useEffect(() => listen((event) => latest.current(event)), [listen])
}

/** The page opens its own stream for now, so that a tab never has two; `state` is how that one is. */
export function useOwnStream(isOwn: boolean, state: LiveState): void {
  const { lend, tellOwn } = useLive()
  useEffect(() => tellOwn(state), [state, tellOwn])
  useEffect(() => (isOwn ? lend() : undefined), [isOwn])
}
