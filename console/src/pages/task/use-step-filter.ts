import { useEffect, useState } from 'react'
import type { TaskLive } from './task-live.ts'
import type { Step } from '../../task-parts/types.ts'

/** Steps that are searched at a time. */
const searched_steps = 100

/** Which steps are shown. */
export interface StepWords {
  isFailed: boolean
  /** A part of what a step was given, gave or failed with, in any case. */
  text: string | undefined
}

export interface FoundSteps {
  /** Indexes of steps that match and are known; undefined where all steps are shown. */
  only: number[] | undefined
  found: number[]
  searched: number
  /** Whether older steps were not looked at. */
  isPart: boolean
  isSearching: boolean
  searchOlder: () => void
}

/** The steps of a task that match, searched from the newest end, some at a time. */
export function useStepFilter(live: TaskLive, { isFailed, text }: StepWords): FoundSteps {
  const isOn = isFailed || text !== undefined
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
        .filter((step) => step.index >= (from ?? 0) && matches(step, { isFailed, text }))
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

function matches({ status, name, input, output, error }: Step, { isFailed, text }: StepWords): boolean {
  if (isFailed && status !== 'failed' && status !== 'unknown') return false
  return (
    text === undefined ||
    textsOf([name, input, output, error]).some((one) => one.toLowerCase().includes(text.toLowerCase()))
  )
}

/** Every text and number in a value, and the names of members: what a reader may search for. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number' || typeof value === 'boolean') return [String(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => [
    ...(Array.isArray(value) ? [] : [name]),
    ...textsOf(member),
  ])
}
