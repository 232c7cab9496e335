import type { ModelCallOutput, ToolCallOutput } from '../conversation/conversation.ts'
import type { Step, TaskChange } from '../task.ts'

type Events = NonNullable<TaskChange['events']>
type Data = Events[number]['data']

/**
 * The events of a change as they are stored: a text that the same transaction stores elsewhere is left out, and is put in
 * again when the event is read (`listTaskEvents`). So a message is stored once, in its step or with the messages that were
 * sent, and a task's output in its row. Instead of the text the data say where it is: `told_by_step` (an index),
 * `told_by_message`, `output_of_task`.
 */
export function storedEvents(change: TaskChange): Events {
  return (change.events ?? []).map(({ type, data }) => ({
    type,
    data: type === 'message.completed' ? storedMessage(data, change) : storedEnd(data, change),
  }))
}

function storedMessage(data: Data, { steps = [] }: TaskChange): Data {
  const { content, tool_calls, ...rest } = data
  // A person's message that answers no call is a separate row.
  if (data['role'] === 'user' && data['step_id'] === null) return { ...rest, tool_calls, told_by_message: true }
  const step = steps.find(({ id, status }) => id === data['step_id'] && status === 'completed')
  if (!step || !says(step, data)) return data
  return { ...rest, ...(step.type === 'model_call' ? {} : { tool_calls }), told_by_step: step.index }
}

/** Whether a step has exactly what the event says. */
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
