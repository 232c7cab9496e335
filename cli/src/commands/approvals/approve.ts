import { requestOf } from '../../operations/request.ts'
import { define, type AddCommand } from '../../define.ts'
import { json, text } from '../../operations/fields.ts'
import { UsageError } from '../../failure.ts'

/** `cadre approvals approve`. */
export const addApprovalsApprove: AddCommand = (program) =>
  define(program, 'approvals approve', {
    summary: 'Approve a call of a tool.',
    description: '--arguments replaces the arguments of the model; they must match the schema of the tool.',
    args: ['<approval_id>'],
    examples: [`cadre approvals approve appr_01jcm3x5v8f9a2b4c6d8e0g2h4 --arguments '{"order":4712}'`],
    async run(context, [approval_id = ''], { arguments: edited, reason, result }) {
      const members = typeof edited === 'string' ? json('--arguments', await text(edited)) : undefined
      if (members !== undefined && (typeof members !== 'object' || members === null || Array.isArray(members)))
        throw new UsageError('--arguments must be a JSON object.')
      const body = {
        decision: 'approve' as const,
        ...(members === undefined ? {} : { arguments: members as Record<string, unknown> }),
        ...(typeof reason === 'string' ? { reason } : {}),
        ...(typeof result === 'string' ? { result: await text(result) } : {}),
      }
      if (context.options.dryRun)
        return context.out.json(await requestOf(context, 'resolveApproval', [approval_id], body))
      context.out.entry(await context.client().approvals.resolve(await context.project(), approval_id, body))
    },
  })
    .option('--arguments <json>', 'Arguments for the call: JSON, @file, or - for standard input.')
    .option('--reason <text>', 'Why.')
    .option('--result <text>', 'For a call of unknown outcome: it was done, with this result.')
