import { requestOf } from '../../operations/request.ts'
import { define, type AddCommand } from '../../define.ts'

/** `cadre agents resume`. */
export const addAgentsResume: AddCommand = (program) =>
  define(program, 'agents resume', {
    summary: 'Start a paused agent.',
    description: 'The same as `agents start`.\n\nPOST /api/v1/projects/{project_id}/agents/{agent_id}/start',
    args: ['<agent_id>'],
    examples: ['cadre agents resume agent_01jcm3x5v8f9a2b4c6d8e0g2h4'],
    async run(context, [agent_id = '']) {
      if (context.options.dryRun) return context.out.json(await requestOf(context, 'startAgent', [agent_id]))
      context.out.entry(await context.client().agents.start(await context.project(), agent_id))
    },
  })
