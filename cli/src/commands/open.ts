import { define, type AddCommand } from '../define.ts'
import { openBrowser } from '../config/loopback.ts'

/** The console. */
export const addOpen: AddCommand = (program) =>
  define(program, 'open', {
    summary: 'Open the console.',
    description: 'Writes the address of the console, and opens it in a browser where a terminal looks.',
    examples: ['cadre open', 'cadre open | xclip'],
    async run({ base_url, out }) {
      out.line(`${base_url}/`)
      if (out.options.isTerminal) openBrowser(`${base_url}/`)
    },
  })
