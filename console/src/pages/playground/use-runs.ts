import { useEffect, useRef, useState } from 'react'
import type { NewTask } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useOwnStream, type LiveState } from '../../api/live.tsx'
import { whileVisible } from '../../api/visible.ts'
import type { TaskInput } from './input.ts'
import { after, nothingYet, type Transcript } from './transcript.ts'

const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'canceled', 'expired'])
/** Events that tell how things stand, and do not say how far the kept ones were read. */
const unkept: ReadonlySet<string> = new Set(['task.snapshot', 'message.snapshot', 'message.delta', 'reasoning.delta'])
/** How many tasks a page goes on showing. */
const keptRuns = 200

/** A task of the playground. */
export interface Run {
  /** Tells it from the others before it has an id, and where it was refused. */
  key: number
  agent_id: string
  /** The conversation that it continues; undefined for a single task. */
  thread_id: string | undefined
  input: TaskInput
  task_id: string | undefined
  transcript: Transcript
  started_at: number
  ended_at: number | undefined
  error: unknown
}

/** What a task is given beside its input. */
export type More = Pick<NewTask, 'output_schema' | 'agent_version'>

/** Kind of input to which agent. */
export interface Given {
  agent_id: string
  thread_id: string | undefined
  input: TaskInput
  more?: More
  /** Is called once the service has the task. */
  accepted?: () => void
}

/** Creates tasks of an agent, one at a time, and follows them. Leaving the page ends the watching, not the task; `stop` ends the task. */
export function useRuns(project_id: string) {
  const [runs, setRuns] = useState<readonly Run[]>([])
  const [connection, setConnection] = useState<LiveState>('connecting')
  const watching = useRef<AbortController>(undefined)
  useEffect(() => () => watching.current?.abort(), [])

  const begin = async ({ accepted, more, ...given }: Given): Promise<void> => {
    watching.current?.abort()
    const watch = new AbortController()
    watching.current = watch
    const started_at = Date.now()
    let now: Run = {
      ...given,
      key: started_at,
      task_id: undefined,
      transcript: nothingYet,
      started_at,
      ended_at: undefined,
      error: undefined,
    }
    const show = (change: Partial<Run>): void => {
      now = { ...now, ...change }
      if (!watch.signal.aborted)
        setRuns((known) => [...known.filter(({ key }) => key !== now.key), now].slice(-keptRuns))
    }
    show({})
    try {
      const { agent_id, thread_id, input } = given
      const task = await api.tasks.create(project_id, agent_id, {
        ...more,
        input,
        ...(thread_id === undefined ? {} : { thread_id }),
      })
      accepted?.()
      show({ task_id: task.id })
      let sequence = 0
      await whileVisible(
        watch.signal,
        async (signal) => {
          const stream = api.tasks.stream(project_id, task.id, {
            after: sequence,
            signal,
            onState: (state) => setConnection(state === 'open' ? 'live' : state),
          })
          for await (const event of stream) {
            const transcript = after(now.transcript, event)
            show({ transcript, ...(ended.has(transcript.status) ? { ended_at: Date.now() } : {}) })
            if (!unkept.has(event.type)) sequence = event.sequence
          }
        },
        () => setConnection('reconnecting'),
      )
    } catch (error) {
      if (!watch.signal.aborted) show({ error, ended_at: Date.now() })
    }
  }
  const running = runs.findLast(({ ended_at }) => ended_at === undefined)
  const stop = async (): Promise<void> => {
    if (running?.task_id === undefined) return
    try {
      await api.tasks.cancel(project_id, running.task_id, { reason: 'Stopped in the playground' })
    } catch (error) {
      setRuns((known) => known.map((run) => (run.key === running.key ? { ...run, error } : run)))
    }
  }
  useOwnStream(running !== undefined, connection)
  return { runs, begin, stop, isRunning: running !== undefined }
}
