import { define, type AddCommand } from '../../define.ts'
import { UsageError } from '../../failure.ts'
import { listen } from '../../streams/listening.ts'

/** `cadre webhooks listen`. */
export const addWebhooksListen: AddCommand = (program) =>
  define(program, 'webhooks listen', {
    summary: 'Forward events to a program on this machine.',
    description:
      'Registers a webhook while the command runs, and forwards its requests unchanged, with their signatures, to your program; ' +
      'prints one line for each. The service must be able to reach this command: on the same machine, start the service with ' +
      'CADRE_EGRESS_ALLOW=loopback; from another machine, pass with --public-url the https URL of a tunnel or proxy to the port of --port. ' +
      'The response of your program is returned to the service, so that deliveries are retried as in production.',
    args: [],
    examples: [
      'cadre webhooks listen --forward-to http://127.0.0.1:3000/hooks',
      'cadre webhooks listen --events task.completed,task.failed --forward-to http://127.0.0.1:3000/hooks --port 4242 --public-url https://tunnel.example/cadre',
    ],
    async run(context, _, { forwardTo, events, port = '0', publicUrl }) {
      if (typeof forwardTo !== 'string' || !URL.canParse(forwardTo) || !/^https?:/.test(forwardTo))
        throw new UsageError('--forward-to must be the URL of your program, such as http://127.0.0.1:3000/hooks.')
      const number = Number(port)
      if (!Number.isInteger(number) || number < 0 || number > 65_535)
        throw new UsageError('--port must be a number from 0 to 65535.')
      if (publicUrl !== undefined && (typeof publicUrl !== 'string' || !publicUrl.startsWith('https://')))
        throw new UsageError('--public-url must be an https URL.')
      await listen(context, {
        forwardTo,
        events: typeof events === 'string' ? events.split(',').map((name) => name.trim()) : ['task.*'],
        port: number,
        publicUrl,
      })
    },
  })
    .option('--forward-to <url>', 'URL of your program.')
    .option('--events <names>', 'Names of events, separated by commas; task.* by default.')
    .option('--port <number>', 'Port of this command on 127.0.0.1; any free port by default.')
    .option('--public-url <url>', 'The https URL that leads to this port, if the service runs on another machine.')
