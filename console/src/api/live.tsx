import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import type { ProjectStreamEvent } from '../../../sdk/src/project-stream.ts'
import { cadre } from './client.ts'

/** How the page knows what happens: by its stream, not at all for now, or by trying again to get one. */
export type LiveState = 'live' | 'paused' | 'reconnecting'

interface Live {
  state: LiveState
  pause: () => void
  resume: () => void
  /** Is told of everything that happens in the project; gives the way to end that. */
  listen: (listener: (event: ProjectStreamEvent) => void) => () => void
}

const LiveContext = createContext<Live | undefined>(undefined)

/** Lists are asked for again after a burst of events, at most this often. */
const refresh_ms = 1_500

/**
 * One stream for a tab, of the project that is open. What is shown of agents, tasks and approvals is asked for again when
 * something happened to it; pages that show every step listen to the task's own stream.
 */
export function LiveProvider({ project_id, children }: { project_id: string; children: ReactNode }) {
  const queries = useQueryClient()
  const [state, setState] = useState<LiveState>('reconnecting')
  const [isPaused, setPaused] = useState(() => false)
  const listeners = useRef(new Set<(event: ProjectStreamEvent) => void>())

  useEffect(() => {
    if (isPaused) {
      setState('paused')
      return
    }
    const end = new AbortController()
    const due = new Set<string>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const refresh = (...kinds: string[]): void => {
      for (const kind of kinds) due.add(kind)
      timer ??= setTimeout(() => {
        timer = undefined
        for (const kind of due) void queries.invalidateQueries({ queryKey: ['project', project_id, kind] })
        due.clear()
      }, refresh_ms)
    }
    const follow = async (): Promise<void> => {
      while (!end.signal.aborted) {
        try {
          for await (const event of cadre.projects.stream(project_id, { signal: end.signal })) {
            setState('live')
            for (const listener of listeners.current) listener(event)
            if (event.type === 'project.snapshot') {
              if (!event.data.resumed) refresh('agents', 'tasks', 'approvals')
            } else if (event.type === 'agent.status') refresh('agents')
            else refresh('tasks', 'agents', 'approvals')
          }
        } catch {
          // The SDK has tried for a while: the state says so, and it is tried again.
        }
        if (end.signal.aborted) return
        setState('reconnecting')
        await new Promise((resolve) => setTimeout(resolve, 3_000))
      }
    }
    void follow()
    return () => {
      clearTimeout(timer)
      end.abort()
    }
  }, [project_id, isPaused, queries])

  const live = useMemo<Live>(
    () => ({
      state,
      pause: () => setPaused(true),
      resume: () => {
        setPaused(false)
        void queries.invalidateQueries({ queryKey: ['project', project_id] })
      },
      listen: (listener) => {
        listeners.current.add(listener)
        return () => listeners.current.delete(listener)
      },
    }),
    [state, queries, project_id],
  )
  return <LiveContext value={live}>{children}</LiveContext>
}

/** The stream of the project that is open. */
export function useLive(): Live {
  const live = useContext(LiveContext)
  if (!live) throw new Error('there is no project here to be told about')
  return live
}

/** Is told of everything that happens in the project that is open. */
export function useProjectEvents(listener: (event: ProjectStreamEvent) => void): void {
  const { listen } = useLive()
  const latest = useRef(listener)
  latest.current = listener
  useEffect(() => listen((event) => latest.current(event)), [listen])
}
