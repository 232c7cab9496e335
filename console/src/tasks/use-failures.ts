import { useEffect, useState } from 'react'
import type { TaskLive } from './task-live.ts'

/** Steps that are searched at a time. */
const searched_steps = 100

export interface Failures {
  /** Indexes of failed steps that are known; undefined where all steps are shown. */
  only: number[] | undefined
  found: number[]
  searched: number
  /** Whether older steps were not looked at. */
  isPart: boolean
  isSearching: boolean
  searchOlder: () => void
}

/** The failed steps of a task, searched from the newest end, some at a time. */
export function useFailures(live: TaskLive, isOn: boolean): Failures {
  const [from, setFrom] = useState<number>()
  const [isSearching, setSearching] = useState(false)
  const [isWanted, setWanted] = useState(false)
  const isRead = live.task !== undefined
  useEffect(() => {
    if (!isOn || !isRead || isSearching || live.stepCount === 0) return
    if (from !== undefined && !isWanted) return
    const end = from ?? live.stepCount
    const start = Math.max(0, end - searched_steps)
    setSearching(true)
    setWanted(false)
    live
      .readSteps(start, Math.max(1, end - start))
      .then(() => setFrom(start))
      .catch(() => setFrom(end))
      .finally(() => setSearching(false))
  }, [isOn, isRead, isSearching, isWanted, from, live, live.stepCount])

  const found = isOn
    ? [...live.steps.values()]
        .filter(({ status, index }) => (status === 'failed' || status === 'unknown') && index >= (from ?? 0))
        .map(({ index }) => index)
        .toSorted((a, b) => a - b)
    : []
  return {
    only: isOn ? found : undefined,
    found,
    searched: live.stepCount - (from ?? live.stepCount),
    isPart: (from ?? 1) > 0,
    isSearching,
    searchOlder: () => setWanted(true),
  }
}
