import assert from 'node:assert/strict'
import { isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import { checkSequences, type SeenEvent } from '../history/check-sequences.ts'
import type { ModelTask } from './task-model.ts'
import type { TaskRun } from './task-run.ts'

interface SeenStep {
  id: string
  index: number
  type: string
  status: string
  name: string
  input: { tool_call_id?: string }
  attempt: number
}

/** What must be true of a task that has ended: its events, its journal, and that it is still what it was. */
export async function assertEnded(run: TaskRun, task: ModelTask): Promise<void> {
  await run.read(task)
  const { events }: { events: SeenEvent[] } = (await run.events(task)).body
  const { steps }: { steps: SeenStep[] } = (await run.steps(task)).body
  const wrong = [
    ...checkSequences([{ watcher: 'the page', task_id: task.id, events }]),
    ...endOf(task, events),
    ...journalOf(task, steps, events),
  ]
  assert.deepEqual(wrong, [], `${JSON.stringify(task)} ${JSON.stringify(steps)} ${JSON.stringify(events)}`)
}

function endOf({ last, last_sequence }: ModelTask, events: readonly SeenEvent[]): string[] {
  const end = events.find(({ type }) => isTerminalEvent(type))
  return [
    ...(end?.type === `task.${last}` ? [] : [`its end event is ${end?.type}`]),
    ...(end?.sequence === last_sequence ? [] : [`its last event is ${end?.sequence}, not ${last_sequence}`]),
  ]
}

/** Each step once and with one result, and no call without leave where its agent asks before. */
function journalOf(task: ModelTask, steps: readonly SeenStep[], events: readonly SeenEvent[]): string[] {
  const wrong = steps.flatMap(({ index }, i) => (index === i ? [] : [`step ${index} is the ${i}th`]))
  for (const step of steps) {
    const endings = events.filter(
      ({ type, data }) => (data as { step_id?: string }).step_id === step.id && type.startsWith('step.'),
    )
    const began = endings.filter(({ type }) => type === 'step.started').length
    const done = endings.filter(({ type }) => type === 'step.completed').length
    // What a retry keeps was published in the task before.
    const isStored = task.retried_from !== null && endings.length === 0
    if (done > 1 || (done === 1) !== (step.status === 'completed' && !isStored))
      wrong.push(`step ${step.index} is ${step.status} and was completed ${done} times`)
    if (!isStored && began > step.attempt)
      wrong.push(`step ${step.index} began ${began} times in ${step.attempt} attempts`)
    if (task.last === 'completed' && step.status === 'started') wrong.push(`step ${step.index} has no result`)
  }
  return [...wrong, ...withoutLeave(task, steps)]
}

function withoutLeave(task: ModelTask, steps: readonly SeenStep[]): string[] {
  if (!task.isAsked || task.retried_from !== null) return []
  return steps.flatMap((step) => {
    if (step.type !== 'tool_call' || step.name !== 'current_time') return []
    const leave = steps.some(
      ({ type, status, input, index }) =>
        type === 'approval' &&
        status === 'completed' &&
        index < step.index &&
        input.tool_call_id === step.input.tool_call_id,
    )
    return leave ? [] : [`step ${step.index} was made without leave`]
  })
}
