import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { isUnreached, noteReach } from '../../api/reach.ts'
import { useLive, useProjectEvents } from '../../api/live.tsx'
import { LogStore, type LogFilter } from './log-store.ts'

/** The lines that a filter asks for, read anew for another filter, and followed by the project's stream. */
export function useLogStore(filter: LogFilter, isTailing: boolean): LogStore {
  const store = useMemo(() => new LogStore(filter), [filter])
  const { state } = useLive()
  useEffect(() => {
    void store.start()
    return () => store.stop()
  }, [store])
  useEffect(() => {
    store.isTailing = isTailing
  }, [store, isTailing])
  useEffect(() => {
    store.isTold = state === 'live'
  }, [store, state])
  useProjectEvents((event) => {
    // After a reconnect it is unknown which agents were active meanwhile.
    if (event.type === 'project.snapshot' || filter.agent === undefined || event.agent_id === filter.agent)
      store.happened()
  })
  useSyncExternalStore(store.subscribe, store.snapshot)
  const isAway = isUnreached(store.error)
  useEffect(() => {
    noteReach('logs', isAway)
    return () => noteReach('logs', false)
  }, [isAway])
  return store
}
