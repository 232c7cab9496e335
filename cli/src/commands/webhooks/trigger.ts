import { randomUUID } from 'node:crypto'
import { deliveredEvents, testWebhook } from '#contract/resources/deliveries.ts'
import { testEventName } from '#contract/events/events.ts'
import { requestOf } from '../../operations/request.ts'
import { define, type AddCommand } from '../../define.ts'
import { CommandFailure, UsageError } from '../../failure.ts'
import { listeningHere } from '../../streams/listening-records.ts'

/** `cadre webhooks trigger`. */
export const addWebhooksTrigger: AddCommand = (program) =>
  define(program, 'webhooks trigger', {
    summary: 'Send a sample of an event.',
    description:
      'Sends a sample to the given webhook; without one, to those of `cadre webhooks listen` on this machine. It goes to no other ' +
      'webhook, regardless of subscriptions and filters; it is signed, retried and listed like every delivery. ' +
      `Identifiers in a sample do not exist.\n\nEvents: ${deliveredEvents.join(', ')}.\n\n${testWebhook.method} ${testWebhook.path}`,
    args: ['[event]', '[webhook_id]'],
    examples: [
      'cadre webhooks trigger agent.failed',
      'cadre webhooks trigger task.completed wh_01jcm3x5v8f9a2b4c6d8e0g2h4',
    ],
    async run(context, [event = testEventName, webhook_id]) {
      if (event.startsWith('wh_'))
        throw new UsageError(`The event must be the first argument: cadre webhooks trigger agent.failed ${event}`)
      const ids = webhook_id === undefined ? listeningHere(context.env, context.base_url) : [webhook_id]
      if (ids.length === 0)
        throw new CommandFailure(
          'No `cadre webhooks listen` runs on this machine, and no webhook was given.',
          `cadre webhooks listen --forward-to <url>, or cadre webhooks trigger ${event} <webhook_id>`,
        )
      if (context.options.dryRun)
        return context.out.json(await Promise.all(ids.map((id) => requestOf(context, 'testWebhook', [id], { event }))))
      const client = context.client()
      for (const id of ids)
        // The service checks the name of the event, because it may be newer than this command.
        context.out.entry(
          await client.webhooks.test(id, { event: event as typeof testEventName }, { idempotencyKey: randomUUID() }),
        )
    },
  })
