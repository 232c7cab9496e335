import { requestOf } from '../../operations/request.ts'
import { define, type AddCommand } from '../../define.ts'

/** `cadre approvals deny`. */
export const addApprovalsDeny: AddCommand = (program) =>
  define(program, 'approvals deny', {
    summary: 'Deny a call of a tool.',
    description: 'The model reads the reason as the result of its call.',
    args: ['<approval_id>'],
    examples: ["cadre approvals deny appr_01jcm3x5v8f9a2b4c6d8e0g2h4 --reason 'This order has been shipped.'"],
    async run(context, [approval_id = ''], { reason }) {
      const body = { decision: 'reject' as const, ...(typeof reason === 'string' ? { reason } : {}) }
      if (context.options.dryRun)
        return context.out.json(await requestOf(context, 'resolveApproval', [approval_id], body))
      context.out.entry(await context.client().approvals.resolve(await context.project(), approval_id, body))
    },
  }).option('--reason <text>', 'Why.')
