import { define, type AddCommand } from '../../define.ts'
import { UsageError } from '../../failure.ts'
import { listen } from '../../streams/listening.ts'

/** Has events delivered to a program on this machine. */
export const addWebhooksListen: AddCommand = (program) =>
  define(program, 'webhooks listen', {
    summary: 'Have events delivered to a program on this machine.',
    description:
      'Registers a webhook for as long as the command runs, and passes what it is sent on to your program, byte for byte and with the ' +
      'signature, a line for each. The service must reach this command: on the same machine it may, once it was started with ' +
      'CADRE_EGRESS_ALLOW=loopback; from elsewhere say with --public-url which https address leads to the port of --port, by a tunnel or a proxy. ' +
      'What your program answers is what the service is answered, so that deliveries are tried again as in production.',
    args: [],
    examples: [
      'cadre webhooks listen --forward-to http://127.0.0.1:3000/hooks',
      'cadre webhooks listen --events task.completed,task.failed --forward-to http://127.0.0.1:3000/hooks --port 4242 --public-url https://tunnel.example/cadre',
    ],
    async run(context, _, { forwardTo, events, port = '0', publicUrl }) {
      if (typeof forwardTo !== 'string' || !URL.canParse(forwardTo) || !/^https?:/.test(forwardTo))
        throw new UsageError('--forward-to is the address of your program, such as http://127.0.0.1:3000/hooks.')
      const number = Number(port)
      if (!Number.isInteger(number) || number < 0 || number > 65_535)
        throw new UsageError('--port is a number from 0 to 65535.')
      if (publicUrl !== undefined && (typeof publicUrl !== 'string' || !publicUrl.startsWith('https://')))
        throw new UsageError('--public-url is an https address.')
      await listen(context, {
        forwardTo,
        events: typeof events === 'string' ? events.split(',').map((name) => name.trim()) : ['task.*'],
        port: number,
        publicUrl,
      })
    },
  })
    .option('--forward-to <url>', 'Where your program takes webhooks.')
    .option('--events <names>', 'Names of events, with commas between; task.* where nothing is said.')
    .option('--port <number>', 'The port of this command on 127.0.0.1; any free one where nothing is said.')
    .option('--public-url <url>', 'The https address that leads to that port, where the service runs elsewhere.')
