import { randomUUID } from 'node:crypto'
import { deliveredEvents, testWebhook } from '#contract/resources/deliveries.ts'
import { testEventName } from '#contract/events/events.ts'
import { define, type AddCommand } from '../../define.ts'
import { CommandFailure, UsageError } from '../../failure.ts'
import { listeningHere } from '../../streams/listening-records.ts'

/** Sends a sample of an event: to a webhook, or to what listens on this machine. */
export const addWebhooksTrigger: AddCommand = (program) =>
  define(program, 'webhooks trigger', {
    summary: 'Send a sample of an event.',
    description:
      'Sends a sample to the webhook that is named; without one, to what `cadre webhooks listen` runs for on this machine. ' +
      'It goes to no other webhook, and to this one whatever it subscribed to or filters; it is signed, repeated and listed like every delivery. ' +
      `Identifiers in a sample name nothing.\n\nEvents: ${deliveredEvents.join(', ')}.\n\n${testWebhook.method} ${testWebhook.path}`,
    args: ['[event]', '[webhook_id]'],
    examples: [
      'cadre webhooks trigger agent.failed',
      'cadre webhooks trigger task.completed wh_01jcm3x5v8f9a2b4c6d8e0g2h4',
    ],
    async run(context, [event = testEventName, webhook_id]) {
      if (event.startsWith('wh_'))
        throw new UsageError(`The event comes first: cadre webhooks trigger agent.failed ${event}`)
      const ids = webhook_id === undefined ? listeningHere(context.env, context.base_url) : [webhook_id]
      if (ids.length === 0)
        throw new CommandFailure(
          'No `cadre webhooks listen` runs on this machine, and no webhook is named.',
          `cadre webhooks listen --forward-to <url>, or cadre webhooks trigger ${event} <webhook_id>`,
        )
      if (context.options.dryRun) return context.out.json(ids.map((id) => ({ method: 'POST', webhook_id: id, event })))
      const client = context.client()
      for (const id of ids)
        // The service says which events there are, also where it is newer than this command.
        context.out.entry(
          await client.webhooks.test(id, { event: event as typeof testEventName }, { idempotencyKey: randomUUID() }),
        )
    },
  })
