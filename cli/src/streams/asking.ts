import type { Cadre } from '#sdk/client.ts'
import { APIError } from '#sdk/errors.ts'
import type { TaskStreamEvent } from '#sdk/task-stream.ts'
import { choose } from '../ask.ts'
import type { Context } from '../context.ts'
import { plain } from '../output/plain.ts'

/** Maximum characters of a call's arguments in a prompt. */
const argumentsMax = 600

/** The approval that an event of a task requests, if it can be decided by yes or no. */
export function approvalOf(event: TaskStreamEvent): { id: string; tool: string; arguments: unknown } | undefined {
  const { approval_id, kind, tool, arguments: args } = event.data as Record<string, unknown>
  if (event.type !== 'approval.requested' || kind !== 'tool_call' || typeof approval_id !== 'string') return undefined
  return { id: approval_id, tool: String(tool), arguments: args }
}

/** Asks the user to decide an approval, now or later, and sends the decision to the service. */
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
    return context.out.note(`The approval is pending: \`cadre approvals approve ${id}\`, or \`deny\`.`)
  try {
    await client.approvals.resolve(await context.project(), id, { decision })
  } catch (error) {
    // Another person may have decided, or the credential may not; the watch continues.
    if (!(error instanceof APIError)) throw error
    context.out.note(`The decision was refused: ${plain(error.message)} [${error.code}]`)
  }
}
