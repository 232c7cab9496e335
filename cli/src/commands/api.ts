import { define, type AddCommand } from '../define.ts'
import { download } from '../streams/download.ts'
import { UsageError } from '../failure.ts'
import { json, text } from '../operations/fields.ts'
import { untilInterrupted } from '../interrupt.ts'

const methods = ['GET', 'POST', 'PUT', 'DELETE']

/** `cadre api`. */
export const addApi: AddCommand = (program) =>
  define(program, 'api', {
    summary: 'Send any request.',
    description: 'Sends a request with the credential of the profile, and prints the response as it arrives.',
    args: ['<method>', '<path>'],
    examples: [
      'cadre api GET /status',
      'cadre api GET /status --jq .version',
      `cadre api POST /projects --data '{"name":"first-project"}'`,
    ],
    async run(context, [method = '', path = ''], { data, dryRun, idempotencyKey }) {
      const verb = method.toUpperCase()
      if (!methods.includes(verb))
        throw new UsageError(`The method must be one of ${methods.join(', ')}, not ${method}.`)
      if (!path.startsWith('/') || path.startsWith('//'))
        throw new UsageError('The path must begin with a single slash, as in /projects.')
      const whole = /^\/(api\/|oauth2\/|\.well-known\/|livez|readyz)/.test(path) ? path : `/api/v1${path}`
      const body = typeof data === 'string' ? json('--data', await text(data)) : undefined
      if (body !== undefined && (typeof body !== 'object' || body === null))
        throw new UsageError('--data must be a JSON object.')
      if (dryRun && verb !== 'GET') return context.out.json({ method: verb, path: whole, body })
      const key = typeof idempotencyKey === 'string' ? idempotencyKey : undefined
      await untilInterrupted(async (signal) => {
        const request = { body, idempotencyKey: key, signal }
        const response = await context.client(true).open(verb, whole, request)
        if (!response.headers.get('content-type')?.startsWith('application/json')) {
          if (context.out.options.filter) throw new UsageError('--jq needs JSON, and the response is not JSON.')
          return download(response, undefined, signal)
        }
        const answer: unknown = await response.json()
        if (context.options.fields !== undefined) return context.out.entry(answer)
        context.out.json(answer)
      })
    },
  })
    .option('--data <json>', 'The body: JSON, @file, or - for standard input.')
    .option('--idempotency-key <key>', 'Do a POST only once, even if the command is repeated with this key.')
