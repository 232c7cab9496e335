import { useEffect, useRef, useState } from 'react'
import { cadre } from '../../api/client.ts'
import { useOwnStream } from '../../api/live.tsx'
import { whileVisible } from '../../api/visible.ts'
import type { TaskInput } from './input.ts'
import { after, nothingYet, type Transcript } from './transcript.ts'

const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'canceled', 'expired'])
/** Events that tell how things stand, and do not say how far the kept ones were read. */
const unkept: ReadonlySet<string> = new Set(['task.snapshot', 'message.snapshot', 'message.delta', 'reasoning.delta'])

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
      let sequence = 0
      await whileVisible(watch.signal, async (signal) => {
        for await (const event of cadre.tasks.stream(project_id, task.id, { after: sequence, signal })) {
          const transcript = after(now.transcript, event)
          show({ transcript, ...(ended.has(transcript.status) ? { ended_at: Date.now() } : {}) })
          if (!unkept.has(event.type)) sequence = event.sequence
        }
      })
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
  const isRunning = run !== undefined && run.ended_at === undefined
  useOwnStream(isRunning)
  return { run, begin, stop, isRunning }
}
