import { useEffect, useRef, useState } from 'react'
import { cadre } from '../../api/client.ts'
import type { TaskInput } from './input.ts'
import { after, nothingYet, type Transcript } from './transcript.ts'

const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'canceled', 'expired'])

/** A task of the playground. */
export interface Run {
  task_id: string | undefined
  transcript: Transcript
  started_at: number
  ended_at: number | undefined
  error: unknown
}

/** Gives an agent a task and follows it. Leaving the page ends the watching, not the task; `stop` ends the task. */
export function useRun(project_id: string) {
  const [run, setRun] = useState<Run>()
  const watching = useRef<AbortController>(undefined)
  useEffect(() => () => watching.current?.abort(), [])

  const begin = async (agent_id: string, input: TaskInput): Promise<void> => {
    watching.current?.abort()
    const watch = new AbortController()
    watching.current = watch
    const started_at = Date.now()
    let now: Run = { task_id: undefined, transcript: nothingYet, started_at, ended_at: undefined, error: undefined }
    const show = (change: Partial<Run>): void => {
      now = { ...now, ...change }
      if (!watch.signal.aborted) setRun(now)
    }
    show({})
    try {
      const task = await cadre.tasks.create(project_id, agent_id, { input })
      show({ task_id: task.id })
      for await (const event of cadre.tasks.stream(project_id, task.id, { signal: watch.signal })) {
        const transcript = after(now.transcript, event)
        show({ transcript, ...(ended.has(transcript.status) ? { ended_at: Date.now() } : {}) })
      }
    } catch (error) {
      if (!watch.signal.aborted) show({ error, ended_at: Date.now() })
    }
  }
  const stop = async (): Promise<void> => {
    if (run?.task_id === undefined) return
    try {
      await cadre.tasks.cancel(project_id, run.task_id, { reason: 'Stopped in the playground' })
    } catch (error) {
      setRun((known) => known && { ...known, error })
    }
  }
  return { run, begin, stop, isRunning: run !== undefined && run.ended_at === undefined }
}
