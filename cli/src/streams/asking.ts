import type { Cadre } from '#sdk/client.ts'
import { APIError } from '#sdk/errors.ts'
import type { TaskStreamEvent } from '#sdk/task-stream.ts'
import { choose } from '../ask.ts'
import type { Context } from '../context.ts'
import { plain } from '../output/plain.ts'

/** Characters of a call's arguments that a question shows. */
const argumentsMax = 600

/** The approval that a task asks for with an event, where a person may decide it by yes or no. */
export function approvalOf(event: TaskStreamEvent): { id: string; tool: string; arguments: unknown } | undefined {
  const { approval_id, kind, tool, arguments: args } = event.data as Record<string, unknown>
  if (event.type !== 'approval.requested' || kind !== 'tool_call' || typeof approval_id !== 'string') return undefined
  return { id: approval_id, tool: String(tool), arguments: args }
}

/** Asks the person at the terminal to decide an approval, and gives the answer to the service. Later is an answer, too. */
export async function decide(
  context: Context,
  client: Cadre,
  { id, tool, arguments: args }: NonNullable<ReturnType<typeof approvalOf>>,
): Promise<void> {
  const shown = plain(JSON.stringify(args ?? null))
  const cut = shown.length > argumentsMax ? `${shown.slice(0, argumentsMax)}…` : shown
  const decision = await choose(`Call ${plain(tool)} with ${cut}?`, {
    approve: 'Approve',
    reject: 'Deny',
    later: 'Decide later',
  })
  if (decision === undefined || decision === 'later')
    return context.out.note(`It waits: \`cadre approvals approve ${id}\`, or \`deny\`.`)
  try {
    await client.approvals.resolve(await context.project(), id, { decision })
  } catch (error) {
    // Another person may have been faster, or the credential may not answer: the task goes on watching either way.
    if (!(error instanceof APIError)) throw error
    context.out.note(`The answer was not taken: ${plain(error.message)} [${error.code}]`)
  }
}
