import type { builtinTools } from '../../../../contract/src/tools.ts'

/** What the tools of the service do, and what a call of each may change; as docs/guides/tools.md has it. */
export const builtinToolWords: Readonly<
  Record<(typeof builtinTools)[number], { description: string; safety: 'safe' | 'unsafe' }>
> = {
  http_request: {
    description: 'Sends any request to a public address. GET and HEAD are safe, everything else is not.',
    safety: 'unsafe',
  },
  run_javascript: { description: 'Runs a program in a sandbox, without network and files.', safety: 'safe' },
  current_time: { description: 'Tells the time in a time zone.', safety: 'safe' },
  wait: { description: 'Lets the task wait, up to 30 days, without using anything up.', safety: 'safe' },
  request_input: { description: 'Asks a person a question; a message to the task answers it.', safety: 'safe' },
}
