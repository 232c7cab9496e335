import { ToolError, type Tool } from './tool.ts'

/** Tools that the engine answers itself, because they make the task wait. */
export const engineAnswered: readonly Tool[] = [
  {
    name: 'wait',
    description:
      'Waits before going on, from a second to 30 days. Nothing is used up meanwhile. Use it instead of asking again and again.',
    parameters: {
      type: 'object',
      properties: {
        seconds: { type: 'number', minimum: 0, maximum: 2_592_000, description: 'How long, in seconds.' },
      },
      required: ['seconds'],
      additionalProperties: false,
    },
    safety: 'safe',
    call: neverCalled,
  },
  {
    name: 'request_input',
    description:
      'Asks the person in charge a question and waits for the answer, which may take long. Use it where only a person can know or decide.',
    parameters: {
      type: 'object',
      properties: { question: { type: 'string', minLength: 1, maxLength: 10_000, description: 'The question.' } },
      required: ['question'],
      additionalProperties: false,
    },
    safety: 'safe',
    call: neverCalled,
  },
]

/** A mistake of ours, were it ever reached. */
async function neverCalled(): Promise<never> {
  throw new ToolError('not_callable', 'This tool is answered by the service itself.')
}
