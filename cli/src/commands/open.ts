import { define, type AddCommand } from '../define.ts'
import { openBrowser } from '../config/loopback.ts'

/** `cadre open`. */
export const addOpen: AddCommand = (program) =>
  define(program, 'open', {
    summary: 'Open the console.',
    description: 'Prints the URL of the console, and opens it in a browser if run in a terminal.',
    examples: ['cadre open', 'cadre open | xclip'],
    async run({ base_url, out }) {
      out.line(`${base_url}/`)
      if (out.options.isTerminal) openBrowser(`${base_url}/`)
    },
  })
