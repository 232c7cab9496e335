import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { useLive, useProjectEvents } from '../api/live.tsx'
import { LogStore, type LogFilter } from './log-store.ts'

/** The lines that a filter asks for, read anew for another filter, and followed by the project's stream. */
export function useLogStore(filter: LogFilter | undefined, isTailing: boolean): LogStore | undefined {
  const store = useMemo(() => filter && new LogStore(filter), [filter])
  const { state } = useLive()
  useEffect(() => {
    void store?.start()
    return () => store?.stop()
  }, [store])
  useEffect(() => {
    if (store) store.isTailing = isTailing
  }, [store, isTailing])
  useEffect(() => {
    if (store) store.isTold = state === 'live'
  }, [store, state])
  useProjectEvents((event) => {
    // Whoever connects again is not told which agents did something meanwhile.
    if (event.type === 'project.snapshot' || event.agent_id === filter?.agent) store?.happened()
  })
  useSyncExternalStore(store?.subscribe ?? nothing, store?.snapshot ?? zero)
  return store
}
const nothing = () => () => {}
const zero = () => 0
