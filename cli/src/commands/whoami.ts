import { define, type AddCommand } from '../define.ts'

/** Who is logged in. */
export const addWhoami: AddCommand = (program) =>
  define(program, 'whoami', {
    summary: 'Say who is logged in.',
    description: 'Asks the service whose credential this is.',
    examples: ['cadre whoami'],
    async run(context) {
      const user = await context.client().user.get()
      context.out.entry({ ...user, base_url: context.base_url, profile: context.profile })
    },
  })
