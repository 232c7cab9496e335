import { define, type AddCommand } from '../define.ts'

/** `cadre whoami`. */
export const addWhoami: AddCommand = (program) =>
  define(program, 'whoami', {
    summary: 'Show the logged-in user.',
    description: 'Asks the service for the user of the credential.',
    examples: ['cadre whoami'],
    async run(context) {
      const user = await context.client().user.get()
      context.out.entry({ ...user, base_url: context.base_url, profile: context.profile })
    },
  })
