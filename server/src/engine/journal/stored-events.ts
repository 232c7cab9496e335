import type { ModelCallOutput, ToolCallOutput } from '../conversation/conversation.ts'
import type { Step, TaskChange } from '../task.ts'

type Events = NonNullable<TaskChange['events']>
type Data = Events[number]['data']

/**
 * The events of a change as stored: without texts that the same transaction stores elsewhere. `listTaskEvents` adds
 * these texts when an event is read. So a message is stored once, in its step or with the sent messages, and a task's
 * output in its row. In place of the text, the data names its location: `told_by_step` (an index), `told_by_message` or
 * `output_of_task`.
 */
export function storedEvents(change: TaskChange): Events {
  return (change.events ?? []).map(({ type, data }) => ({
    type,
    data: type === 'message.completed' ? storedMessage(data, change) : storedEnd(data, change),
  }))
}

function storedMessage(data: Data, { steps = [] }: TaskChange): Data {
  const { content, tool_calls, ...rest } = data
  // A message of a person that answers no call has a row in `task_message`.
  if (data['role'] === 'user' && data['step_id'] === null) return { ...rest, tool_calls, told_by_message: true }
  const step = steps.find(({ id, status }) => id === data['step_id'] && status === 'completed')
  if (!step || !says(step, data)) return data
  return { ...rest, ...(step.type === 'model_call' ? {} : { tool_calls }), told_by_step: step.index }
}

/** Whether a step has exactly the content of the event. */
function says({ type, output }: Step, { content, tool_calls }: Data): boolean {
  if (type !== 'model_call') return (output as ToolCallOutput).content === content
  const { text, tool_calls: calls } = output as ModelCallOutput
  return text === content && calls === tool_calls
}

function storedEnd(data: Data, { output }: TaskChange): Data {
  if (!output || data['output'] !== output) return data
  const { output: _output, ...rest } = data
  return { ...rest, output_of_task: true }
}
